"""The node as bridges need it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from downburst.domain.bridges import FetchEnd, WantedProduct
from downburst.domain.products import Acknowledgement, Product


class ProductNode(Protocol):
    """The hub's node, which stores products."""

    async def fetch(self, wanted: Sequence[WantedProduct], ended: Callable[[Sequence[FetchEnd]], None]) -> None:
        """Fetches products of one feed side by side and stores them; `ended` gets their ends as they come.

        Returns after the last end. An error leaves those without an end by then to the caller.
        """

    async def ingest(self, path: Path, product: Product, *, remove: bool = True) -> Acknowledgement:
        """Stores a complete file as a product."""
