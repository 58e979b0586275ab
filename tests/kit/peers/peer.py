"""A running provider agent, and the answers that are known of its kind."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from downburst.domain.ordering.providers import Certificate, Dialect, Provider
from downburst_circuits.nsi.refusals import Kind
from downburst_circuits.nsi.stp import Stp, stp
from downburst_circuits.nsi.words import Criteria
from kit.nsi.server import Authority
from kit.peers.plane import PORTS, Plane

DOMAIN = "net.example.test:2026"
REQUESTER_NSA = "urn:ogf:network:hub.example.test:2026:nsa:downburst"
REQUESTER, STRANGER = "downburst-hub", "somebody-else"
"""Common names: of the hub's certificate, and of one by the same authority that no agent is told to admit."""


@dataclass(frozen=True)
class Known:
    """What a kind of agent is known to answer."""

    dialect: Dialect
    service_type: str
    """The one that it confirms, whatever was asked for."""
    refuses: Mapping[str, Kind | None]
    """By the name of an impossible order; None: it grants that all the same."""
    foreign_certificate: frozenset[Kind]
    """Of another authority."""
    stranger: frozenset[Kind]
    """A certificate of the right authority with a name that is not admitted."""
    notices_a_cut: bool
    """It looks after its paths, and ends the reservation of one that has died."""


@dataclass
class Running:
    """Processes of an agent, with one log for each."""

    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(argv, stdout=log, stderr=log, env=dict(environment), cwd=self.directory)
            )

    def check(self) -> None:
        for process in self.processes:
            assert process.poll() is None, f"{process.args!r} ended\n{self.logs()}"

    def logs(self) -> str:
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait(timeout=30)
        self.processes.clear()


@dataclass(frozen=True)
class Peer:
    """An agent that runs, and the network behind it."""

    name: str
    url: str
    provider_nsa: str
    known: Known
    authority: Authority
    plane: Plane
    running: Running

    def provider(self, certificate: Certificate | None = None, reply_to: str = "https://127.0.0.1:9/nsi") -> Provider:
        """The record of this provider; nothing listens at the address for callbacks unless one is given."""
        own = certificate or self.authority.sign(REQUESTER)
        return Provider(
            self.name,
            self.url,
            self.provider_nsa,
            REQUESTER_NSA,
            self.known.dialect,
            own,
            reply_to,
            self.known.service_type,
        )

    @property
    def port(self) -> int:
        """The port that the agent listens on, at 127.0.0.1."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def stp(self, port: str, vlans: str = "") -> Stp:
        return stp(f"urn:ogf:network:{DOMAIN}:topology:{port}?vlan={vlans or PORTS[port]}")

    def criteria(self, capacity_mbps: int, *, begin_us: int | None = None, end_us: int | None = None) -> Criteria:
        return Criteria(capacity_mbps, self.stp("hub"), self.stp("unl"), begin_us, end_us)
