"""Fixtures used by several test files."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared():
    """Folder of optional outside material; the core tests do without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("optional outside material (../shared) is not on this machine")
    return folder
