"""Files of lines, and positions in them."""

from dataclasses import dataclass
from pathlib import Path

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of a file, counted from 1."""

    file: Path
    number: int

    def __str__(self) -> str:
        """The format of editors and compilers."""
        return f"{self.file}:{self.number}"

    def wrong(self, what: str) -> BadInput:
        """The error of this line."""
        return BadInput(f"{self}: {what}")


def read_lines(path: Path) -> list[tuple[Spot, str]]:
    """Reads the lines of a text file. Bytes other than UTF-8 are read as Latin-1, found in comments of old files."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); name a file that can") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [(Spot(path, number), line) for number, line in enumerate(text.split("\n"), 1)]


def included(spot: Spot, name: str, way: tuple[Path, ...]) -> Path:
    """The file that an INCLUDE names, relative to the including file unless it is absolute."""
    path = spot.file.parent / name
    if path.resolve() in way or len(way) >= MOST_FILES:
        raise spot.wrong(f"INCLUDE of {name} never ends: it includes itself; remove one INCLUDE")
    return path


MOST_FILES = 16
"""Depth of nested files; two are common."""
