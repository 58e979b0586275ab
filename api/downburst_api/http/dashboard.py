"""The page at `/` and the api's own at `/docs`: as built, or one sentence with the command that builds them."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles


def mount(app: FastAPI, directory: Path | None) -> None:
    """Serves the dashboard from `directory`; every path that is no api route is looked up there."""
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


_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Downburst</title>
<p>The hub is running; its page is not built. Run <code>make setup</code> in the source tree,
then reload.
Until then: <a href="/openapi.json">the api</a>, <a href="/v1/overview">the figures</a>,
<code>downburst status</code>.</p></html>
"""
