"""Bridges to other systems of notifications: their sources, and what came by them."""

from downburst.domain.bridges.fetching import FetchEnd, WantedProduct
from downburst.domain.bridges.intake import CentreDay, Ended, Hole, Last, Notice, State, Unsettled
from downburst.domain.bridges.origins import OriginLogin
from downburst.domain.bridges.sources import Broker, Wis2Source
from downburst.domain.bridges.standing import BridgesNow, CentreCounts, PassedOver, PublisherNow, SourceNow, Standing

__all__ = [
    "BridgesNow",
    "Broker",
    "CentreCounts",
    "CentreDay",
    "Ended",
    "FetchEnd",
    "Hole",
    "Last",
    "Notice",
    "OriginLogin",
    "PassedOver",
    "PublisherNow",
    "SourceNow",
    "Standing",
    "State",
    "Unsettled",
    "WantedProduct",
    "Wis2Source",
]
