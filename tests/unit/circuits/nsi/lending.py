"""A hub that is an NSI provider over HTTPS, on the clock of this machine, with a node in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from downburst.bus.local import LocalBus
from downburst.domain.ordering.providers import Certificate
from downburst.domain.sites import Site
from downburst.foundation.clock import SystemClock
from downburst.ledger import Ledger
from downburst.settings.circuits import CircuitSettings, NsiProviderSettings
from downburst.supervision import start
from downburst_circuits.controller import CircuitController
from downburst_circuits.near_nodes import NearNodes
from downburst_circuits.provider_agent.agent import ProviderAgent
from downburst_circuits.provider_agent.carrying import Circuits
from downburst_circuits.provider_agent.https import HttpsPost, RequestListener
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.makers import makers
from downburst_circuits.register import Register
from downburst_circuits.service import CircuitService
from kit.circuits import NodeInMemory
from kit.nsi import words
from unit.circuits.nsi.lender import STPS
from unit.circuits.stage import PORTS, SITES

CLOCK = SystemClock()


class Lending:
    """A hub's circuits and its provider agent, with its tasks, on the clock of this machine."""

    def __init__(self, ledger: Ledger, files: Certificate) -> None:
        bus, self.node = LocalBus(), NodeInMemory()
        self.ledger = ledger
        self.register = Register(ledger, bus, CLOCK)
        agents = Agents(self.register, ledger=ledger, bus=bus, clock=CLOCK)
        nodes, settings = NearNodes(self.register, self.node, bus, CLOCK), CircuitSettings()
        made_by = makers(self.register, nodes, agents, settings)
        self.controller = CircuitController(self.register, nodes, made_by, bus=bus, clock=CLOCK, settings=settings)
        self.service = CircuitService(self.register, self.controller, made_by, ledger=ledger, bus=bus, clock=CLOCK)
        self.settings = NsiProviderSettings(
            listen="127.0.0.1:0",
            nsa=words.PROVIDER_NSA,
            certificate=files.certificate,
            key=files.key,
            authorities=files.authorities,
            subjects=("CN=hub",),
        )
        circuits = Circuits(self.service, self.register, ledger, CLOCK)
        self.agent = ProviderAgent(circuits, self.settings, HttpsPost(self.settings))
        self.listener = RequestListener(self.settings, self.agent, self.register.fault)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.listener.address[1]}/nsi"


@asynccontextmanager
async def lending(ledger: Ledger, files: Certificate) -> AsyncIterator[Lending]:
    with ledger.transaction() as tx:
        if not tx.sites.all():
            for site in SITES:
                tx.sites.add(Site(site))
            for port in PORTS:
                tx.ports.add(replace(port, stp=f"{STPS}:{port.name}"))
    hub = Lending(ledger, files)
    await hub.register.load()
    runs = (hub.controller.run, hub.agent.run, hub.agent.delivery.run, hub.listener.serve)
    tasks = [start("test.lending", run()) for run in runs]
    try:
        await until(lambda: hub.listener.address[1] > 0)
        yield hub
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
