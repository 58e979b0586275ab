"""The tasks of a hub that is a provider for other networks."""

from collections.abc import Awaitable, Callable, Iterator

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.provider_agent.agent import ProviderAgent
from downburst_circuits.provider_agent.carrying import Circuits
from downburst_circuits.provider_agent.https import HttpsPost, RequestListener
from downburst_circuits.register import Register
from downburst_circuits.service import CircuitService


def runs_of_provider(
    service: CircuitService, register: Register, settings: CircuitSettings, *, ledger: Ledger, clock: Clock
) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
    """The tasks by name, to be kept; none if other networks may not reserve here."""
    if settings.provider is None:
        return
    circuits = Circuits(service, register, ledger, clock)
    agent = ProviderAgent(circuits, settings.provider, HttpsPost(settings.provider))
    yield "circuits.nsi-connections", agent.run
    yield "circuits.nsi-replies", agent.delivery.run
    yield "circuits.nsi-requests", RequestListener(settings.provider, agent, circuits.register.fault).run
