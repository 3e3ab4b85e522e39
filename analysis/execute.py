"""Execute notebooks: the pages of the book, and the stored outputs that nbval compares.

Imports are kept inside the functions: each page is executed by a process of its own, which should start at once.
"""

import os
from pathlib import Path


def execute(source, target, parameters=None):
    """Execute a notebook with papermill; write the result beside the target, then put it in place.

    Parameters
    ----------
    source, target : path
        Notebook to read and to write; the same path refreshes a notebook in place.
    parameters : dict, optional
        Values for names that the notebook's parameter cell has. ``row_id`` also replaces the default id in its prose.

    Raises
    ------
    ValueError
        A name is not in the notebook's parameter cell.
    papermill.PapermillExecutionError
        A cell failed; the failing notebook is kept beside the target as ``*.failed.ipynb``.

    Examples
    --------
    >>> execute("notebooks/claims.ipynb", "build/claims.ipynb", {"ti": "undecided"})  # doctest: +SKIP
    """
    import nbformat
    import papermill

    source, target, parameters = Path(source), Path(target), dict(parameters or {})
    known = {name: line["default"] for name, line in papermill.inspect_notebook(str(source)).items()}
    for name in parameters:
        if name not in known:
            raise ValueError(f"{source.name}: no parameter {name!r}; its parameter cell has {', '.join(known) or 'none'}")
    target.parent.mkdir(parents=True, exist_ok=True)
    failed = target.with_suffix(".failed.ipynb")
    notebook = nbformat.read(source, as_version=4)
    if "row_id" in parameters:
        default = known["row_id"].strip("\"'")
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace(default, parameters["row_id"])
    papermill.execute_notebook(
        nbformat.from_dict(notebook), str(failed), parameters=parameters, cwd=str(source.parent), progress_bar=False, kernel_name="python3",
        extra_arguments=["--Application.log_level=ERROR"],
    )
    notebook = nbformat.read(failed, as_version=4)
    if source == target:
        _forget_the_run(notebook)
    else:
        _hide_injected(notebook)
    nbformat.write(notebook, failed)
    os.replace(failed, target)


def _hide_injected(notebook):
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
    notebook.metadata.pop("papermill", None)


def _forget_the_run(notebook):
    """Drop times, paths and versions, so that a refreshed notebook differs only where its content does."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.cells = [cell for cell in notebook.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}


def without_outputs(notebook):
    """Places in a notebook whose outputs were stripped: nbval would pass over them without a word.

    Parameters
    ----------
    notebook : path

    Returns
    -------
    list of str
        One description per code cell that neither holds an output nor is tagged ``no-output`` or ``parameters``.

    Examples
    --------
    >>> without_outputs(Path(__file__).parents[1] / "notebooks" / "claims.ipynb")
    []
    """
    import nbformat

    found = []
    for i, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        quiet = {"no-output", "parameters"} & set(cell.metadata.get("tags", []))
        if cell.cell_type == "code" and cell.source.strip() and not quiet and not cell.outputs:
            found.append(f"{Path(notebook).name}, cell {i}: no stored output: {cell.source.splitlines()[0]}")
    return found


def prune(kept, folder="book", site="_build/html"):
    """Remove the pages of rows that are gone.

    Parameters
    ----------
    kept : collection of str
        Ids of the rows that there are.
    folder, site : path
        Where executed notebooks and rendered pages lie.

    Examples
    --------
    >>> prune([], "no-such-folder", "nor-this")
    """
    for path in [*Path(folder).glob("rows/*.ipynb"), *Path(site).glob("rows/*.html"), *Path(site).glob("_sources/rows/*.ipynb")]:
        if path.name.removesuffix(path.suffix) not in kept:
            path.unlink()
