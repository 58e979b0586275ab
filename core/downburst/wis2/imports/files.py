"""Files of a configuration: their text, places in it, and the bounds of what is read."""

from dataclasses import dataclass

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        """The format of editors and compilers."""
        return f"{self.file}:{self.line}"

    def wrong(self, what: str) -> BadInput:
        """The error of this line."""
        return BadInput(f"{self}: {what}")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that the user named."""

    name: str
    text: str

    def at(self, line: int) -> Spot:
        """A line of it."""
        return Spot(self.name, line)


def config_file(name: str, content: bytes) -> ConfigFile:
    """The file's text; refuses one that is too large or no text."""
    if len(content) > LARGEST_FILE_BYTES:
        most = LARGEST_FILE_BYTES // 1024
        raise BadInput(f"{name} has {len(content)} bytes, a configuration at most {most} KiB; name another file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Spot(name, line).wrong("the text is not UTF-8; save it as UTF-8") from None
    if "\0" in text:
        raise BadInput(f"{name} is no text file; name a configuration of wis2box or wis2downloader")
    return ConfigFile(name, text.replace("\r\n", "\n").replace("\r", "\n"))


LARGEST_FILE_BYTES = 256 * 1024
"""Ten times the largest public configuration."""

MOST_FILES = 200
"""Files of one import: a wis2box has one for each dataset."""
