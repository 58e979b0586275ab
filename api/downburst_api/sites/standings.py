"""The state of sites, gathered from the ledger and the present for all routes."""

from dataclasses import dataclass

from downburst.domain.sites import Site
from downburst.ledger import Transaction
from downburst.ledger.repositories.receipts import Received
from downburst.live.site_states import SiteStanding, standing
from downburst.live.state import LiveState


@dataclass(frozen=True, slots=True)
class Standings:
    """The ledger's facts about sites that are not connected."""

    enrolled: set[str]
    """Sites with a receiver that ever had a credential."""
    received: dict[str, Received]
    """By site; without sites that never had a position."""

    relays: set[str]
    """Records of relays, which take no products."""

    @classmethod
    def read(cls, tx: Transaction) -> "Standings":
        """Reads the facts as of now."""
        relays = {relay.name for relay in tx.fleet.relays.all()}
        return cls(tx.enrolment.credentials.enrolled(), tx.measured.settled.by_site(), relays)

    def of(self, site: Site, live: LiveState) -> SiteStanding:
        """The standing of a site."""
        received = self.received.get(site.name)
        return standing(
            site,
            live.session(site.name),
            live.ldm.sites.get(site.name),
            enrolled=site.name in self.enrolled,
            ever_stood=received is not None,
            last_heard=received.last_receipt_at if received else None,
        )
