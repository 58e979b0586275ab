"""Products on their way into a log, and the node's answer."""

from dataclasses import dataclass
from datetime import datetime

from downburst.foundation.names import check_feed_name, check_product_id


@dataclass(frozen=True, slots=True)
class Product:
    """Facts about a product before its bytes are stored."""

    feed: str
    product_id: str
    created_at: datetime | None = None
    origin: str | None = None
    properties: bytes | None = None
    """The statements of its source about it: a document in UTF-8 of at most 8 KiB, which is stored with it."""

    def __post_init__(self) -> None:
        check_feed_name(self.feed)
        check_product_id(self.product_id)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The node's answer to an ingested product: stored at `sequence`, or a duplicate of `duplicate_of`."""

    size_bytes: int
    digest: str
    sequence: int | None = None
    epoch: str | None = None
    stored_at: datetime | None = None
    created_at: datetime | None = None
    duplicate_of: int | None = None
