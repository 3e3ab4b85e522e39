"""Keep the pages whole and quiet when they are opened as files, without a server or a network."""

# A page opened as a file may not fetch its neighbours: the list of hits stays, the excerpts under them are left out.
NO_EXCERPTS = 'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;'


def adjust(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(None, body=NO_EXCERPTS)
    # The book has no live code; its script would name a host on every page.
    context["script_files"] = [script for script in context["script_files"] if not _live_code(script)]
    context["css_files"] = [sheet for sheet in context["css_files"] if not _live_code(sheet)]
    # Without a value the theme reports an invalid mode on the first visit of every reader.
    context.setdefault("default_mode", "auto")


def _live_code(asset):
    told = f"{asset} {getattr(asset, 'filename', '')} {getattr(asset, 'attributes', '')}"
    return "thebe" in told.lower()


def setup(app):
    app.connect("html-page-context", adjust, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
