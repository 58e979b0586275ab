"""What other parts of a hub ask of its node, once it runs."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from downburst.deliveries import FoundDeliveries, ProductFacts, ProductName
from downburst.deliveries.browsing import Browse, Browsed
from downburst.domain.feeds import FeedLog
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import NodeAway
from downburst.settings.hub import Settings
from downburst_worker.messages import lines
from downburst_worker.messages.delivery_lines import (
    browse_job,
    browsed,
    deliveries_job,
    found_deliveries,
    product_facts,
)
from downburst_worker.messages.log_lines import feed_logs
from downburst_worker.node import Line, NodeProcess
from downburst_worker.proving import prove_store
from downburst_worker.remote_deliveries import RemoteDeliveries
from downburst_worker.roles import Role


class Asking:
    """Questions, and products to be taken in; `NodeAway` while the node is restarted."""

    _settings: Settings
    _node: NodeProcess
    _role: Role
    _remote: RemoteDeliveries

    @property
    def running(self) -> bool:
        """Whether the node is up and knows what is wanted."""
        return self._node.running

    @property
    def restarts(self) -> int:
        """How often the node died and was started again."""
        return self._node.restarts

    @property
    def pid(self) -> int | None:
        """The node's process id while it runs."""
        return self._node.pid

    async def ingest(
        self, path: Path, product: Product, *, remove: bool = True, digest: object = None
    ) -> Acknowledgement:
        """Makes a complete file a product; the answer says that it is stored, or of what it is a duplicate."""
        job = lines.ingest_job(str(path), product, digest=digest, remove=remove)
        return lines.acknowledgement(await self._node.ask("ingest", timeout_s=INGEST_S, **job))

    async def check_pattern(self, pattern: str) -> None:
        """Raises `BadPattern`, with the position, unless the node can use the pattern."""
        await self._node.request("check-pattern", pattern=pattern)

    async def found_deliveries(
        self, name: ProductName, *, feed: str, before: int | None = None, limit: int = 5, site: str | None = None
    ) -> FoundDeliveries:
        """Where the products of a feed are that a name may mean, and what is known of their way to each site."""
        job = deliveries_job(name, feed=feed, before=before, limit=limit, site=site)
        found = found_deliveries(await self._node.ask("deliveries", **job))
        return await self._remote.add(found, senders=self._role.share.senders, site=site)

    async def products(self, feed: str, epoch: str, sequences: Sequence[int]) -> list[ProductFacts]:
        """What numbers of a feed's log stand for; those that are forgotten are left out."""
        answer = await self._node.ask("products", feed=feed, epoch=epoch, sequences=list(sequences))
        return [product_facts(line) for line in answer["products"]]

    async def browse(self, wanted: Browse) -> Browsed:
        """Which products of a feed's log match."""
        return browsed(await self._node.ask("browse", timeout_s=BROWSE_S, **browse_job(wanted)))

    async def status(self) -> Line:
        """What the node says of its feeds and sessions."""
        return await self._node.request("status")

    async def logs(self) -> list[FeedLog]:
        """What the log of each feed holds; a node that hangs is not waited for longer than Prometheus waits."""
        return feed_logs(await self._node.ask("logs", timeout_s=LOGS_S))

    async def prove(self) -> None:
        """Has the node answer something; raises `NodeAway` if it does not."""
        await self._node.ask("check-pattern", pattern="a", timeout_s=PROOF_S)

    async def prove_store(self) -> None:
        """Has a product of the hub's own stored and read back; raises at which step that failed."""
        settings = self._settings
        await prove_store(self._node.ask, node_dir=settings.node_dir, spool_dir=settings.spool_dir, answer_s=PROOF_S)

    def restart_node(self) -> None:
        """Ends a node that runs and does not answer; another one begins."""
        self._node.kill()

    async def drain(self, *, limit_s: float) -> bool:
        """Waits until every connected site has everything it subscribed; False if the limit came first."""
        with suppress(NodeAway):
            answer = await self._node.request("drain", timeout_s=limit_s + 5, seconds=limit_s)
            return bool(answer.get("drained", True))
        return False


# A product of gigabytes is read, hashed and written before it is acknowledged.
INGEST_S = 600.0
PROOF_S = 9.0
LOGS_S = 3.0
BROWSE_S = 60.0
"""Two million descriptions on a slow disk."""
