"""The topology, the questions to the reservation desk, and its bookings of tests with load.

Rates are bits per second of Ethernet frames. Windows are half-open: [begin, end), in UTC.
"""

from datetime import datetime
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from downburst.domain import circuits, topology
from downburst.domain.circuits import PathOrder
from downburst.domain.topology import TagKind, bookings, elements, questions
from downburst.foundation.errors import BadInput
from downburst.foundation.moments import coming_moment
from downburst_contract.base import Answer, Shape, Text, members
from downburst_contract.circuits import CircuitHop

_Name = Annotated[str, Field(pattern=f"^{elements.NAME.pattern}$")]
_Rate = Annotated[int, Field(ge=1, le=elements.HIGHEST_BPS)]
_RateBack = Annotated[int, Field(ge=0, le=elements.HIGHEST_BPS)]
_Names = Annotated[list[_Name], Field(min_length=1, max_length=elements.MOST_PORTS)]
_Several = Annotated[list[_Name], Field(max_length=elements.MOST_PORTS, default_factory=list)]
_When = Annotated[str, Field(max_length=64)]
_EndName = Annotated[str, Field(max_length=63)]
_MOST = 5_000
_Element = TypeVar("_Element", topology.Domain, topology.Switch, topology.Link, topology.Host, topology.Maintenance)


class TagsWanted(Shape):
    """A range of tags."""

    kind: TagKind = TagKind.VLAN
    first: Annotated[int, Field(ge=1, le=elements.HIGHEST_VNI)]
    last: Annotated[int, Field(ge=1, le=elements.HIGHEST_VNI)]


class DomainWanted(Shape):
    """A network under one administration."""

    name: _Name
    description: Text = ""
    ports: _Several
    """Ports of circuits on machines of this network, which sets up what is there."""


class SwitchWanted(Shape):
    """A switch with its ports."""

    name: _Name
    domain: _Name
    ports: _Names
    translates: bool = False
    """Whether a circuit may leave it with another tag than it came with."""
    node: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """The site whose node translates there; null: the switch itself does, or nothing does."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"node"}


class LinkWanted(Shape):
    """A line between two ports: of the hub, of sites or of switches."""

    name: _Name
    a: _Name
    z: _Name
    az_bps: _Rate
    """What circuits may reserve from `a` to `z`."""
    za_bps: _Rate
    tags: TagsWanted | None = None
    """The tags that circuits may have; null: they aren't told apart by tags."""
    cost: Annotated[int, Field(ge=1, le=elements.HIGHEST_COST)] = 1
    """Its length for the shortest path, in any unit that all links share."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"tags"}


class HostWanted(Shape):
    """A machine that circuits end at; its ports share its network card."""

    name: _Name
    ports: _Names
    nic_bps: _Rate


class MaintenanceWanted(Shape):
    """A window in which elements take no new reservation; what they hold stays."""

    name: _Name
    of: _Names
    """Links, switches, hosts or ports of the hub or of sites."""
    begin: datetime
    end: datetime
    reason: Text = ""


class TopologyWanted(Shape):
    """A whole topology; kinds that are left out have no elements."""

    domains: Annotated[list[DomainWanted], Field(max_length=_MOST, default_factory=list)]
    switches: Annotated[list[SwitchWanted], Field(max_length=_MOST, default_factory=list)]
    links: Annotated[list[LinkWanted], Field(max_length=_MOST, default_factory=list)]
    hosts: Annotated[list[HostWanted], Field(max_length=_MOST, default_factory=list)]
    maintenance: Annotated[list[MaintenanceWanted], Field(max_length=_MOST, default_factory=list)]

    def to_model(self) -> topology.Topology:
        """The topology, each kind by name; refuses impossible values."""
        try:
            return topology.Topology(
                domains=_sorted(
                    [topology.Domain(one.name, one.description, tuple(one.ports)) for one in self.domains]
                ),
                switches=_sorted(
                    [
                        topology.Switch(one.name, one.domain, tuple(one.ports), one.translates, one.node)
                        for one in self.switches
                    ]
                ),
                links=_sorted([_link(one) for one in self.links]),
                hosts=_sorted([topology.Host(one.name, tuple(one.ports), one.nic_bps) for one in self.hosts]),
                maintenance=_sorted(
                    [
                        topology.Maintenance(one.name, tuple(one.of), one.begin, one.end, one.reason)
                        for one in self.maintenance
                    ]
                ),
            )
        except ValueError as error:
            raise BadInput(f"the topology can't be used: {error}") from None


class _PathAsked(Shape):
    to: Annotated[str, Field(min_length=1, max_length=63)]
    """A site that has one port, or a port of a site."""
    port: Annotated[str, Field(max_length=63)] = ""
    """The hub's port; left out: its only one."""
    order: PathOrder = PathOrder.SHORTEST
    include: _Several
    """Links and switches that the path must pass."""
    exclude: _Several
    """Links and switches that it must not pass."""

    def path(self, ports: set[str]) -> questions.PathQuestion:
        """The path asked for; `ports` are all ports of circuits."""
        far = circuits.CircuitEnd(self.to) if self.to in ports else circuits.CircuitEnd("", self.to)
        chosen = frozenset(self.include), frozenset(self.exclude)
        return questions.PathQuestion(circuits.CircuitEnd(self.port), far, self.order, *chosen)


