"""Ports and circuits.

Every rate is bits per second of Ethernet frames, which answers repeat in `layer`. Directions are seen from the near
end: the hub's, or that of the first of two sites.
"""

from datetime import datetime
from hashlib import sha256
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from downburst.domain import circuits
from downburst.domain.circuits import (
    Cap,
    CircuitCarriage,
    CircuitChange,
    CircuitCreation,
    CircuitDriver,
    CircuitEnd,
    CircuitRequest,
    CircuitShape,
    CircuitState,
    Direction,
    PathOrder,
    Replication,
)
from downburst.foundation.moments import coming_moment
from downburst_contract.base import Answer, Shape, Text, members

_Rate = Annotated[int, Field(gt=0, le=10**15)]
_Vlan = Annotated[int, Field(ge=1, le=4094)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]

_When = Annotated[str, Field(max_length=64)]
_By = Annotated[str, Field(min_length=1, max_length=100)]
_Elements = Annotated[list[_Name], Field(max_length=100)]
_Layer = Literal["ethernet-frame"]


class _Tags(Shape):
    first_vlan: _Vlan | None = None
    last_vlan: _Vlan | None = None

    @model_validator(mode="after")
    def _whole_range(self) -> "_Tags":
        if (self.first_vlan is None) != (self.last_vlan is None):
            raise ValueError("first_vlan and last_vlan belong together; give both, or neither for untagged")
        if self.first_vlan is not None and self.last_vlan is not None and self.last_vlan < self.first_vlan:
            raise ValueError("last_vlan lies before first_vlan; swap them")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"first_vlan", "last_vlan"}


class PortChange(_Tags):
    """Properties of a port; those left out keep their value (PATCH) or take the default (POST)."""

    rate_bps: _Rate | None = None
    """What circuits may reserve of it, each way."""
    port_rate_bps: _Rate | None = None
    """How fast the port itself is, if that is known; no more than this can be reserved."""
    interface: Annotated[str, Field(max_length=15)] | None = None
    underlay: Annotated[str, Field(max_length=45)] | None = None
    stp: Text | None = None

    @field_validator("underlay")
    @classmethod
    def _is_address(cls, text: str | None) -> str | None:
        """The node reads it as an address, and one that is none would cost every circuit its job."""
        try:
            return str(ip_address(text)) if text else text
        except ValueError:
            raise ValueError(f"{text!r} is not an address; write for example 192.0.2.1") from None

    def given(self) -> dict[str, Any]:
        """What the client said, by the model's names."""
        return self.model_dump(exclude_unset=True)

    @classmethod
    def _nullable(cls) -> set[str]:
        return super()._nullable() | {"port_rate_bps"}


class PortNew(PortChange):
    """A port to make."""

    port: _Name
    rate_bps: _Rate
    site: Annotated[str, Field(max_length=63)] | None = None
    layer: _Layer = "ethernet-frame"

    def to_model(self) -> circuits.Port:
        """The port with defaults for what was left out."""
        given = self.given()
        given.pop("layer", None)
        return circuits.Port(given.pop("port"), given.pop("rate_bps"), **given)

    @classmethod
    def _nullable(cls) -> set[str]:
        return super()._nullable() | {"site"}


class EndNew(_Tags):
    """One end: a port by its name, or a site that has one port; tags, if not any that the port offers."""

    port: Annotated[str, Field(max_length=63)] = ""
    site: Annotated[str, Field(max_length=63)] | None = None
    address: Annotated[str, Field(max_length=50)] | None = None
    """With the prefix length; declared circuits only."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return super()._nullable() | {"site", "address"}


class _CarriageNew(Shape):
    """How a circuit to reserve shall be carried and shaped."""

    layer: _Layer = "ethernet-frame"
    driver: CircuitDriver = CircuitDriver.LINUX
    replication: Replication = Replication.HEAD_END
    group: Annotated[str, Field(max_length=45)] | None = None
    cap: Cap = Cap.HARD
    shaped_share: Annotated[float, Field(ge=0.85, le=1)] = 0.9
    burst_bytes: Annotated[int, Field(ge=2_000, le=2**31 - 1)] | None = None
    provider: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """With the driver `nsi`: the record of the provider that is asked."""

    @model_validator(mode="after")
    def _provider_of_its_driver(self) -> Self:
        asked = self.driver is CircuitDriver.NSI
        if asked and self.provider is None:
            raise ValueError("driver nsi asks a provider; name one, `downburst circuits providers list` shows all")
        if not asked and self.provider is not None:
            raise ValueError(f"driver {self.driver} asks no provider; leave it out, or give the driver nsi")
        return self

    def carriage(self) -> CircuitCarriage:
        """The domain's part of a circuit."""
        return CircuitCarriage(
            driver=self.driver,
            replication=self.replication,
            group=self.group,
            cap=self.cap,
            shaped_share=self.shaped_share,
            burst_bytes=self.burst_bytes,
            provider=self.provider,
        )


