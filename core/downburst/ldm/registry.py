"""LDM's registry: an XML file of nested keys, edited by `regutil`."""

from pathlib import Path
from xml.etree import ElementTree

from downburst.foundation.errors import BadInput


def read_registry(path: Path) -> dict[str, str]:
    """The values by their keys, for example `/queue/size`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); name a file that can") from None
    if b"<!ENTITY" in content:
        raise BadInput(f"{path} defines entities, which a registry never does; name LDM's registry.xml")
    try:
        root = ElementTree.fromstring(content)  # noqa: S314
    except ElementTree.ParseError as error:
        raise BadInput(f"{path} is not XML ({error}); name LDM's registry.xml") from None
    values: dict[str, str] = {}
    _collect(root, "", values)
    return values


def size_bytes(text: str) -> int | None:
    """Parses a size in LDM's notation: 500M, 2G, or bytes."""
    number, unit = text[:-1], UNITS.get(text[-1:].upper(), 0)
    if text.isdecimal():
        return int(text)
    return int(number) * unit if unit and number.isdecimal() else None


def _collect(element: ElementTree.Element, key: str, values: dict[str, str]) -> None:
    text = (element.text or "").strip()
    if text and len(element) == 0:
        values[key] = text
    for child in element:
        _collect(child, f"{key}/{child.tag}", values)


UNITS = {"K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}
