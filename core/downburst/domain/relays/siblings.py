"""Repair between sites: a site's exchange of products with its siblings, and the bytes that the hub did not send."""

from dataclasses import dataclass
from datetime import datetime

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_site_name

UPLOAD_BYTES_PER_SECOND = 10_000_000
"""The ceiling of a site that names none: 80 Mb/s, a small part of the access of most sites."""
UPLOAD_BYTES_PER_DAY = 50_000_000_000
"""The day's budget of a site that names none."""


@dataclass(frozen=True, slots=True)
class SiblingExchange:
    """A site gives products to siblings and takes what it lacks from them. Each learns the others' addresses."""

    site: str
    address: str | None = None
    """`HOST:PORT` at which siblings reach it; None: the address of its session, and the port that it reports."""
    upload_bytes_per_second: int = UPLOAD_BYTES_PER_SECOND
    """The most to all siblings together."""
    upload_bytes_per_day: int = UPLOAD_BYTES_PER_DAY
    """From midnight to midnight UTC."""
    set_by: str = ""
    set_at: datetime | None = None

    def __post_init__(self) -> None:
        check_site_name(self.site)
        if self.address is not None:
            _check_address(self.address)


@dataclass(frozen=True, slots=True)
class Saved:
    """Products that siblings gave to a site: the hub did not have to send them."""

    site: str
    feed: str
    products: int
    bytes: int


def _check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536 or len(address) > MOST_ADDRESS:
        raise BadInput(f"{address!r} is no address for siblings; write HOST:PORT, such as site.example.edu:7380")


MOST_ADDRESS = 261
"""A name of DNS with its port."""
