"""Writes the files that are generated from the API: its description and its recorded answers.

Run it after a change of the API, and `npm run types --prefix services/dashboard` after it:

    cd tests && ../.venv/bin/python -m unit.api.write_contract
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fastapi import FastAPI

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.http import openapi
from factories import runtime
from kit.played_api import played, shown
from unit.api.client_calls import CALLS, calls_text

ROOT = Path(__file__).parents[3]
ANSWERS = ROOT / "tests/golden/api-answers.json"
EXAMPLES = ROOT / "api/downburst_api/http/examples.json"
DOCUMENT = ROOT / "docs/openapi.json"


def document(app: FastAPI) -> str:
    """The description without examples of answers, which are many."""
    described = app.openapi()
    for operations in described["paths"].values():
        for operation in operations.values():
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    content.pop("example", None)
    return text_of(described)


def examples(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The first non-empty answer of each route, with times and numbers as they were sent."""
    found: dict[str, Any] = {}
    for answer in answers:
        route = answer["route"].replace(":anytext}", "}")
        if answer["status"] != 204 and "format=csv" not in answer["query"] and found.get(route) in (None, []):
            found[route] = shown(answer)
    return found | OF_TEXTS


def formatted(text: str) -> str:
    """Python code in the repository's format."""
    ruff = [str(Path(sys.executable).with_name("ruff")), "--config", str(ROOT / "pyproject.toml")]
    name = ["--stdin-filename", str(CALLS)]
    for command in (["check", "--select", "I", "--fix", "--quiet", *name, "-"], ["format", "--quiet", *name, "-"]):
        made = [ruff[0], command[0], *ruff[1:], *command[1:]]
        text = subprocess.run(made, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def text_of(value: Any) -> str:
    """JSON in the format of the committed files."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    clock = FakeClock()
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        ledger = Ledger.open(f"sqlite:///{directory}/ledger.sqlite", clock)
        try:
            answers = asyncio.run(played(Path(directory) / "hub", ledger, clock, patch))
            made, _ = runtime(Path(directory) / "other", ledger, clock)
            ANSWERS.write_text(text_of(answers))
            EXAMPLES.write_text(text_of(examples(answers)))
            openapi.examples.cache_clear()
            app = create_app(made)
            DOCUMENT.write_text(document(app))
            CALLS.write_text(formatted(calls_text(app)))
        finally:
            ledger.close()


OF_TEXTS = {
    "GET /wis2/{publisher}/{epoch}/{name}": "GRIB…7777",
    "GET /wis2/{publisher}/record.json": {"id": "urn:wmo:md:us-unidata:gfs", "type": "Feature"},
    "GET /metrics": 'downburst_sites_connected 1\ndownburst_feed_products_total{feed="NGRID"} 4\n',
    "GET /v1/circuits.ics": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n",
    "GET /v1/events": 'event: overview\ndata: {"hub": {"name": "hub"}}\n\n',
}

if __name__ == "__main__":
    main()
