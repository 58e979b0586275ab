"""Products that the node fetches."""

from dataclasses import dataclass, field

from downburst.domain.bridges.origins import OriginLogin
from downburst.domain.products import Product
from downburst.foundation.errors import DownburstError


@dataclass(frozen=True, slots=True)
class WantedProduct:
    """A product that another system has announced, at its address."""

    url: str
    product: Product
    size_bytes: int | None = None
    digest: tuple[str, str] | None = None
    """Method and hexadecimal digits, as announced."""
    may_ask_private: bool = False
    login: OriginLogin | None = field(default=None, repr=False)
    """At the server of the address alone."""


@dataclass(frozen=True, slots=True)
class FetchEnd:
    """The end of one download of a group."""

    place: int
    """Of its product in the group, from 0."""
    sequence: int | None = None
    """The number of the product in its feed, which it may have had before; None: there is a refusal."""
    size_bytes: int = 0
    refusal: DownburstError | None = None


GROUP_PRODUCTS = 64
"""The most products of a group (crate hub, `FETCH_PRODUCTS_MAX`)."""
