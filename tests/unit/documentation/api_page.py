"""Page docs/reference/api.md: every route with its description, from docs/openapi.json."""

import json
from pathlib import Path
from typing import Any

from unit.documentation.commands_pages import ROOT, escaped


def markdown() -> str:
    """The whole page: a table for each subject, in the order of the description."""
    described = json.loads((ROOT / "docs" / "openapi.json").read_text())
    subjects: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            subjects.setdefault(operation["tags"][0], []).append(_row(method, path, operation))
    tables = (f"## {_heading(name)}\n\n{TABLE}" + "\n".join(rows) + "\n" for name, rows in subjects.items())
    return "\n".join([HEAD, *tables])


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    sentence = escaped(" ".join(operation["description"].split("\n\n")[0].split()))
    return f"| `{method.upper()} {path}` | {sentence} |"


def _heading(name: str) -> str:
    return "LDM" if name == "ldm" else name[0].upper() + name[1:]


FILE: Path = ROOT / "docs" / "reference" / "api.md"
TABLE = "| route | purpose |\n|---|---|\n"
HEAD = """\
# API

Generated from `docs/openapi.json`; do not edit. A hub shows each route with its parameters, bodies and answers at
its own address `/docs`, and `/openapi.json` is the description for programs. [access.md](../access.md) has the rights
that each route needs, [python-client.md](../python-client.md) a client.

Errors are problem documents (RFC 9457): `detail` is the sentence that commands print.
"""
