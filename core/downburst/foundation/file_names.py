"""Names of the files at a receiving site: a reversible, bounded encoding of feed, epoch, sequence and product id.

A product of feed ``IDS|DDPLUS`` with the id ``SAUS70 KWBC 231200`` is stored, relative to the site's directory, at
``received/IDS%7CDDPLUS/00000000000000a1-0000000042_SAUS70%20KWBC%20231200``. The rules, shared with the node in Rust
through ``tests/golden/file-names.json``:

* Letters, digits, ``.`` and ``-`` stand for themselves; every other byte of the UTF-8 text is ``%XX`` in upper case.
  A ``.`` that would open a path component's text is encoded too, so that no component is hidden or points upwards.
* The id follows ``<epoch: 16 hex digits>-<sequence: at least 10 digits>_``.
* An encoded id of more than 180 characters is cut, never inside a ``%XX``; each piece but the last ends in ``~``
  and is a directory. No piece can be taken for another, because ``~`` and ``_`` never stand for themselves.
* Exactly one name belongs to a product: a name that the rules would not write is refused.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True, order=True)
class ReceivedName:
    """The parts of a received file's name."""

    feed: str
    epoch: int
    sequence: int
    product_id: str


class FileNameError(ValueError):
    """The path is not a name that a site gives to a received product."""


def encode(name: ReceivedName) -> str:
    """The path of a received product, relative to the site's ``received`` directory."""
    pieces = _pieces(name.product_id)
    stem = f"{name.epoch:016x}-{name.sequence:010d}_"
    return "/".join([feed_directory(name.feed), stem + "~/".join(pieces)])


def feed_directory(feed: str) -> str:
    """The directory of a feed below ``received``; a feed's name is short enough never to be cut."""
    return "".join(_token(byte, opens=index == 0) for index, byte in enumerate(feed.encode()))


def decode(path: "str | PurePosixPath") -> ReceivedName:
    """Parses ``path`` (relative to the ``received`` directory); refuses a name that `encode` would not write."""
    text = str(path)
    feed, _, rest = text.partition("/")
    match = _FILE.fullmatch(rest)
    if match is None:
        raise FileNameError(f"{text!r} is not <feed>/<epoch>-<sequence>_<id>; no receiving site wrote this name")
    encoded_id = match["id"].replace("~/", "")
    name = ReceivedName(
        feed=_decode_text(feed, within=text),
        epoch=int(match["epoch"], 16),
        sequence=int(match["sequence"]),
        product_id=_decode_text(encoded_id, within=text),
    )
    if encode(name) != text:
        raise FileNameError(f"{text!r} is another spelling of {encode(name)!r}; no receiving site wrote this name")
    return name


def _pieces(product_id: str) -> list[str]:
    pieces = [""]
    for byte in product_id.encode():
        token = _token(byte, opens=not pieces[-1])
        if len(pieces[-1]) + len(token) > PIECE_CHARACTERS:
            pieces.append(_token(byte, opens=True))
        else:
            pieces[-1] += token
    return pieces


def _token(byte: int, *, opens: bool) -> str:
    if byte in _PLAIN and not (opens and byte == _DOT):
        return chr(byte)
    return f"%{byte:02X}"


def _decode_text(encoded: str, *, within: str) -> str:
    if _ENCODED.fullmatch(encoded) is None:
        raise FileNameError(f"{within!r} holds characters that a site would have written as %XX")
    data = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), encoded.encode())
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileNameError(f"{within!r} does not decode to UTF-8 text ({error.reason})") from error


PIECE_CHARACTERS = 180
"""Longest piece of an encoded id: with epoch, sequence and ``~`` it stays below the 255 bytes of a file name."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
_DOT = ord(".")
_FILE = re.compile(r"(?P<epoch>[0-9a-f]{16})-(?P<sequence>[0-9]{10,20})_(?P<id>[^~]+(?:~/[^~]+)*)", re.ASCII)
_ENCODED = re.compile(r"(?:[A-Za-z0-9.-]|%[0-9A-F]{2})+", re.ASCII)
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")
