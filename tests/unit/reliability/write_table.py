"""Writes the tables of stored files and of handlers into docs/reliability.md."""

import re
from pathlib import Path

from kit import handler_outcomes, stored_files

FILE = Path(__file__).resolve().parents[3] / "docs" / "reliability.md"


def _with_table(text: str, head: str, table: str) -> str:
    return re.sub(rf"(\| {head} \|.*\n(\|.*\n)*)", lambda _: table, text, count=1)


if __name__ == "__main__":
    text = _with_table(FILE.read_text(encoding="utf-8"), "file", stored_files.markdown())
    FILE.write_text(_with_table(text, "handler", handler_outcomes.markdown()), encoding="utf-8")
