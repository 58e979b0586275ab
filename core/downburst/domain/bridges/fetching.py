"""Products that the node fetches."""

from dataclasses import dataclass, field

from downburst.domain.bridges.origins import OriginLogin
from downburst.domain.products import Acknowledgement, Product


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
class FetchedProduct:
    """The node's answer."""

    acknowledgement: Acknowledgement
    sha512: str
    """In hexadecimal digits."""
