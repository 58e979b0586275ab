"""TCP profiles: the tuning of the connections to a prefix of addresses, set by an operator or learnt from trials."""

import ipaddress
import re
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum

from downburst.foundation.errors import BadInput, BadName
from downburst.foundation.rates import rate_text


class ProfileMode(StrEnum):
    """The way in which a profile gets its values."""

    STATIC = "static"
    """The operator's values apply to all connections."""
    TRIAL = "trial"
    """The operator's values are tried on some connections, and kept or taken back by comparison with the others."""
    LEARN = "learn"
    """The node makes candidates, tries them, and keeps the better ones."""


class TrialStep(StrEnum):
    """The steps of a trial."""

    BEGAN = "began"
    KEPT = "kept"
    NOT_BETTER = "not-better"
    TAKEN_BACK = "taken-back"


class ProfileState(StrEnum):
    """The part of a profile that applies to the connections of a session."""

    STATIC = "static"
    BASE = "base"
    """The values outside a trial."""
    CANARY = "canary"
    """The candidate of a trial."""
    LEARNT = "learnt"


@dataclass(frozen=True, slots=True)
class TcpKnobs:
    """Values for connections; None leaves a value to the kernel and the hub's own settings."""

    congestion: str | None = None
    """The name of the congestion control."""
    send_buffer_bytes: int | None = None
    """For all connections of a site together, like the next one."""
    receive_buffer_bytes: int | None = None
    pacing_bps: int | None = None
    """For each connection; the pacing of a circuit stays the lesser."""
    connections: int | None = None
    """Data connections of a site; a number that the operator set for the site wins."""

    def __post_init__(self) -> None:
        if self.congestion is not None and not CONGESTION.fullmatch(self.congestion):
            raise BadInput(
                f"{self.congestion[:40]!r} can't be a congestion control; write a name of the kernel, such as bbr, "
                "cubic or reno"
            )
        for name, (least, most, words) in BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise BadInput(f"{words} of {value} is impossible; choose {least:,} to {most:,}{UNITS[name]}")

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) is not None for one in fields(self))


@dataclass(frozen=True, slots=True)
class TcpTrial:
    """A step of a trial, with the figures on which it rests."""

    profile: str
    step: TrialStep
    knobs: TcpKnobs
    """The candidate."""
    before: TcpKnobs
    """The values that applied until then."""
    canaries: int
    others: int
    """Connections with and without the candidate."""
    canary_bps: int | None
    """The median of a connection over the compared windows, like the next one."""
    others_bps: int | None
    windows: int
    reason: str
    at: datetime
    sender: str = ""
    """The sender that made the trial; empty: the hub's own node."""

    @property
    def ratio(self) -> float | None:
        """The rate with the candidate as a multiple of the rate without; None: not measured."""
        if self.canary_bps is None or not self.others_bps:
            return None
        return self.canary_bps / self.others_bps


@dataclass(frozen=True, slots=True)
class TcpProfile:
    """The tuning of the connections to a prefix; of several prefixes with an address, the longest applies."""

    name: str
    prefix: str
    """IPv4 or IPv6, without bits of the host."""
    mode: ProfileMode = ProfileMode.STATIC
    knobs: TcpKnobs = field(default_factory=TcpKnobs)
    """The operator's values; none in the mode `learn`."""
    learnt: TcpKnobs | None = None
    """The values that the node keeps in the mode `learn`."""
    trial: TcpTrial | None = None
    """The present trial, or the last one."""
    created_at: datetime | None = None
    changed_at: datetime | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise BadName(
                f"{self.name[:80]!r} can't be a profile's name; use 1 to 63 lower-case letters, digits, dots and "
                "dashes, a letter or digit first"
            )
        object.__setattr__(self, "prefix", checked_prefix(self.prefix))
        if self.mode is ProfileMode.LEARN and self.knobs:
            raise BadInput(
                f"profile {self.name} learns its values, so it takes none; leave them out, or leave out `learn`"
            )
        if self.mode is not ProfileMode.LEARN and not self.knobs:
            raise BadInput(
                f"profile {self.name} sets nothing; give congestion control, a buffer, pacing or connections"
            )

    def after(self, trial: TcpTrial) -> "TcpProfile":
        """The profile after a step of a trial: in the mode `learn`, kept values are learnt, others forgotten."""
        learnt = self.learnt
        if self.mode is ProfileMode.LEARN and trial.step is TrialStep.KEPT:
            learnt = trial.knobs
        if self.mode is ProfileMode.LEARN and trial.step is TrialStep.TAKEN_BACK and trial.knobs == learnt:
            learnt = None
        return replace(self, learnt=learnt, trial=trial)


@dataclass(frozen=True, slots=True)
class AppliedProfile:
    """The profile that applies to a session, by the node."""

    name: str
    state: ProfileState
    knobs: TcpKnobs


def checked_prefix(text: str) -> str:
    """The prefix in its shortest form; refuses text that is none, and bits of the host."""
    try:
        given = ipaddress.ip_interface(text) if _PREFIX.fullmatch(text) else None
    except ValueError:
        given = None
    if given is None:
        raise BadInput(f"{text[:80]!r} is not a prefix of addresses; write for example 192.0.2.0/24 or 2001:db8::/32")
    if given.ip != given.network.network_address:
        raise BadInput(f"the prefix {text} has bits of a host; write {given.network}")
    return str(given.network)


def knobs_text(knobs: TcpKnobs) -> str:
    """The set values in a few words: `bbr, send buffer 8 MiB, 50 Mb/s per connection`."""
    parts = [
        knobs.congestion,
        knobs.send_buffer_bytes and f"send buffer {_size(knobs.send_buffer_bytes)}",
        knobs.receive_buffer_bytes and f"receive buffer {_size(knobs.receive_buffer_bytes)}",
        knobs.pacing_bps and f"{rate_text(knobs.pacing_bps)} per connection",
        knobs.connections and (f"{knobs.connections} connections" if knobs.connections > 1 else "1 connection"),
    ]
    return ", ".join(part for part in parts if part) or "the kernel's values"


def _size(count: int) -> str:
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count:,} bytes"


NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_PREFIX = re.compile(r"[0-9A-Fa-f:.]{2,45}/[0-9]{1,3}", re.ASCII)
CONGESTION = re.compile(r"[a-z0-9_]{1,15}")
BUFFER_BYTES = (4_096, 2**30)
PACING_BPS = (8_000, 10**12)
CONNECTIONS = (1, 16)
BOUNDS = {
    "send_buffer_bytes": (*BUFFER_BYTES, "a send buffer"),
    "receive_buffer_bytes": (*BUFFER_BYTES, "a receive buffer"),
    "pacing_bps": (*PACING_BPS, "a pacing rate"),
    "connections": (*CONNECTIONS, "a number of connections"),
}
UNITS = {"send_buffer_bytes": " bytes", "receive_buffer_bytes": " bytes", "pacing_bps": " bit/s", "connections": ""}
"""The same bounds as the node's."""
