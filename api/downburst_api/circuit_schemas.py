"""Shapes of requests and answers about ports and circuits.

Every rate is bits per second of Ethernet frames, which answers repeat in `layer`. Directions are seen from the hub.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from hashlib import sha256
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from downburst.circuits import (
    Cap,
    Circuit,
    CircuitChange,
    CircuitDriver,
    CircuitEnd,
    CircuitEvent,
    Measured,
    Port,
    Replication,
)
from downburst.errors import BadInput
from downburst.live import LiveState
from downburst.moments import coming_moment
from downburst_api.schemas import Shape

_Rate = Annotated[int, Field(gt=0, le=10**15)]
_Vlan = Annotated[int, Field(ge=1, le=4094)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]
_Text = Annotated[str, Field(max_length=500)]
_When = Annotated[str, Field(max_length=64)]
_By = Annotated[str, Field(min_length=1, max_length=100)]
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
    stp: _Text | None = None

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

    def to_model(self) -> Port:
        """The port with defaults for what was left out."""
        given = self.given()
        given.pop("layer", None)
        return Port(given.pop("port"), given.pop("rate_bps"), **given)

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


class CircuitNew(Shape):
    """A circuit to reserve; the same request id with the same content again is answered with the same circuit."""

    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    hub: EndNew = EndNew()
    sites: Annotated[list[EndNew], Field(min_length=1, max_length=1000)]
    rate_out_bps: _Rate
    rate_in_bps: Annotated[int, Field(ge=0, le=10**15)] = 0
    layer: _Layer = "ethernet-frame"
    begin: _When = "now"
    """`now`, RFC 3339 with an offset, or so long from now: `+2h`."""
    end: _When | None = None
    """As `begin`; left out: until it is cancelled. With `+`: so long after the begin."""
    driver: CircuitDriver = CircuitDriver.LINUX
    replication: Replication = Replication.HEAD_END
    group: Annotated[str, Field(max_length=45)] | None = None
    cap: Cap = Cap.HARD
    shaped_share: Annotated[float, Field(ge=0.85, le=1)] = 0.9
    burst_bytes: Annotated[int, Field(ge=2_000, le=2**31 - 1)] | None = None
    description: _Text = ""
    ticket: _Text = ""
    by: _By = "operator"

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"request_id", "end", "group", "burst_bytes"}

    def to_model(self, now: datetime, request_id: str) -> Circuit:
        """The circuit as it is asked for."""
        begin = coming_moment(self.begin, now)
        return Circuit(
            number=0,
            request_id=request_id,
            asked_sha256=sha256(self.model_dump_json().encode()).hexdigest(),
            ends=tuple(_end(end) for end in (self.hub.model_copy(update={"site": None}), *self.sites)),
            rate_out_bps=self.rate_out_bps,
            rate_in_bps=self.rate_in_bps,
            begin=begin,
            end=None if self.end is None else coming_moment(self.end, begin if self.end.startswith("+") else now),
            driver=self.driver,
            replication=self.replication,
            group=self.group,
            cap=self.cap,
            shaped_share=self.shaped_share,
            burst_bytes=self.burst_bytes,
            description=self.description,
            ticket=self.ticket,
            requested_by=self.by,
        )


class CircuitModify(Shape):
    """What may change of a circuit, all or nothing; `end` null lets it last until it is cancelled."""

    rate_out_bps: _Rate | None = None
    rate_in_bps: Annotated[int, Field(ge=0, le=10**15)] | None = None
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


def port_out(port: Port) -> dict[str, Any]:
    """A port for clients."""
    values = asdict(port)
    return {"port": values.pop("name"), **values, "layer": LAYER}


def changed_port(port: Port, wanted: PortChange) -> Port:
    """The port with what the client said."""
    given = wanted.given()
    if not given:
        raise BadInput("nothing to change was given; give a rate, port rate, interface, underlay, stp or tags")
    return replace(port, **given)


def circuit_out(circuit: Circuit, measured: Sequence[Measured], live: LiveState) -> dict[str, Any]:
    """A circuit for clients: what was reserved, what it was measured to carry, what is used of it."""
    values = asdict(circuit)
    del values["asked_sha256"]
    rows = [row for row in measured if row.circuit == circuit.number]
    return {
        "circuit": values.pop("number"),
        "state": values.pop("state"),
        "reason": values.pop("reason"),
        "shape": circuit.shape,
        "sites": list(circuit.sites),
        **values,
        "layer": LAYER,
        "measured_out_bps": min((row.rate_bps for row in rows if row.direction == "out"), default=None),
        "measured_in_bps": min((row.rate_bps for row in rows if row.direction == "in"), default=None),
        "measured_at": max((row.at for row in rows), default=None),
        "used_out_bps": _used(circuit, live, "out_bps"),
        "used_in_bps": _used(circuit, live, "in_bps"),
        "measurements": [_measured_out(row) for row in rows],
    }


def event_out(event: CircuitEvent) -> dict[str, Any]:
    """An event for clients."""
    values = asdict(event)
    del values["circuit"]
    return values


def _measured_out(row: Measured) -> dict[str, Any]:
    values = asdict(row)
    del values["circuit"]
    return {**values, "enough": row.enough}


def _used(circuit: Circuit, live: LiveState, name: str) -> float:
    """By the site that gets or sends most: what is reserved, is so for each. Of a sum for all, the even share."""
    loads = (live.circuits.get((circuit.number, site)) for site in circuit.sites)
    all_of_it = live.circuits.get((circuit.number, None))
    share = float(getattr(all_of_it, name)) / len(circuit.sites) if all_of_it else 0.0
    return max((float(getattr(load, name)) for load in loads if load is not None), default=share)


def _end(end: EndNew) -> CircuitEnd:
    return CircuitEnd(end.port, end.site, end.first_vlan, end.last_vlan, address=end.address)


LAYER: _Layer = "ethernet-frame"
