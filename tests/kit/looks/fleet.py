"""The time, the sites and the feeds of the scenes."""

from datetime import UTC, datetime

from downburst.domain.feeds import FeedClass
from downburst.domain.sites import Place

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
"""The time of each scene, at the hub and in the browser."""

SITES = {
    "cornell.edu": Place("Ithaca", 42.4, -76.5),
    "unl.edu": Place("Lincoln", 40.8, -96.7),
    "otago.ac.nz": Place("Dunedin", -45.9, 170.5),
    "ufrj.br": Place("Rio de Janeiro", -22.9, -43.2),
    "dwd.de": Place("Offenbach", 50.1, 8.8),
    "bom.gov.au": Place(),
}
FEEDS = {
    "CONDUIT": FeedClass.GRID,
    "NEXRAD2": FeedClass.OBSERVATION,
    "NGRID": FeedClass.GRID,
    "IDS|DDPLUS": FeedClass.OBSERVATION,
    "HDS": FeedClass.OBSERVATION,
}
DOWN, LATE = "otago.ac.nz", "ufrj.br"
