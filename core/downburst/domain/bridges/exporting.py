"""Products that leave a feed for another system."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExportedProduct:
    """A product of a log, with the statements of its source."""

    feed: str
    epoch: str
    sequence: int
    product_id: str
    size_bytes: int
    stored_at: datetime
    properties: bytes | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """Products of a log in their order."""

    epoch: str
    head: int
    read_to: int
    """Every product up to this one is in `products`, was never assigned, is forgotten, or is one of the hub's own."""
    products: tuple[ExportedProduct, ...]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A product whose bytes are in a file."""

    product: ExportedProduct
    sha512: bytes
    path: Path