class WindowAsked(_PathAsked):
    """When can a circuit have these rates for so long?"""

    rate_out_bps: _Rate
    rate_in_bps: _RateBack = 0
    minutes: Annotated[float, Field(gt=0, le=527_040)]
    first: _When = "now"
    """The earliest begin: RFC 3339, or +2h."""
    last: _When = "+30d"
    """The latest begin."""

    def to_model(self, ports: set[str], now: datetime) -> questions.WindowQuestion:
        """The question."""
        first, last = coming_moment(self.first, now), coming_moment(self.last, now)
        rates = self.rate_out_bps, self.rate_in_bps
        return questions.WindowQuestion(self.path(ports), *rates, self.minutes * 60, first, last)


class RateAsked(_PathAsked):
    """How much is free throughout a window?"""

    order: PathOrder = PathOrder.WIDEST
    begin: _When = "now"
    end: _When
    """RFC 3339, or +2h, counted from the begin."""

    def to_model(self, ports: set[str], now: datetime) -> questions.RateQuestion:
        """The question."""
        begin = coming_moment(self.begin, now)
        return questions.RateQuestion(self.path(ports), begin, coming_moment(self.end, begin))


class Tags(Answer):
    """A range of tags."""

    kind: TagKind
    first: int
    last: int


class Domain(Answer):
    """A network under one administration."""

    name: str
    description: str
    ports: list[str]
    """Ports of circuits on machines of this network."""


class Switch(Answer):
    """A switch with its ports."""

    name: str
    domain: str
    ports: list[str]
    translates: bool
    node: str | None


class Link(Answer):
    """A line between two ports."""

    name: str
    a: str
    z: str
    az_bps: int
    za_bps: int
    tags: Tags | None
    cost: int


class Host(Answer):
    """A machine that circuits end at."""

    name: str
    ports: list[str]
    nic_bps: int


class MaintenanceWindow(Answer):
    """A window in which elements take no new reservation."""

    name: str
    of: list[str]
    begin: datetime
    end: datetime
    reason: str


class Topology(Answer):
    """The whole topology, each kind by name."""

    domains: list[Domain]
    switches: list[Switch]
    links: list[Link]
    hosts: list[Host]
    maintenance: list[MaintenanceWindow]

    @classmethod
    def of(cls, kept: topology.Topology) -> Self:
        """A topology for clients."""
        return cls.model_validate(members(kept), from_attributes=True)


class TopologyAnswered(Topology):
    """A topology that was put, or would be by a dry run."""

    changes: list[str]
    """A sentence each."""
    affected: list[int]
    """Circuits with a window that reaches into a maintenance of what they hold; they stay."""
    done: bool

    @classmethod
    def answer(cls, answer: questions.TopologyAnswer) -> Self:
        """The answer for clients."""
        rest = members(answer, without=("topology",))
        return cls.model_validate(members(answer.topology) | rest, from_attributes=True)


class WindowFound(Answer):
    """A window with room."""

    begin: datetime
    end: datetime
    hub_port: str
    port: str
    path: list[CircuitHop]
    """Empty: the topology has no links at these ports, so the ports alone count."""


