"""Ways in which users name a product: an id, FEED:SEQUENCE, the name of a received file, or a digest."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from downburst.foundation.errors import BadInput, BadName
from downburst.foundation.file_names import FileNameError, decode
from downburst.foundation.names import check_product_id


class Meaning(StrEnum):
    """The interpretation of a text."""

    FILE = "file"
    """The path of a received file, at any site."""
    SEQUENCE = "sequence"
    PRODUCT_ID = "id"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class ProductName:
    """One interpretation of a text."""

    meaning: Meaning
    feed: str | None = None
    epoch: str | None = None
    sequence: int | None = None
    product_id: str | None = None
    digest: str | None = None


def meanings(text: str, *, feed: str | None, feeds: Collection[str]) -> list[ProductName]:
    """Every interpretation of `text`, the most certain first; raises `BadInput` if there is none."""
    text = text.strip()
    found = [name for read in (_file, _sequence) if (name := read(text, feeds)) is not None]
    if text.isascii() and text.isdecimal() and feed is not None:
        found.append(ProductName(Meaning.SEQUENCE, feed=feed, sequence=int(text)))
    found += _product_id(text, feed)
    if _DIGEST.fullmatch(text):
        found.append(ProductName(Meaning.DIGEST, feed=feed, digest=text.lower()))
    found = [name for name in found if feed is None or name.feed in (None, feed)]
    if not found:
        raise BadInput(
            f"{text[:200]!r} names no product; write a product id, FEED:SEQUENCE, the path of a received file, "
            "or at least 8 hexadecimal digits of a digest"
        )
    return found


def _file(text: str, feeds: Collection[str]) -> ProductName | None:
    del feeds
    parts = text.split("/")
    # A name that long ids spread over directories ends the path; the part before it is local to the site.
    for start in range(max(len(parts) - 1, 0)):
        try:
            name = decode("/".join(parts[start:]))
        except FileNameError:
            continue
        return ProductName(Meaning.FILE, feed=name.feed, epoch=str(name.epoch), sequence=name.sequence)
    return None


def _sequence(text: str, feeds: Collection[str]) -> ProductName | None:
    feed, colon, number = text.rpartition(":")
    if not colon or feed not in feeds or not _NUMBER.fullmatch(number):
        return None
    return ProductName(Meaning.SEQUENCE, feed=feed, sequence=int(number))


def _product_id(text: str, feed: str | None) -> list[ProductName]:
    try:
        check_product_id(text)
    except BadName:
        return []
    return [ProductName(Meaning.PRODUCT_ID, feed=feed, product_id=text)]


_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-fA-F]{8,64}", re.ASCII)
