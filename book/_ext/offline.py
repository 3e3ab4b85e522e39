"""Keep the pages free of the live-code script: the book does not use it, and it would name a host on every page."""


def drop_live_code(app, pagename, templatename, context, doctree):
    context["script_files"] = [script for script in context["script_files"] if "thebe" not in str(script).lower() and "thebe" not in str(getattr(script, "attributes", "")).lower()]
    context["css_files"] = [sheet for sheet in context["css_files"] if "thebe" not in str(getattr(sheet, "filename", sheet))]


def setup(app):
    app.connect("html-page-context", drop_live_code, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
