"""Requests of a hub's other parts to its node, while it runs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from downburst.deliveries import FoundDeliveries, ProductFacts, ProductName
from downburst.deliveries.browsing import Browse, Browsed
from downburst.domain.bridges import FetchEnd, WantedProduct
from downburst.domain.bridges.exporting import ExportedFile, Followed
from downburst.domain.feeds import FeedLog
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import NodeAway
from downburst.live.traced import TracedSite, TracerQuestion
from downburst.settings.hub import Settings
from downburst_worker.messages import lines
from downburst_worker.messages.delivery_lines import (
    browse_job,
    browsed,
    deliveries_job,
    found_deliveries,
    product_facts,
)
from downburst_worker.messages.export_lines import export_job, exported_file, follow_job, followed
from downburst_worker.messages.fetch_lines import fetch_ends, fetch_job
from downburst_worker.messages.log_lines import feed_logs
from downburst_worker.messages.tracer_lines import traced_site, tracer_job
from downburst_worker.node import Line, NodeProcess
from downburst_worker.proving import prove_store
from downburst_worker.remote.questions import Remote
from downburst_worker.roles import Role


class Asking:
    """Requests, and products to ingest; `NodeAway` while the node is restarted."""

    _settings: Settings
    _node: NodeProcess
    _role: Role
    _remote: Remote

    @property
    def running(self) -> bool:
        """True if the node is up and has the wanted state."""
        return self._node.running

    @property
    def restarts(self) -> int:
        """The number of the node's deaths and restarts."""
        return self._node.restarts

    @property
    def pid(self) -> int | None:
        """The node's process id while it runs."""
        return self._node.pid

    async def ingest(
        self, path: Path, product: Product, *, remove: bool = True, digest: object = None
    ) -> Acknowledgement:
        """Makes a product of a complete file; the answer confirms its storage, or names its duplicate."""
        job = lines.ingest_job(str(path), product, digest=digest, remove=remove)
        return lines.acknowledgement(await self._node.ask("ingest", timeout_s=INGEST_S, **job))

    async def fetch(self, wanted: Sequence[WantedProduct], ended: Callable[[Sequence[FetchEnd]], None]) -> None:
        """Fetches announced products of one feed and stores them; `ended` gets their ends as they come."""

        def heard(answer: Line) -> None:
            ended(fetch_ends(answer, len(wanted)))

        heard(await self._node.ask("fetch", timeout_s=FETCH_S, heard=heard, **fetch_job(wanted)))

    async def follow(self, feed: str, after: int, *, limit: int = 100) -> Followed:
        """The products behind a number of a feed's log, in their order."""
        return followed(await self._node.ask("follow", **follow_job(feed, after, limit)))

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        """A file with the bytes of a product; raises `NotKept` if the log has none."""
        return await self._remote.files.of((feed, epoch, sequence))

    async def export(self, feed: str, epoch: str, sequence: int, path: Path) -> ExportedFile:
        """Writes the bytes of a product into a file that is not there yet."""
        job = export_job(feed, epoch, sequence, path)
        return exported_file(await self._node.ask("export", timeout_s=INGEST_S, **job), path)

    async def check_pattern(self, pattern: str) -> None:
        """Raises `BadPattern`, with the position, unless the node can use the pattern."""
        await self._node.request("check-pattern", pattern=pattern)

    async def found_deliveries(
        self, name: ProductName, *, feed: str, before: int | None = None, limit: int = 5, site: str | None = None
    ) -> FoundDeliveries:
        """The deliveries of a feed's products that match a name, with the known facts for each site."""
        job = deliveries_job(name, feed=feed, before=before, limit=limit, site=site)
        found = found_deliveries(await self._node.ask("deliveries", **job))
        return await self._remote.deliveries.add(found, senders=self._role.share.senders, site=site)

    async def products(self, feed: str, epoch: str, sequences: Sequence[int]) -> list[ProductFacts]:
        """The products with these numbers in a feed's log; forgotten ones are left out."""
        answer = await self._node.ask("products", feed=feed, epoch=epoch, sequences=list(sequences))
        return [product_facts(line) for line in answer["products"]]

    async def browse(self, wanted: Browse) -> Browsed:
        """The products of a feed's log that match."""
        return browsed(await self._node.ask("browse", timeout_s=BROWSE_S, **browse_job(wanted)))

    async def tracer(self, wanted: TracerQuestion) -> TracedSite:
        """The recording of a site's connections by this node and by senders, judged."""
        found = traced_site(await self._node.ask("tracer", **tracer_job(wanted)))
        return await self._remote.tracer.add(found, wanted, senders=self._role.share.senders)

    async def status(self) -> Line:
        """The node's report on its feeds and sessions."""
        return await self._node.request("status")

    async def logs(self) -> list[FeedLog]:
        """The contents of each feed's log; the timeout is shorter than Prometheus' own, for a node that hangs."""
        return feed_logs(await self._node.ask("logs", timeout_s=LOGS_S))

    async def prove(self) -> None:
        """Checks that the node answers; raises `NodeAway` if it does not."""
        await self._node.ask("check-pattern", pattern="a", timeout_s=PROOF_S)

    async def prove_store(self) -> None:
        """Has a product of the hub's own stored and read back; raises the step that failed."""
        settings = self._settings
        await prove_store(self._node.ask, node_dir=settings.node_dir, spool_dir=settings.spool_dir, answer_s=PROOF_S)

    def restart_node(self) -> None:
        """Ends a node that runs and does not answer; another one is started."""
        self._node.kill()

    async def drain(self, *, limit_s: float) -> bool:
        """Waits until every connected site has all its subscribed products; False if the limit is reached first."""
        with suppress(NodeAway):
            answer = await self._node.request("drain", timeout_s=limit_s + 5, seconds=limit_s)
            return bool(answer.get("drained", True))
        return False


# A product of gigabytes is read, hashed and written before it is acknowledged.
INGEST_S = 600.0
FETCH_S = 3_600.0
"""From one end of a group to the next: five attempts of five minutes each, with pauses."""
PROOF_S = 9.0
LOGS_S = 3.0
BROWSE_S = 60.0
"""Two million descriptions on a slow disk."""
