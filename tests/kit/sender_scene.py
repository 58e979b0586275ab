"""A hub, two senders, three sites that receive two feeds, and a source that continues whatever is killed."""

from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx

from kit.kafka import Kafka
from kit.node import Prefix, SiteNode
from kit.patience import wait_for
from kit.postgres import Postgres
from kit.senders import Sender, nodes_of, seconds_until
from kit.steady_source import Source
from kit.whole_hub import WholeHub

FEEDS = ("NGRID", "CONDUIT")


class Scene:
    """A hub, two senders, three sites that receive two feeds, and a source that continues whatever is killed."""

    def __init__(
        self, home: Path, server: Postgres, broker: Kafka, *, sites_prefix: Prefix = (), more_kafka: str = ""
    ) -> None:
        section = (
            f'[kafka]\nservers = "{broker.address}"\nprefix = "{home.name}"\nproducts = "ingest"\nreplication = 1\n'
            + more_kafka
        )
        self.url = server.url(server.database())
        self.hub = WholeHub(home / "hub", ledger_url=self.url, more=section).start()
        for feed in FEEDS:
            self.hub.ask("POST", "/v1/feeds", json={"feed": feed, "class": "grid"})
        self.senders = [Sender(home / name, self.hub, section).start() for name in ("one", "two")]
        self.sites = [self._site(home / name, sites_prefix) for name in ("a.edu", "b.edu", "c.edu")]
        for site in self.sites:
            wait_for("the site to be served by senders", partial(self.is_served, site), 60)
            # A feed that is new to a site begins with the products after the site's report of it.
            wait_for("the site to have begun both feeds", partial(_has_begun, site), 60)
        self.source = Patient(self.hub)
        self.source.start()

    def is_served(self, site: SiteNode) -> bool:
        """True if connected nodes serve all feeds of the site."""
        return Counter(feed for feeds in nodes_of(site).values() for feed in feeds) == Counter(FEEDS)

    def sender_of(self, feed: str, site: SiteNode | None = None) -> Sender:
        """The sender that serves the feed to the site, or to the first site."""
        (address,) = [address for address, feeds in nodes_of(site or self.sites[0]).items() if feed in feeds]
        return next(sender for sender in self.senders if sender.sites == address)

    def newest_is_everywhere(self, after: int) -> bool:
        """True if every site has a product that was acknowledged after the first `after` ones."""
        newer = set(list(self.source.acknowledged)[after:])
        return all(newer & {number for feed, number in site.received() if feed == "NGRID"} for site in self.sites)

    def recovery_s(self, what: str) -> float:
        """The time until every site has a product that was acknowledged after the call; printed as well."""
        taken_s = seconds_until(
            f"products at all sites after {what}", partial(self.newest_is_everywhere, len(self.source.acknowledged))
        )
        print(f"{what}: new products at all sites after {taken_s:.1f} s")
        return taken_s

    def finish(self) -> None:
        """Checks that every acknowledged product is at every site, once; sites continue, for their last receipts."""
        self.source.finish()
        for site in self.sites:
            wait_for("all products at the site", partial(self._lacks_nothing, site), 120)
            ids = Counter(product_id for product_id, _ in site.received().values())
            assert not [one for one, count in ids.items() if count > 1], "came twice"

    def end(self) -> None:
        """Ends all processes; each must end as requested."""
        for site in self.sites:
            if site.process.poll() is None:
                assert site.stop() == 0
        for sender in self.senders:
            if sender.process.poll() is None:
                assert sender.drain() == 0
        assert self.hub.stop() == 0

    def _lacks_nothing(self, site: SiteNode) -> bool:
        return not self.source.lacking_at(site)

    def _site(self, directory: Path, prefix: Prefix) -> SiteNode:
        name = directory.name
        site = SiteNode(directory, self.hub.sites, prefix=prefix)
        self.hub.ask("POST", "/v1/sites", json={"site": name, "multicast_interface": "127.0.0.1"})
        for feed in FEEDS:
            self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": feed, "pattern": ".*"})
        directory.mkdir()
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        return site.start()


class Patient(Source):
    """Accepts "it is here already" as an answer: the previous answer was lost with the hub."""

    def _put(self, client: httpx.Client, number: int, content: bytes) -> int:
        while True:
            with suppress(httpx.TransportError):
                answer = client.put(f"/v1/feeds/NGRID/products/p{number}", content=content)
                if answer.is_success:
                    told = answer.json()
                    return int(told["sequence"] if told.get("sequence") is not None else told["duplicate_of"])
            self.over.wait(0.05)


def _has_begun(site: SiteNode) -> bool:
    return len(list((site.directory / "state/positions").glob("*.cbor"))) == len(FEEDS)
