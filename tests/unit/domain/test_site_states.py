"""One function determines a site's state, and a backlog has one wording."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from downburst.domain.backlog import Backlog, FeedBacklog
from downburst.domain.sites import Site
from downburst.foundation.clock import to_us
from downburst.live.site_states import SiteState, standing
from downburst.live.state import LdmLink, SiteSession

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
SITE = Site("unl.edu")
HERE = SiteSession("unl.edu", True, NOW)
GONE = replace(HERE, connected=False, reason="ended by the site")


@pytest.mark.parametrize(
    ("site", "session", "enrolled", "ever_stood", "state"),
    [
        (SITE, None, False, False, SiteState.NEVER_ENROLLED),
        (SITE, None, True, False, SiteState.NEVER_CONNECTED),
        (SITE, None, True, True, SiteState.AWAY),
        (SITE, HERE, True, True, SiteState.CONNECTED),
        (SITE, replace(HERE, stand_by=True), True, True, SiteState.STANDS_BY),
        (SITE, GONE, True, False, SiteState.AWAY),
        (replace(SITE, active=False), HERE, True, True, SiteState.REMOVED),
    ],
)
def test_the_state_of_a_site(
    site: Site, session: SiteSession | None, enrolled: bool, ever_stood: bool, state: SiteState
) -> None:
    assert standing(site, session, enrolled=enrolled, ever_stood=ever_stood).state is state


def test_a_site_with_an_ldm_needs_no_credential() -> None:
    site = replace(SITE, ldm_host="ldm")
    assert standing(site, None, enrolled=False).state is SiteState.NEVER_CONNECTED
    assert standing(site, None, LdmLink(2, NOW), enrolled=False).state is SiteState.CONNECTED
    assert standing(site, None, LdmLink(0, NOW, reason="away"), enrolled=False).words.endswith("UTC: away")


def test_the_words_of_a_state() -> None:
    assert standing(SITE, None, enrolled=False).words == "never enrolled"
    assert standing(SITE, None, enrolled=True).words == "enrolled, never connected"
    assert standing(SITE, GONE, enrolled=True).words == "away since 2026-03-14 15:09:26 UTC: ended by the site"
    assert standing(SITE, None, enrolled=True, ever_stood=True).words == "away"


def test_the_words_of_a_backlog() -> None:
    def lacks(products: int, size: int, age_s: float, lost: int = 0, *, counting: bool = False) -> str:
        oldest_us = to_us(NOW - timedelta(seconds=age_s))
        found = Backlog.of([FeedBacklog("F", True, products, size, oldest_us, lost, lost * 10, counting)])
        assert found is not None
        return found.words(NOW)

    assert lacks(4_300, 1_200_000_000, 720) == "lacks 4,300 products (1.2 GB), the oldest 12 min old"
    assert lacks(1, 10, 3) == "lacks 1 product (10 bytes), the oldest 3 s old"
    assert lacks(5, 2_000, 7_300, counting=True) == "lacks at least 5 products (2.0 kB), the oldest 2 h old"
    assert lacks(0, 0, 0, 2) == "lacks 0 products; 2 products (20 bytes) left the log before delivery"
    assert Backlog.of([FeedBacklog("F", False)]) is None
