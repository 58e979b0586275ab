"""TCP profiles: the tuning of the connections to a prefix of addresses."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from downburst.domain.tcp import profiles
from downburst.domain.tcp.profiles import ProfileMode, ProfileState, TrialStep
from downburst_contract.base import Answer, OffsetTime, Shape, members

_Congestion = Annotated[str, Field(pattern=f"^{profiles.CONGESTION.pattern}$")]
_Buffer = Annotated[int, Field(ge=profiles.BUFFER_BYTES[0], le=profiles.BUFFER_BYTES[1])]
_Pacing = Annotated[int, Field(ge=profiles.PACING_BPS[0], le=profiles.PACING_BPS[1])]
_Connections = Annotated[int, Field(ge=profiles.CONNECTIONS[0], le=profiles.CONNECTIONS[1])]


class TcpKnobsWanted(Shape):
    """Values for connections; null, or left out: the kernel's and the hub's own."""

    congestion: _Congestion | None = None
    send_buffer_bytes: _Buffer | None = None
    receive_buffer_bytes: _Buffer | None = None
    pacing_bps: _Pacing | None = None
    connections: _Connections | None = None

    def to_model(self) -> profiles.TcpKnobs:
        """The values; refuses impossible ones."""
        return profiles.TcpKnobs(**self.model_dump())

    @classmethod
    def _nullable(cls) -> set[str]:
        return set(cls.model_fields)


class TcpProfileWanted(Shape):
    """A profile, without its name."""

    prefix: Annotated[str, Field(max_length=100)]
    """IPv4 or IPv6, without bits of the host; of several prefixes with an address, the longest applies."""
    mode: ProfileMode = ProfileMode.STATIC
    """`static`: the values apply; `trial`: some connections try them; `learn`: the node finds values by trials."""
    knobs: TcpKnobsWanted = TcpKnobsWanted()
    """None in the mode `learn`."""

    def to_model(self, name: str) -> profiles.TcpProfile:
        """The profile; refuses impossible values."""
        return profiles.TcpProfile(name, self.prefix, self.mode, self.knobs.to_model())


class TcpKnobs(Answer):
    """Values for connections; null: the kernel's and the hub's own."""

    congestion: str | None
    send_buffer_bytes: int | None
    """For all connections of a site together, like the next one."""
    receive_buffer_bytes: int | None
    pacing_bps: int | None
    """For each connection; the pacing of a circuit stays the lesser."""
    connections: int | None
    """Data connections of a site; a number that is set for the site wins."""

    @classmethod
    def of(cls, knobs: profiles.TcpKnobs) -> Self:
        """The values for clients."""
        return cls(**asdict(knobs))


class TcpTrial(Answer):
    """A step of a trial, with its figures."""

    step: TrialStep
    knobs: TcpKnobs
    """The candidate."""
    before: TcpKnobs
    """The values that applied until then."""
    canaries: int
    """Connections with the candidate."""
    others: int
    canary_bps: int | None
    """The median of a connection over the compared windows, like the next one."""
    others_bps: int | None
    ratio: float | None
    """The rate with the candidate as a multiple of the rate without."""
    windows: int
    reason: str
    at: OffsetTime
    sender: str
    """The sender that made the trial; empty: the hub's own node."""

    @classmethod
    def of(cls, trial: profiles.TcpTrial) -> Self:
        """A step for clients."""
        knobs, before = TcpKnobs.of(trial.knobs), TcpKnobs.of(trial.before)
        rest = members(trial, without=("profile", "knobs", "before"))
        return cls(**rest, knobs=knobs, before=before, ratio=trial.ratio)


class TcpProfile(Answer):
    """A profile with its learnt values and the present or last trial."""

    profile: str
    prefix: str
    mode: ProfileMode
    knobs: TcpKnobs
    learnt: TcpKnobs | None
    """The values that the node keeps in the mode `learn`."""
    trial: TcpTrial | None
    """The present trial, or the last one; null: there was none with these values."""
    created_at: datetime | None
    changed_at: datetime | None

    @classmethod
    def of(cls, profile: profiles.TcpProfile) -> Self:
        """A profile for clients."""
        rest = members(profile, without=("knobs", "learnt", "trial"), profile="name")
        return cls(
            **rest,
            knobs=TcpKnobs.of(profile.knobs),
            learnt=None if profile.learnt is None else TcpKnobs.of(profile.learnt),
            trial=None if profile.trial is None else TcpTrial.of(profile.trial),
        )


class AppliedProfile(Answer):
    """The profile that applies to the connections of a site, by the node that serves it."""

    profile: str
    state: ProfileState
    knobs: TcpKnobs
