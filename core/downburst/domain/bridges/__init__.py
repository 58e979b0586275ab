"""Bridges to other systems of notifications: their sources, and what came by them."""

from downburst.domain.bridges.fetching import FetchedProduct, WantedProduct
from downburst.domain.bridges.intake import CentreDay, Hole, Last, Notice, State, Unsettled
from downburst.domain.bridges.sources import Broker, Wis2Source
from downburst.domain.bridges.standing import PassedOver, SourceNow, Standing

__all__ = [
    "Broker",
    "CentreDay",
    "FetchedProduct",
    "Hole",
    "Last",
    "Notice",
    "PassedOver",
    "SourceNow",
    "Standing",
    "State",
    "Unsettled",
    "WantedProduct",
    "Wis2Source",
]
