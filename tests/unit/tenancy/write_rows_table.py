"""Writes the table of the bounds on the ledger's rows into docs/access.md."""

import re
from pathlib import Path

from unit.tenancy.rows_table import markdown

FILE = Path(__file__).resolve().parents[3] / "docs" / "access.md"

if __name__ == "__main__":
    text = FILE.read_text(encoding="utf-8")
    FILE.write_text(
        re.sub(r"\| table \| rows are.*\n(\|.*\n)*", lambda _: markdown(), text, count=1), encoding="utf-8"
    )
