"""Events about bridges."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BridgesChanged:
    """A source or publisher was added, changed or removed, or failed products are to be tried again."""
