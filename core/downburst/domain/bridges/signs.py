"""Events about bridges."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BridgesChanged:
    """A source was added, changed or removed, or its failed products are to be tried again."""
