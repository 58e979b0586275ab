"""The overview: what is wrong, what flows, how and why, who has it, how late."""

from downburst_api.overview.document import overview_of, router

__all__ = ["overview_of", "router"]