class _LifeNew(Shape):
    """How a circuit to reserve shall live, and by which path."""

    hold_s: Annotated[float, Field(ge=1, le=3_600)] | None = None
    """Seconds for which it is only held: without a commit it then expires; null: reserved outright."""
    creation: CircuitCreation = CircuitCreation.AUTOMATIC
    """By hand: its path is created on request during the window."""
    include: _Elements = Field(default_factory=list)
    """Links and switches that its path must pass."""
    exclude: _Elements = Field(default_factory=list)
    """Links and switches that its path must not pass."""
    path_order: PathOrder = PathOrder.SHORTEST

    def _given_life(self) -> set[str]:
        """The properties other than by default."""
        plain = _LifeNew()
        return {name for name in _LifeNew.model_fields if getattr(self, name) != getattr(plain, name)}


class CircuitNew(_CarriageNew, _LifeNew):
    """A circuit to reserve; the same request id with the same content again is answered with the same circuit."""

    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    hub: EndNew | None = EndNew()
    """The near end; null: the circuit joins two sites, of which the first is the near end."""
    sites: Annotated[list[EndNew], Field(min_length=1, max_length=1000)]
    rate_out_bps: _Rate
    rate_in_bps: Annotated[int, Field(ge=0, le=10**15)] = 0
    begin: _When = "now"
    """`now`, RFC 3339 with an offset, or so long from now: `+2h`."""
    end: _When | None = None
    """As `begin`; left out: until it is cancelled. With `+`: so long after the begin."""
    description: Text = ""
    ticket: Text = ""
    by: _By = "operator"

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"request_id", "hub", "end", "group", "burst_bytes", "provider", "hold_s"}

    def to_model(self, now: datetime, request_id: str) -> circuits.Circuit:
        """The circuit as it is asked for."""
        begin = coming_moment(self.begin, now)
        near = () if self.hub is None else (self.hub.model_copy(update={"site": None}),)
        return circuits.Circuit(
            number=0,
            request=CircuitRequest(
                request_id,
                description=self.description,
                ticket=self.ticket,
                requested_by=self.by,
                asked_sha256=self._sha256(),
                creation=self.creation,
                include=tuple(self.include),
                exclude=tuple(self.exclude),
                path_order=self.path_order,
            ),
            ends=tuple(_end(end) for end in (*near, *self.sites)),
            rate_out_bps=self.rate_out_bps,
            rate_in_bps=self.rate_in_bps,
            begin=begin,
            end=None if self.end is None else coming_moment(self.end, begin if self.end.startswith("+") else now),
            carriage=self.carriage(),
        )

    def _sha256(self) -> str:
        """The hash of the request; one without properties of its life is the same to releases without them."""
        left_out = set(_LifeNew.model_fields) - self._given_life()
        return sha256(self.model_dump_json(exclude=left_out).encode()).hexdigest()


class CircuitModify(Shape):
    """What may change of a circuit, all or nothing; `end` null lets it last until it is cancelled."""

    rate_out_bps: _Rate | None = None
    rate_in_bps: Annotated[int, Field(ge=0, le=10**15)] | None = None
    begin: _When | None = None
    """While the window has not begun."""
    end: _When | None = None
    burst_bytes: Annotated[int, Field(ge=2_000, le=2**31 - 1)] | None = None
    by: _By = "operator"

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"end"}

    def to_model(self, now: datetime) -> CircuitChange:
        """The change as it is asked for."""
        return CircuitChange(
            rate_out_bps=self.rate_out_bps,
            rate_in_bps=self.rate_in_bps,
            begin=None if self.begin is None else coming_moment(self.begin, now),
            end=None if self.end is None else coming_moment(self.end, now),
            burst_bytes=self.burst_bytes,
            until_cancelled="end" in self.model_fields_set and self.end is None,
        )


class CircuitClone(Shape):
    """When another circuit like one begins; it lasts as long."""

    begin: _When = "now"
    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    by: _By = "operator"

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"request_id"}


class CircuitOverride(Shape):
    """A state for people against that of the probes; `state` null gives it back to the probes."""

    state: Literal[CircuitState.ACTIVE, CircuitState.DOWN] | None
    """Down: feeds leave it. Active: it is shown as active while probes call it degraded; feeds go by the probes."""
    reason: Text = ""
    """Why; required with a state."""
    by: _By = "operator"

    @model_validator(mode="after")
    def _with_a_reason(self) -> Self:
        if self.state is not None and not self.reason.strip():
            raise ValueError("an override needs its reason, which others see; give one")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"state"}


