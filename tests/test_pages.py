"""The built pages in a real browser, without a network: whole, readable in both themes and at phone width, and what can be pressed works."""

import base64
import html
import io
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest

from analysis import claims, data

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
THEMES = ("light", "dark")
LOCAL = ("file:", "data:", "blob:")


@pytest.fixture(scope="module")
def browser():
    """Chromium of this machine: $CHROMIUM, else the first of the usual names."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next((path for path in map(shutil.which, names) if path), None)
    if not found:
        missing = f"no browser: none of {', '.join(names)} is on the search path and CHROMIUM is not set"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def site(browser, built):
    """The finished site; the browser comes first, so that nothing is built where there is none."""
    return built[2]


@pytest.fixture(scope="module")
def paths(site):
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts and path != site / "index.html"]  # which only forwards
    assert len(found) >= 12
    return found


class Window:
    """A browser window without a network that remembers what went wrong in it."""

    def __init__(self, browser, viewport=WIDE, theme=None):
        self.context = browser.new_context(viewport=viewport, accept_downloads=True)
        self.context.set_offline(True)
        if theme:
            stored = f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')"
            self.context.add_init_script(f"if (location.protocol === 'file:') {{ {stored} }}")
        self.troubles = []
        self.context.on("request", lambda request: request.url.startswith(LOCAL) or self.troubles.append(f"asks the network: {request.url}"))
        self.context.on("requestfailed", lambda request: self.troubles.append(f"not found: {request.url[:200]}"))
        self.context.on("console", lambda message: message.type == "error" and self.troubles.append(f"console: {message.text[:200]}"))
        self.context.on("weberror", lambda error: self.troubles.append(f"script: {error.error}"))
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)

    def open(self, path, query=""):
        self.page.goto(path.as_uri() + query, wait_until="load")
        self.page.wait_for_function("document.fonts.status === 'loaded' && [...document.images].every(image => image.complete)")
        return self.page


@pytest.fixture
def window(browser):
    opened = []

    def open_window(**options):
        opened.append(Window(browser, **options))
        return opened[-1]

    yield open_window
    for one in opened:
        one.context.close()


# --- every page ------------------------------------------------------------------------------------------------------

# Ground of a text: the first opaque colour behind it, with what is translucent laid over.
CONTRAST = """
() => {
  const parts = text => { const v = text.match(/[\\d.]+/g).map(Number); return text.startsWith('color(') ? [255 * v[0], 255 * v[1], 255 * v[2], v[3] ?? 1] : [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * under[i]);
  const light = colour => { const [r, g, b] = colour.map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); layers.push(c); if (c[3] === 1) break; }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const found = [];
  for (const element of document.querySelectorAll('article *')) {
    const own = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.textContent.trim()).join(' ').trim();
    const text = own || element.placeholder;
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (element.closest('mjx-container, style, script, :disabled, .disabled')) continue;
    const style = getComputedStyle(element), under = ground(element);
    const [a, b] = [light(over(parts(style.color), under)), light(under)];
    found.push({ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), tag: element.tagName, kind: element.className, text: text.slice(0, 50),
                color: style.color, under: under.map(Math.round).join(' ')});
  }
  return found;
}
"""

# What sticks out of the window without a frame of its own to scroll in.
CUT_OFF = """
() => [...document.querySelectorAll('article *')].filter(element => {
  const box = element.getBoundingClientRect();
  if (!box.width || !box.height || !element.checkVisibility() || element.closest('mjx-assistive-mml')) return false;
  if (box.right <= innerWidth + 1 && box.left >= -1) return false;
  for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.getBoundingClientRect().right <= innerWidth + 1) return false;
  return true;
}).map(element => `${element.tagName}.${element.className}: ${element.textContent.trim().slice(0, 40)}`)
"""


@pytest.mark.parametrize("theme", THEMES)
def test_every_page_is_whole_and_readable(paths, window, theme):
    """One visit a page: no trouble, no sideways scrolling at either width, contrast, one picture a figure with its text alternative."""
    one = window(theme=theme)
    wrong = []
    for path in paths:
        page, name = one.open(path), f"{path.stem} ({theme})"
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        texts = page.evaluate(CONTRAST)
        assert texts or path.stem in ("genindex", "search"), name
        wrong += sorted({f"{name}: contrast {t['ratio']:.2f} of {t['tag']}.{t['kind']} ({t['color']} on {t['under']}): {t['text']}" for t in texts if t["ratio"] < 4.5})[:5]
        for figure in page.locator("figure.ledger-figure").all():
            pictures = figure.locator("img").evaluate_all("all => all.map(i => [i.className, i.checkVisibility(), i.naturalWidth])")
            seen = [(kind, drawn) for kind, visible, drawn in pictures if visible]
            if len(seen) != 1 or f"only-{theme}" not in seen[0][0] or not seen[0][1]:
                wrong.append(f"{name}: {pictures}")
        wrong += [f"{name}: image without text: {src[:60]}" for src in page.locator("img").evaluate_all("all => all.filter(i => !i.alt.trim()).map(i => i.src)")]
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)
            width = page.evaluate("document.scrollingElement.scrollWidth")
            if width > size["width"]:
                wrong.append(f"{name}: {width} px wide in a window of {size['width']} px")
            wrong += [f"{name}: cut off at {size['width']} px: {what}" for what in page.evaluate(CUT_OFF)[:3]]
        page.set_viewport_size(WIDE)
        wrong += [f"{name}: {trouble}" for trouble in one.troubles]
        one.troubles.clear()
    assert not wrong, "\n".join(wrong)


def test_captions_and_notes_were_among_the_texts_that_were_measured(site, window):
    kinds = {(text["tag"], text["kind"]) for text in window(theme="dark").open(site / "transitions.html").evaluate(CONTRAST)}
    assert {("FIGCAPTION", ""), ("P", "ledger-note"), ("TD", ""), ("TH", "")} <= kinds


def test_the_measure_of_contrast_knows_black_white_and_grey(window):
    page = window().page
    page.set_content("<article style='background:white'><p style='color:black'>a</p><p style='color:#767676'>b</p><p style='color:rgb(0 0 0 / 50%)'>c</p></article>")
    assert [round(text["ratio"], 2) for text in page.evaluate(CONTRAST)] == [21, 4.54, 3.98]


def test_first_visit_is_quiet_and_the_switch_changes_the_pictures(site, window):
    one = window()
    page = one.open(site / "transitions.html")
    shown = "[...document.querySelectorAll('.ledger-figure img')].filter(i => i.checkVisibility()).map(i => i.className)"
    seen = []
    for _ in range(3):
        theme = page.evaluate("document.documentElement.dataset.theme")
        assert set(page.evaluate(shown)) == {f"only-{theme}"}
        seen.append((page.evaluate("document.documentElement.dataset.mode"), theme))
        page.locator(".theme-switch-button:visible").first.click()
    assert {mode for mode, _ in seen} == {"auto", *THEMES} and {theme for _, theme in seen} == set(THEMES)
    assert one.troubles == []


def test_formulas_are_typeset(site, window):
    one = window()
    for name in ("protocol", "glossary"):
        page = one.open(site / f"{name}.html")
        page.wait_for_selector("mjx-container")
        source = page.locator(".math").count()
        assert source > 0 and page.locator(".math mjx-container").count() == source
        boxes = page.locator("mjx-container").evaluate_all("all => all.map(m => [m.getBoundingClientRect().width, m.querySelectorAll('mjx-merror').length])")
        assert all(width > 3 and errors == 0 for width, errors in boxes)
        assert "\\frac" not in page.locator("article").inner_text()
    assert one.troubles == []


# --- links -----------------------------------------------------------------------------------------------------------


def targets(path):
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    links = [html.unescape(link) for link in re.findall(r'<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]*)"', text)]
    return links, set(re.findall(r'\sid="([^"]+)"', text)) | set(re.findall(r'<a[^>]*\sname="([^"]+)"', text))


def test_internal_links_and_anchors_resolve(paths, site):
    anchors = {path.resolve(): targets(path)[1] for path in paths}
    broken, followed = [], 0
    for path in paths:
        for link in targets(path)[0]:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//") or link in ("", "#"):
                continue
            followed += 1
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not goal.is_file() or not goal.is_relative_to(site.resolve()):
                broken.append(f"{path.name}: {link}")
            elif parts.fragment and goal.suffix == ".html" and unquote(parts.fragment) not in anchors[goal] | {"top"}:
                broken.append(f"{path.name}: {link}: no such place")
    assert followed > 200
    assert broken == []


def test_scripts_styles_and_pictures_are_local(paths):
    for path in paths:
        loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*?\ssrc="([^"]*)"', path.read_text(encoding="utf-8"))
        loaded += re.findall(r'<link\b[^>]*?\shref="([^"]*)"', path.read_text(encoding="utf-8"))
        assert [link[:80] for link in loaded if link.startswith(("http:", "https:", "//"))] == [], path.name


def test_every_page_can_be_reached_from_the_first(paths, site):
    assert 'url=intro.html"' in (site / "index.html").read_text()
    seen, todo = set(), [site / "intro.html"]
    while todo:
        path = todo.pop().resolve()
        if path in seen or path.suffix != ".html" or not path.is_file():
            continue
        seen.add(path)
        todo += [path.parent / unquote(urlsplit(link).path) for link in targets(path)[0] if not urlsplit(link).scheme and urlsplit(link).path]
    assert {path.name for path in paths if path.resolve() not in seen} <= {"genindex.html", "search.html"}


# --- tables ----------------------------------------------------------------------------------------------------------


def test_every_download_parses_with_the_stated_number_of_rows(paths, window):
    one, tables, names = window(), 0, {}
    for path in paths:
        page = one.open(path)
        links = page.locator("figure.ledger-table a[download]")
        assert links.count() == page.locator("figure.ledger-table").count(), path.name
        for i in range(links.count()):
            stated = int(re.search(r"CSV, ([\d,]+)\b", links.nth(i).inner_text())[1].replace(",", ""))
            name = links.nth(i).get_attribute("download")
            assert re.fullmatch(r"[a-z0-9_-]+\.csv", name)
            text = base64.b64decode(links.nth(i).get_attribute("href").removeprefix("data:text/csv;base64,"))
            if i == 0:  # really downloaded once a page: a browser stops pages that start dozens
                with page.expect_download() as caught:
                    links.nth(i).click()
                assert (caught.value.suggested_filename, Path(caught.value.path()).read_bytes()) == (name, text)
            frame = pd.read_csv(io.BytesIO(text))
            assert (len(frame), frame.columns.duplicated().any()) == (stated, False), f"{path.name}: {name}"
            assert len(frame.columns) >= 2
            names.setdefault(path.name, []).append(name)
            tables += 1
    assert tables >= 20
    assert all(len(set(found)) == len(found) for found in names.values()), names
    assert one.troubles == []


def test_a_download_holds_the_numbers_at_full_precision(site, window):
    page = window().open(site / "transitions.html")
    with page.expect_download() as caught:
        page.locator("#table-transitions a[download]").click()
    frame = pd.read_csv(caught.value.path())
    paper = frame[~frame["added"]]
    assert (paper["n"].sum(), paper["collapse"].sum(), paper["correction"].sum()) == (6925, 253, 816)
    assert (paper["c_cond"] - paper["collapse"] / paper["init_correct"]).abs().max() < 1e-9
    assert set(paper["row"]) == set(data.debates()["row"])


def test_shown_tables_are_tables_to_a_screen_reader(paths, window):
    one = window()
    for path in paths:
        page = one.open(path)
        for table in page.locator(".ledger-scroll > table").all():
            counts = table.evaluate("t => [t.tHead.rows[0].cells.length, ...[...t.tBodies[0].rows].map(r => r.cells.length)]")
            assert len(set(counts)) == 1, path.name
            assert table.evaluate("t => [...t.tHead.rows[0].cells].every(c => c.scope === 'col') && [...t.tBodies[0].rows].every(r => r.cells[0].scope === 'row')")


# --- the scoreboard --------------------------------------------------------------------------------------------------

ENTRIES = "() => [...document.querySelectorAll('#search-claims tbody tr')].map(r => [...r.cells].map(c => c.textContent))"


@pytest.fixture
def scoreboard(site, window):
    one = window()
    page = one.open(site / "claims.html")
    page.wait_for_selector("#search-claims_wrapper .dt-info, .dt-info")
    yield page
    assert one.troubles == []


def shown_of(page):
    numbers = re.findall(r"[\d,]+", page.locator(".dt-info").inner_text())
    return int(numbers[2].replace(",", ""))


def test_scoreboard_holds_every_claim(scoreboard):
    assert shown_of(scoreboard) == len(claims.registry())
    assert len(scoreboard.evaluate(ENTRIES)) < shown_of(scoreboard)
    scoreboard.locator("select.dt-input").select_option("-1")
    assert len(scoreboard.evaluate(ENTRIES)) == shown_of(scoreboard)


def test_scoreboard_searches(scoreboard):
    whole = shown_of(scoreboard)
    scoreboard.locator(".dt-search input").fill("onset")
    scoreboard.wait_for_function("document.querySelector('.dt-info').textContent.includes('filtered')")
    assert 0 < shown_of(scoreboard) < whole
    entries = scoreboard.evaluate(ENTRIES)
    assert entries and all("onset" in " ".join(cells).lower() for cells in entries)
    scoreboard.locator(".dt-search input").fill("no claim says this")
    scoreboard.wait_for_function("document.querySelectorAll('#search-claims tbody td').length === 1")
    scoreboard.locator(".dt-search input").fill("")
    scoreboard.wait_for_function(f"!document.querySelector('.dt-info').textContent.includes('filtered')")
    assert shown_of(scoreboard) == whole


def test_scoreboard_sorts_by_a_heading(scoreboard):
    column = scoreboard.locator("#search-claims thead th").evaluate_all(
        "all => all.findIndex(th => (th.textContent + [...th.querySelectorAll('input')].map(i => i.placeholder)).includes('Verdict'))")
    heading = scoreboard.locator("#search-claims thead th").nth(column)
    orders = []
    for _ in range(2):
        heading.locator(".dt-column-order").click()
        scoreboard.wait_for_timeout(100)
        orders.append([cells[column] for cells in scoreboard.evaluate(ENTRIES)])
        assert heading.get_attribute("aria-sort") in ("ascending", "descending")
    assert orders[0] == sorted(orders[0]) and orders[1] == sorted(orders[1], reverse=True) and orders[0] != orders[1]


def test_scoreboard_filters_by_verdict(scoreboard):
    column = scoreboard.locator("#search-claims input[placeholder='Verdict']")
    column.press_sequentially("differs")
    scoreboard.wait_for_function("document.querySelector('.dt-info').textContent.includes('filtered')")
    assert shown_of(scoreboard) == (claims.verdicts()["verdict"] == "differs").sum()


def test_scoreboards_sorting_buttons_have_names(scoreboard):
    names = scoreboard.locator("#search-claims thead [role=button]").evaluate_all("all => all.map(b => b.getAttribute('aria-label') || b.textContent)")
    assert len(names) == scoreboard.locator("#search-claims thead th").count() > 5
    assert [name for name in names if not re.match(r"[A-Z]\w+", name)] == []


# --- search, keyboard ------------------------------------------------------------------------------------------------


def test_site_search_finds_pages(site, window):
    one = window()
    page = one.open(site / "search.html", "?q=collapse")
    page.wait_for_function("/found|finished/.test(document.querySelector('#search-results').textContent)")
    hits = set(page.locator("#search-results li a").evaluate_all("all => all.map(a => new URL(a.href).pathname.split('/').pop())"))
    assert {"transitions.html", "protocol.html", "glossary.html"} <= hits
    assert all((site / name).is_file() or (site / "rows" / name).is_file() for name in hits)
    page = one.open(site / "search.html", "?q=xyzzyplugh")
    page.wait_for_function("/found|finished|did not match/.test(document.querySelector('#search-results').textContent)")
    assert page.locator("#search-results li a").count() == 0
    assert one.troubles == []


def test_search_field_leads_to_the_results(site, window):
    page = window().open(site / "intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("onset")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=onset*")
    page.wait_for_selector("#search-results li a")


@pytest.mark.parametrize("name", ["transitions", "replay", "claims"])
def test_tab_reaches_every_region_that_scrolls(site, window, name):
    page = window(viewport=PHONE).open(site / f"{name}.html")
    wanted = page.locator("article *").evaluate_all("""
        all => all.filter(e => e.checkVisibility() && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1)
                  .map((e, i) => e.dataset.frame = String(i))""")
    assert wanted, "nothing scrolls at phone width: the test would be empty"
    reached = set()
    for _ in range(250):
        page.keyboard.press("Tab")
        reached |= set(page.evaluate("() => { const at = []; for (let e = document.activeElement; e; e = e.parentElement) at.push(e.dataset.frame ?? ''); return at; }"))
        if set(wanted) <= reached:
            break
    assert set(wanted) <= reached


def test_arrow_keys_scroll_a_focused_table(site, window):
    page = window(viewport=PHONE).open(site / "transitions.html")
    frame = page.locator("#table-transitions .ledger-scroll")
    frame.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('#table-transitions .ledger-scroll').scrollLeft > 0")
    # The name of the row stays in sight.
    left = frame.evaluate("f => f.querySelector('tbody th').getBoundingClientRect().left - f.getBoundingClientRect().left")
    assert abs(left) < 2
    assert frame.get_attribute("role") == "region" and frame.get_attribute("aria-label")


def test_folded_code_opens(site, window):
    page = window().open(site / "transitions.html")
    code = page.locator("details.hide summary, .cell.tag_hide-input summary").first
    block = page.locator(".cell.tag_hide-input .cell_input, .cell.tag_hide-input details .highlight").first
    assert not block.is_visible()
    code.click()
    assert block.is_visible()
