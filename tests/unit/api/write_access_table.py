"""Writes the table of routes and callers into docs/access.md."""

import re
from pathlib import Path

from unit.api.access_table import markdown

FILE = Path(__file__).resolve().parents[3] / "docs" / "access.md"

if __name__ == "__main__":
    FILE.write_text(re.sub(r"\| route \|.*", lambda _: markdown(), FILE.read_text(), count=1, flags=re.DOTALL))
