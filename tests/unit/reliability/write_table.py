"""Writes the table of stored files into docs/reliability.md."""

import re
from pathlib import Path

from kit.stored_files import markdown

FILE = Path(__file__).resolve().parents[3] / "docs" / "reliability.md"

if __name__ == "__main__":
    text = FILE.read_text(encoding="utf-8")
    FILE.write_text(re.sub(r"(\| file \|.*\n(\|.*\n)*)", lambda _: markdown(), text, count=1), encoding="utf-8")
