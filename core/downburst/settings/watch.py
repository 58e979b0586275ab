"""Settings of a watched directory."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from downburst.settings.section import Section


class WatchRule(Section):
    """Maps paths under the watched directory to a feed and a product id."""

    match: str = Field(description="Regular expression on the path relative to the directory, from its start.")
    feed: str = Field(description="Feed, with back-references such as \\1.")
    product_id: str = Field(
        default="\\g<0>", description="Product id, with back-references; the whole match by default."
    )


class WatchSettings(Section):
    """A directory from which products are taken."""

    directory: Path | None = Field(default=None, description="Watched directory; none: directory ingest is off.")
    apart: bool = Field(
        default=False,
        description="Whether `downburst ingest` watches the directory, as a separate process, and the hub does not.",
    )
    rules: tuple[WatchRule, ...] = Field(
        default=(),
        description="The first match wins. None: the first directory is the feed, the rest the product id.",
    )
    after: Literal["remove", "move"] = Field(
        default="remove",
        description="Treatment of an acknowledged file: removed, or moved to `done`. Files that stay fill the disk.",
    )
    concurrency: int = Field(
        default=8,
        ge=1,
        le=256,
        description="Products submitted concurrently. The default keeps the node busy; more brings nothing.",
    )
