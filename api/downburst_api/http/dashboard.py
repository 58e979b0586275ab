"""The page at `/`, the api's own at `/docs`, the documents at `/guide/`: as built, or with the command for it."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles


def mount(app: FastAPI, directory: Path | None, guide: Path | None) -> None:
    """Serves the dashboard from `directory`, where every path that is no other route is looked up, and the guide."""
    _mount_guide(app, guide)
    described = None if directory is None else directory / "docs.html"

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(_NOT_BUILT) if described is None or not described.is_file() else FileResponse(described)

    if directory is not None and (directory / "index.html").is_file():
        app.mount("/", StaticFiles(directory=directory, html=True), name="dashboard")
        return

    @app.get("/", include_in_schema=False)
    async def not_built() -> HTMLResponse:
        return HTMLResponse(_NOT_BUILT)


def _mount_guide(app: FastAPI, guide: Path | None) -> None:
    is_built = guide is not None and (guide / "index.html").is_file()
    pages = StaticFiles(directory=guide, html=True) if is_built else HTMLResponse(_NO_GUIDE, status_code=404)
    app.mount("/guide", pages, name="guide")


_NO_GUIDE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Downburst</title>
<p>The hub is running; its documentation is not built. Run <code>make docs</code> in the source tree,
then restart the hub. Until then: <code>downburst help</code>.</p></html>
"""
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Downburst</title>
<p>The hub is running; its page is not built. Run <code>make setup</code> in the source tree,
then restart the hub.
Until then: <a href="/openapi.json">the api</a>, <a href="/v1/overview">the figures</a>,
<code>downburst status</code>.</p></html>
"""
