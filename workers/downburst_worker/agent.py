"""The agent of a node: starts it, sends it the ledger's wishes, and stores its reports.

`desired` has the ledger's wishes, `reports` the node's reports, `upkeep` the loops beside it, and `roles` the
differences between the hub's own node and a sender.
"""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from downburst.bus.port import Bus
from downburst.domain.credentials import EnrolmentToken
from downburst.domain.events import NodeChanged
from downburst.foundation.clock import Clock
from downburst.foundation.errors import LedgerAway, NodeAway
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst.settings.addresses import split_address
from downburst.settings.hub import Settings
from downburst_worker.asking import Asking
from downburst_worker.circuit_jobs import CircuitJobs
from downburst_worker.desired import DesiredState
from downburst_worker.enrolment import Enrolment
from downburst_worker.ledger_writer import BatchLoader, LedgerWriter
from downburst_worker.messages.starting import start_job
from downburst_worker.node import Line, NodeProcess
from downburst_worker.probe_jobs import ProbeJobs
from downburst_worker.remote.questions import Remote
from downburst_worker.reporter import Reporter
from downburst_worker.reports import NodeReports
from downburst_worker.roles import Role
from downburst_worker.shared import Shared
from downburst_worker.upkeep import Upkeep


class Agent(Asking):
    """All requests of the hub's other parts to the node."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        settings: Settings,
        ledger: Ledger,
        bus: Bus,
        live: LiveState,
        clock: Clock,
        load_batch: BatchLoader,
        argv: tuple[str, ...],
        role: Role,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._role = role
        shared = Shared(ledger, bus, live, clock)
        self._reporter = Reporter(shared, role)
        self._remote = Remote(bus, settings.data_dir / "published", self.export)
        self._node = self._node_process(argv)
        self._writer = self._ledger_writer(ledger, load_batch)
        self._desired = DesiredState(settings, ledger, self._node, writer=self._writer, reporter=self._reporter)
        self._enrolment = Enrolment(
            ledger,
            self._node,
            bus,
            apply_sites=self._desired.apply_sites,
            credential_lifetime=timedelta(days=settings.access.credential_days),
        )
        self._upkeep = Upkeep(shared, self._node, self._desired, self._writer, reporter=self._reporter)
        self._reports = NodeReports(
            shared, self._desired, self._writer, self._upkeep, enrolment=self._enrolment, reporter=self._reporter
        )
        self.circuits = CircuitJobs(self._node, role.share, self._desired.apply_plans)
        """The circuit service's requests to the node."""
        self.ca_sha256 = ""
        """SHA-256 of the hub's own certificate authority; known once the node has started."""
        self.sites_address: tuple[str, ...] = ()
        """The address that sites connect to, with the actual port."""

    @property
    def egress_bps(self) -> float:
        """The node's egress in its last second, in bits per second."""
        return self._reports.egress_bps

    @property
    def probes(self) -> ProbeJobs:
        """The probe service's requests to the node."""
        return ProbeJobs(self._node)

    async def start(self) -> None:
        """Starts the node and waits until it has all it needs; raises the cause of a failure."""
        await self._node.start()
        self._upkeep.start()

    async def stop(self) -> None:
        """Stops the node cleanly and waits until it is gone."""
        await self._upkeep.stop()
        await self._node.stop()
        self._reporter.say(NodeChanged(self._clock.now(), running=False, restarts=self.restarts, reason="stopped"))

    async def new_token(
        self, site: str, *, lifetime: timedelta, credential_lifetime: timedelta | None = None
    ) -> tuple[str, EnrolmentToken]:
        """An enrolment token for a site: the text for its administrator, shown once, and the stored part."""
        if not self.ca_sha256:
            raise NodeAway("the node has not started, so its certificate is not known; try again in some seconds")
        text, kept = await self._enrolment.new_token(site, lifetime=lifetime, credential_lifetime=credential_lifetime)
        return f"dbt1.{self.ca_sha256}.{text}", kept

    async def fence(self, *, fenced: bool) -> None:
        """Ends the multicast legs of a sender that may have lost them to another one, or restarts them."""
        if self._role.share.fenced != fenced:
            self._role.share.fenced = fenced
            with suppress(NodeAway):
                await self._desired.apply_plans()

    async def refresh(self) -> None:
        """Sends the ledger's feeds and sites; what the node does not accept now it gets at its next start."""
        with suppress(NodeAway):
            await self._desired.apply_feeds()
            await self._desired.apply_sites()

    async def connect_upstreams(self) -> None:
        """Has the node connect to the ledger's upstreams; raises the reason if it can't connect to one."""
        await self._desired.connect_upstreams()

    async def apply_tcp_profiles(self) -> None:
        """Has the node apply the ledger's TCP profiles; raises the reason if it refuses one."""
        await self._desired.apply_tcp_profiles()

    async def connect_ldm(self) -> tuple[str, ...]:
        """Has the node request from and serve the ledger's LDMs; raises the failure, else returns its address."""
        return await self._desired.connect_ldm()

    def _node_process(self, argv: tuple[str, ...]) -> NodeProcess:
        return NodeProcess(
            argv,
            clock=self._clock,
            on_ready=self._make_ready,
            on_event=self._hear,
            on_death=self._mourn,
            answer_s=self._settings.node_answer_s,
        )

    def _ledger_writer(self, ledger: Ledger, load_batch: BatchLoader) -> LedgerWriter:
        return LedgerWriter(
            ledger,
            batch_dir=self._settings.batch_dir,
            load_batch=load_batch,
            loaded=lambda batch: self._node.request("batch-loaded", batch=batch),
            put_aside=self._put_aside,
        )

    async def _make_ready(self) -> None:
        job = start_job(self._settings, sends=not self._role.takes_in)
        job |= await self._role.joined(self._node.request, job["data_dir"])
        if self._role.has_neighbours:
            with suppress(LedgerAway):
                await self._role.share.look()
        self._role.share.has(())
        answer = await self._start_node(job)
        self._upkeep.node_began()
        self.ca_sha256 = answer["ca_sha256"]
        self.sites_address = tuple(answer["sites_address"])
        await self._desired.apply_at_start()
        self._reporter.say(NodeChanged(self._clock.now(), running=True, restarts=self.restarts))
        self._writer.look_for_batches()

    async def _start_node(self, job: Line) -> Line:
        """Has the node listen at its earlier address: sites know a port that the system chose."""
        if self.sites_address and split_address(self._settings.sites)[1] == 0:
            known, self.sites_address = self.sites_address, ()
            # If the node can't, it starts again, and the system chooses another port.
            answer = await self._node.request("start", **job, listen=list(known))
            self.sites_address = known
            return answer
        return await self._node.request("start", **job, listen=[self._settings.sites])

    async def _hear(self, line: Line) -> None:
        await self._reports.hear(line)

    async def _put_aside(self, path: Path) -> None:
        await self._reporter.fault(
            f"the batch of receipts {path.name} can't be understood and was set aside as .bad",
            next_step="after an upgrade that can read it, rename it back to .json and start the hub again",
        )

    async def _mourn(self, reason: str) -> None:
        at = self._clock.now()
        self._reporter.say(NodeChanged(at, running=False, restarts=self.restarts, reason=reason))
        await self._reporter.fault(
            f"{reason}; it is being restarted",
            at=at,
            next_step="no acknowledged product is lost; if this repeats, read the hub's log",
        )