class WindowAnswer(Answer):
    """The first window with room; null: none begins in time."""

    sentence: str
    found: WindowFound | None


class RateAnswer(Answer):
    """The rates that are free throughout a window, on the path with the most from the hub."""

    sentence: str
    rate_out_bps: int
    rate_in_bps: int
    hub_port: str
    port: str
    path: list[CircuitHop]


class EndOfTest(Shape):
    """One end of a test: a port by its name, or a site that has one port."""

    port: _EndName = ""
    site: _EndName | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}

    def to_model(self) -> circuits.CircuitEnd:
        """The end as it is asked for."""
        return circuits.CircuitEnd(self.port, self.site)


class WantedTest(Shape):
    """A test that is to run at once."""

    test: Annotated[str, Field(min_length=1, max_length=40)] = "by-hand"
    """The kind of test; it bounds rate and time."""
    near: EndOfTest = EndOfTest()
    """Left out: the hub's only port."""
    far: EndOfTest = EndOfTest()
    rate_out_bps: _RateBack = 0
    """From the near end to the far one, in Ethernet-frame bits per second."""
    rate_in_bps: _RateBack = 0
    seconds: Annotated[float, Field(gt=0, le=86_400)]
    circuit: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """The circuit inside which it runs, with that one's rate; left out: it needs free rate beside all circuits."""
    by: Annotated[str, Field(min_length=1, max_length=100)] = "operator"

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"circuit"}

    @model_validator(mode="after")
    def _has_ends(self) -> Self:
        if self.circuit is None and not self.far.port and self.far.site is None:
            raise ValueError("the far end has neither a site nor a port; name one of them, or a circuit")
        return self

    def to_model(self) -> bookings.WantedTest:
        """The test as it is asked for."""
        near, far = self.near.to_model(), self.far.to_model()
        rates = self.rate_out_bps, self.rate_in_bps
        return bookings.WantedTest(self.test, near, far, *rates, self.seconds, self.circuit, self.by)


class BookedTest(Answer):
    """A test with its place in the calendar."""

    number: int
    kind: Literal["test"] = "test"
    """What it is among the reservations of a calendar."""
    test: str
    """The kind of test."""
    ports: list[str]
    """The near one first."""
    sites: list[str]
    path: list[CircuitHop]
    rate_out_bps: int
    rate_in_bps: int
    begin: datetime
    end: datetime
    circuit: int | None
    """The circuit inside which it runs; null: it has a reservation of its own."""
    by: str

    @classmethod
    def of(cls, booking: bookings.BookedTest) -> Self:
        """A booking for clients."""
        wanted = booking.wanted
        ends = wanted.near, wanted.far
        return cls(
            number=booking.number,
            kind="test",
            test=wanted.kind,
            ports=[end.port for end in ends],
            sites=[end.site for end in ends if end.site],
            path=[CircuitHop(link=hop.link, forward=hop.forward, tag=hop.tag) for hop in booking.path],
            rate_out_bps=wanted.rate_out_bps,
            rate_in_bps=wanted.rate_in_bps,
            begin=booking.begin,
            end=booking.end,
            circuit=wanted.circuit,
            by=wanted.by,
        )


class BookingAnswered(Answer):
    """A grant, or the moment at which to ask again; a refusal is a problem document."""

    granted: bool
    sentence: str
    begin: datetime | None
    """Of a test that has to wait: the first moment at which it would fit now."""
    booking: BookedTest | None

    @classmethod
    def of(cls, answer: bookings.BookingAnswer) -> Self:
        """An answer for clients."""
        booking = BookedTest.of(answer.booking) if answer.booking else None
        return cls(granted=booking is not None, sentence=answer.sentence, begin=answer.begin, booking=booking)


def _sorted(elements: list[_Element]) -> tuple[_Element, ...]:
    return tuple(sorted(elements, key=lambda one: one.name))


def _link(wanted: LinkWanted) -> topology.Link:
    asked = wanted.tags
    tags = None if asked is None else topology.TagRange(asked.kind, asked.first, asked.last)
    return topology.Link(wanted.name, wanted.a, wanted.z, wanted.az_bps, wanted.za_bps, tags, wanted.cost)
