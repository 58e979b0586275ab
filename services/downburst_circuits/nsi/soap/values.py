"""Typed and bounded values of an element; every refusal names the place in the message."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from lxml import etree

from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.stp import Stp, stp

Kind = TypeVar("Kind", bound=StrEnum)


class Node:
    """An element and its place. Names are compared without namespace: providers differ in qualifying children."""

    def __init__(self, element: etree._Element, place: str) -> None:
        self._element = element
        self.place = place

    @property
    def name(self) -> str:
        """The local name."""
        return _local(self._element)

    @property
    def namespace(self) -> str:
        """Empty: it has none."""
        tag = self._element.tag
        return tag[1:].partition("}")[0] if isinstance(tag, str) and tag.startswith("{") else ""

    def at(self, place: str) -> "Node":
        """The same element under another name of its place."""
        return Node(self._element, place)

    def children(self, name: str | None = None) -> Iterator["Node"]:
        """The child elements, or those of one name."""
        for element in self._element:
            if name is None or _local(element) == name:
                yield Node(element, f"{self.place}/{_local(element)}")

    def maybe(self, name: str) -> "Node | None":
        """The child of this name; raises if there are several."""
        found = list(self.children(name))
        if len(found) > 1:
            raise Unreadable(f"{found[0].place} is there {len(found)} times; one is read")
        return found[0] if found else None

    def filled(self, name: str) -> "Node | None":
        """The child of this name unless it is empty: PolyNSI writes SuPA's empty fields as empty elements."""
        found = self.maybe(name)
        return found if found and (found._element.text or "").strip() else None

    def child(self, name: str) -> "Node":
        """The child of this name; raises if it is missing."""
        found = self.maybe(name)
        if found is None:
            raise Unreadable(f"{self.place} lacks {name}")
        return found

    def text(self, *, most: int) -> str:
        """Its text without blanks around it; raises if it is empty or too long."""
        text = (self._element.text or "").strip()
        if not text:
            raise Unreadable(f"{self.place} is empty")
        if len(text) > most:
            raise Unreadable(f"{self.place} has {len(text)} characters; at most {most} are read")
        return text

    def words(self) -> str:
        """A text for people: cut, without control characters; empty if there is none."""
        text = (self._element.text or "").strip()[:WORDS_CHARS_MAX]
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())

    def visible(self, *, most: int) -> str:
        """An identifier: visible ASCII without blanks."""
        text = self.text(most=most)
        if not all("!" <= char <= "~" for char in text):
            raise Unreadable(f"{self.place} is {text[:80]!r}, not an identifier of visible ASCII")
        return text

    def integer(self, *, least: int, most: int) -> int:
        """A whole number between two others, both allowed."""
        return _integer(self.text(most=20), self.place, least, most)

    def has_attribute(self, name: str) -> bool:
        """True if the element has it."""
        return self._element.get(name) is not None

    def attribute(self, name: str, *, least: int, most: int) -> int:
        """A whole number in an attribute."""
        value = self._element.get(name)
        if value is None:
            raise Unreadable(f"{self.place} lacks the attribute {name}")
        return _integer(value, f"{self.place}@{name}", least, most)

    def moment_us(self) -> int:
        """An instant in microseconds since 1970. One without a zone is in UTC."""
        text = self.text(most=40)
        try:
            instant = datetime.fromisoformat(text)
            return to_us(instant if instant.tzinfo else instant.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            raise Unreadable(f"{self.place} is {text!r}, not an instant") from None

    def flag(self) -> bool:
        """An xsd:boolean."""
        text = self.text(most=5)
        if text not in _FLAGS:
            raise Unreadable(f"{self.place} is {text!r}, neither true nor false")
        return _FLAGS[text]

    def one_of(self, kind: type[Kind]) -> Kind:
        """A word of a list."""
        text = self.text(most=80)
        try:
            return kind(text)
        except ValueError:
            raise Unreadable(f"{self.place} is {text!r}, none of {', '.join(kind)}") from None

    def stp(self) -> Stp:
        """A service termination point."""
        try:
            return stp(self.text(most=500))
        except BadInput as error:
            raise Unreadable(f"{self.place}: {error.sentence}") from None


def _integer(text: str, place: str, least: int, most: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(text) <= 20 and least <= int(text) <= most):
        raise Unreadable(f"{place} is {text[:20]!r}, not a whole number between {least} and {most}")
    return int(text)


def _local(element: etree._Element) -> str:
    tag = element.tag
    return tag.rpartition("}")[2][:80] if isinstance(tag, str) else ""


WORDS_CHARS_MAX = 500
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
