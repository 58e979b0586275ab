"""The node as publishers need it."""

from typing import Protocol

from downburst.domain.bridges.exporting import ExportedFile, Followed


class PublishedNode(Protocol):
    """The hub's node, which has the products."""

    async def follow(self, feed: str, after: int, *, limit: int = 100) -> Followed:
        """The products behind a number of a feed's log, in their order."""

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        """A file with the bytes of a product; raises `NotKept` if the log has none."""
