"""Tests with load in the calendar: what one asks for, and what becomes of it."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from downburst.domain import bookings
from downburst.domain.circuits import CircuitEnd
from downburst_contract.base import Answer, Shape
from downburst_contract.circuits import CircuitHop

_Rate = Annotated[int, Field(ge=0, le=10**15)]
_Name = Annotated[str, Field(max_length=63)]


class EndOfTest(Shape):
    """One end of a test: a port by its name, or a site that has one port."""

    port: _Name = ""
    site: _Name | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}

    def to_model(self) -> CircuitEnd:
        """The end as it is asked for."""
        return CircuitEnd(self.port, self.site)


class WantedTest(Shape):
    """A test that is to run at once."""

    test: Annotated[str, Field(min_length=1, max_length=40)] = "by-hand"
    """The kind of test; it bounds rate and time."""
    near: EndOfTest = EndOfTest()
    """Left out: the hub's only port."""
    far: EndOfTest = EndOfTest()
    rate_out_bps: _Rate = 0
    """From the near end to the far one, in Ethernet-frame bits per second."""
    rate_in_bps: _Rate = 0
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
