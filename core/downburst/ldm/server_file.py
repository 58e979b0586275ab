"""`ldmd.conf`: the requests, permissions and programs of an LDM server."""

import re
from dataclasses import dataclass
from pathlib import Path

from downburst.foundation.errors import BadInput
from downburst.ldm.feed_types import parse_feed_type
from downburst.ldm.lines import Spot, included, read_lines


@dataclass(frozen=True, slots=True)
class Request:
    """REQUEST: one connection to an upstream."""

    spot: Spot
    feeds: int
    pattern: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Allow:
    """ALLOW: hosts that may request feeds, and the subset of products."""

    spot: Spot
    feeds: int
    host: str
    ok: str | None
    not_ok: str | None


@dataclass(frozen=True, slots=True)
class Accept:
    """ACCEPT: hosts that may push feeds."""

    spot: Spot
    feeds: int
    pattern: str
    host: str


@dataclass(frozen=True, slots=True)
class Exec:
    """EXEC: a program that the server starts."""

    spot: Spot
    command: str


@dataclass(frozen=True, slots=True)
class Multicast:
    """MULTICAST or RECEIVE, of LDM-7."""

    spot: Spot
    words: str


Statement = Request | Allow | Accept | Exec | Multicast


def read_server_file(path: Path) -> list[Statement]:
    """Reads the statements in order; those of included files replace the INCLUDE."""
    return _read(path, way=())


def _read(path: Path, *, way: tuple[Path, ...]) -> list[Statement]:
    found: list[Statement] = []
    for spot, line in read_lines(path):
        words = _Words(spot, line)
        keyword = words.next()
        if keyword is None:
            continue
        if keyword.upper() == "INCLUDE":
            inner = included(spot, words.needed("the file to include"), (*way, path.resolve()))
            words.end()
            found += _read(inner, way=(*way, path.resolve()))
        else:
            found.append(_statement(words, keyword.upper()))
    return found


def _statement(words: "_Words", keyword: str) -> Statement:
    match keyword:
        case "REQUEST":
            feeds, pattern = words.feeds(), words.needed("a pattern")
            host, port = _address(words, words.needed("the upstream's host"))
            words.next()  # PRIMARY or ALTERNATE, which LDM-6 determines itself
            made: Statement = Request(words.spot, feeds, pattern, host, port)
        case "ALLOW":
            made = Allow(words.spot, words.feeds(), words.needed("a host pattern"), words.next(), words.next())
        case "ACCEPT":
            made = Accept(words.spot, words.feeds(), words.needed("a pattern"), words.needed("a host pattern"))
        case "EXEC":
            made = Exec(words.spot, words.needed("a command in quotes"))
        case "MULTICAST" | "RECEIVE":
            return Multicast(words.spot, f"{keyword} {words.rest()}")
        case _:
            raise words.spot.wrong(
                f"{keyword} is not a keyword; there are REQUEST, ALLOW, ACCEPT, EXEC, INCLUDE, MULTICAST and RECEIVE"
            )
    words.end()
    return made


def _address(words: "_Words", text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise words.spot.wrong(f"{text!r} is not host or host:port")
    return host, int(port) if port else LDM_PORT


class _Words:
    """The words of a line: in double quotes, or up to the next blank. A # at the start of a word begins a comment."""

    def __init__(self, spot: Spot, line: str) -> None:
        self.spot = spot
        self.line = line
        self.at = 0

    def next(self) -> str | None:
        found = _WORD.match(self.line, self.at)
        if found is None or not found["rest"] or found["rest"].startswith("#"):
            return None
        if found["rest"].startswith('"') and found["quoted"] is None:
            raise self.spot.wrong("a quotation mark is not closed")
        self.at = found.end()
        return found["quoted"].replace('\\"', '"') if found["quoted"] is not None else found["rest"]

    def needed(self, what: str) -> str:
        word = self.next()
        if word is None:
            raise self.spot.wrong(f"{what} is missing")
        return word

    def feeds(self) -> int:
        """Reads a feed type: quoted, or names joined by operators."""
        quoted = _WORD.match(self.line, self.at)
        bare = _FEEDS.match(self.line, self.at)
        if bare is not None and (quoted is None or quoted["quoted"] is None):
            text, self.at = bare[0].strip(), bare.end()
        else:
            text = self.needed("a feed type")
        try:
            return parse_feed_type(text)
        except BadInput as error:
            raise self.spot.wrong(error.sentence) from None

    def rest(self) -> str:
        return self.line[self.at :].strip()

    def end(self) -> None:
        more = self.next()
        if more is not None:
            raise self.spot.wrong(f"{more!r} is too many words for this line; put words with blanks in double quotes")


LDM_PORT = 388

_WORD = re.compile(r'\s*(?P<rest>"(?P<quoted>(?:[^"\\]|\\.)*)"|\S*)')
_NAME = r"[~(\s]*[A-Za-z0-9]+(?:\s*\))*"
_FEEDS = re.compile(rf"{_NAME}(?:\s*[|+-]{_NAME})*(?=\s|$)")