class Port(Answer):
    """Where circuits end: a port of the hub's host or of a site's, and what of it may be reserved."""

    port: str
    rate_bps: int
    """What circuits may reserve of it, in each direction."""
    site: str | None
    """Whose port it is; null: this hub's."""
    interface: str
    """Its name on the host."""
    underlay: str
    """The address on it between which the linux driver lays its tunnels."""
    stp: str
    """Its name in the network's topology, if it has one."""
    first_vlan: int | None
    """The tags that circuits may have there; null: circuits are untagged."""
    last_vlan: int | None
    port_rate_bps: int | None
    """How fast the port itself is, in each direction; null: nobody said."""
    created_at: datetime | None
    layer: _Layer

    @classmethod
    def of(cls, port: circuits.Port) -> Self:
        """A port for clients."""
        return cls(**members(port, port="name"), layer=LAYER)


class End(Answer):
    """One end of a circuit."""

    port: str
    site: str | None
    first_vlan: int | None
    """The tags that were asked for; null: any that the port offers."""
    last_vlan: int | None
    vlan: int | None
    """The tag it has; null: untagged, or not admitted yet."""
    address: str | None
    """Inside the circuit, with its prefix length."""


class Measurement(Answer):
    """What the last probe of one end found in one direction."""

    site: str
    direction: Direction
    at: datetime
    rate_bps: int
    """What the circuit carries by measurement."""
    reserved_bps: int
    loss_share: float
    round_trip_us: int | None
    cause: str
    """Of a shortfall: policer, slow-segment, unprotected-segment, small-buffer, cut or unclear."""
    sentence: str
    remedy: str
    enough: bool
    """Whether feeds may ride on it."""


class CircuitStanding(Answer):
    """A circuit's state."""

    circuit: int
    state: CircuitState
    """As people see it, with an override."""
    reason: str
    """Why it is in this state, in a sentence."""
    probed_state: CircuitState
    """By the probes alone; feeds use no circuit against it."""
    overridden: CircuitState | None
    """Active or down, as an administrator set it; null: it is as its probes say."""
    override_reason: str | None
    override_by: str | None
    held_until: datetime | None
    """When it expires unless it is committed; null: it isn't held."""
    shape: CircuitShape
    sites: list[str]
    since: datetime | None
    created_at: datetime | None


class CircuitHop(Answer):
    """A link of the topology on the path of a circuit, from the hub on."""

    link: str
    forward: bool
    """Whether the path takes it from its end `a` to its end `z`."""
    tag: int | None
    """The tag there; null: untagged, or not assigned."""


class CircuitWindow(Answer):
    """The ends, rates and times of a reservation."""

    request_id: str
    ends: list[End]
    """The near one first: the hub's, or of two sites the first."""
    path: list[CircuitHop]
    """The links between them; empty: only the ports and their hosts are reserved."""
    rate_out_bps: int
    rate_in_bps: int
    begin: datetime
    end: datetime | None
    """Null: until it is cancelled."""


class CircuitTerms(CircuitWindow):
    """A reservation as it was requested."""

    driver: CircuitDriver
    replication: Replication
    group: str | None
    cap: Cap
    shaped_share: float
    """What is sent into it at most, as a share of its rate."""
    burst_bytes: int | None
    provider: str | None
    """The record of the provider that is asked; null for other drivers."""
    description: str
    ticket: str
    """Under which somebody else made it."""
    requested_by: str
    creation: CircuitCreation
    include: list[str]
    """Links and switches that its path was to pass."""
    exclude: list[str]
    """Links and switches that its path was not to pass."""
    path_order: PathOrder


class Circuit(CircuitTerms, CircuitStanding):
    """A rate-guaranteed path: its reservation, the rates that it was measured to carry, the rates in use."""

    layer: _Layer
    measured_out_bps: int | None
    """By the site that gets least; null until it was measured."""
    measured_in_bps: int | None
    measured_at: datetime | None
    used_out_bps: float
    used_in_bps: float
    measurements: list[Measurement]


class CircuitAnswered(Circuit):
    """What became of a request; `done` is false for a dry run, and for a circuit that was made before."""

    done: bool


class CircuitEvent(Answer):
    """Something that happened to a circuit."""

    at: datetime
    event: str
    state: CircuitState
    """After it."""
    sentence: str
    step: str
    """For a failure: at what the circuit failed."""
    hop: str
    """For a failure: where."""
    remedy: str
    """For a failure: what to do."""
    by: str


class CircuitWhole(Circuit):
    """A circuit with its history."""

    events: list[CircuitEvent]


def _end(end: EndNew) -> CircuitEnd:
    return CircuitEnd(end.port, end.site, end.first_vlan, end.last_vlan, address=end.address)


LAYER: _Layer = "ethernet-frame"
