"""Sentences of Markdown: prose and quoted output, without commands, code in backticks and addresses of links."""

import re
from collections.abc import Iterator
from pathlib import Path

from prose.found import HOLE, Sentence, collapsed


def sentences(root: Path, names: list[str]) -> Iterator[Sentence]:
    """Each paragraph, row, item or line of quoted output of all the named files."""
    for name in names:
        for piece in _pieces((root / name).read_text()):
            bare = collapsed(re.sub(r"`[^`]*`", HOLE, re.sub(r"\]\([^)]*\)|<https?:[^>]*>", "]", piece)))
            if bare:
                yield Sentence("documents", name, bare)


def _pieces(text: str) -> Iterator[str]:
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        opens = re.match(r"\s*(```|~~~)(\w*)", line)
        if opens or not line.strip() or _STARTS.match(line):
            yield " ".join(lines)
            lines = []
        if opens:
            fence = "" if fence else opens[2] or "text"
        elif fence == "text":
            yield line
        elif line.lstrip().startswith("|"):
            yield from line.strip().strip("|").split("|")
        elif not fence:
            lines.append(_STARTS.sub("", line))
    yield " ".join(lines)


_STARTS = re.compile(r"^\s*(?:[*+-]|\d+\.|#+|>) ")
