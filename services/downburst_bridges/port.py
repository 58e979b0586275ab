"""The node as bridges need it."""

from pathlib import Path
from typing import Protocol

from downburst.domain.bridges import FetchedProduct, WantedProduct
from downburst.domain.products import Acknowledgement, Product


class ProductNode(Protocol):
    """The hub's node, which stores products."""

    async def fetch(self, wanted: WantedProduct) -> FetchedProduct:
        """Fetches a product and stores it; raises `NotFetched` once all attempts have failed."""

    async def ingest(self, path: Path, product: Product, *, remove: bool = True) -> Acknowledgement:
        """Stores a complete file as a product."""
