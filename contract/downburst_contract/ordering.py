"""Circuits on demand: offers, providers and orders.

Every rate is bits per second of Ethernet frames; an order is for one site.
"""

import re
from dataclasses import fields
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from downburst.domain import ordering
from downburst.domain.ordering import Budget, Certificate, DemandOrder, Dialect, OrderStep, Setups, offers
from downburst.domain.ordering.providers import NSA_CHARS_MAX, URL_CHARS_MAX, checked_provider
from downburst.foundation.errors import BadName
from downburst_contract.base import Answer, Shape, members

_Name = Annotated[str, Field(min_length=1, max_length=63)]
_Rate = Annotated[int, Field(ge=offers.RATE_LEAST_BPS, le=offers.RATE_MOST_BPS)]
_Price = Annotated[float, Field(ge=0, le=offers.PRICE_MOST, allow_inf_nan=False)]
_SetUp = Annotated[float, Field(ge=0, le=offers.SETUP_MOST_S, allow_inf_nan=False)]
_Hold = Annotated[float, Field(ge=0, le=offers.HOLD_MOST_S, allow_inf_nan=False)]
_Hours = Annotated[float, Field(ge=0, le=offers.HOURS_MOST, allow_inf_nan=False)]
_Url = Annotated[str, Field(min_length=1, max_length=URL_CHARS_MAX)]
_Nsa = Annotated[str, Field(min_length=1, max_length=NSA_CHARS_MAX)]
_SERVICE_TYPE = next(str(one.default) for one in fields(ordering.Provider) if one.name == "service_type")
_File = Annotated[str, Field(min_length=1, max_length=1_024)]


class CircuitOfferWanted(Shape):
    """An offer, without its name."""

    provider: _Name = offers.LINUX
    """`linux`: the hub's own nodes make the circuits; else the name of a provider's record."""
    hub_port: _Name
    """The hub's port, or that of a relay: its circuits carry the segment between two relays on the ways of sites."""
    ports: Annotated[list[_Name], Field(min_length=1, max_length=offers.PORTS_MOST)]
    """Ports of sites, or of relays behind the relay of `hub_port`; an order joins that port with one of them."""
    rates_bps: Annotated[list[_Rate], Field(min_length=1, max_length=offers.RATES_MOST)]
    """The rates that can be ordered, in ascending order."""
    price: _Price | None = None
    """The cost of a reserved bit per second relative to one of egress; null: the setting `scheduler.circuit_cost`."""
    setup_s: _SetUp = 60.0
    """The set-up time that the provider states, in seconds; measured times count instead once there are some."""
    least_hold_s: _Hold = 0.0
    """The shortest time for which a circuit is ordered, in seconds."""
    circuit_hours_a_day: _Hours | None = None
    """The most hours reserved between two midnights UTC, summed over circuits; null: no limit."""
    orders_a_day: Annotated[int, Field(ge=0, le=offers.ORDERS_MOST)] | None = None
    """The most orders between two midnights UTC; null: no limit."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"price", "circuit_hours_a_day", "orders_a_day"}

    def to_model(self, name: str) -> ordering.Offer:
        """The offer; refuses impossible values."""
        return offers.checked_offer(
            ordering.Offer(
                _checked_name(name, "an offer"),
                self.hub_port,
                tuple(self.ports),
                tuple(self.rates_bps),
                provider=self.provider,
                price=self.price,
                setup_s=self.setup_s,
                least_hold_s=self.least_hold_s,
                budget=Budget(self.circuit_hours_a_day, self.orders_a_day),
            )
        )


class MeasuredSetups(Answer):
    """Set-up times of the last circuits of an offer, from the order to the end of the probes."""

    count: int
    median_s: float
    p90_s: float


class UsedToday(Answer):
    """The part of a day's budget that is used, from midnight UTC."""

    circuit_hours: float
    orders: int


class CircuitOffer(Answer):
    """Point-to-point circuits that the scheduler may order."""

    offer: str
    provider: str
    hub_port: str
    ports: list[str]
    rates_bps: list[int]
    price: float | None
    setup_s: float
    least_hold_s: float
    circuit_hours_a_day: float | None
    orders_a_day: int | None
    created_at: datetime | None
    measured: MeasuredSetups | None
    """Null: no circuit has been set up yet."""
    used_today: UsedToday

    @classmethod
    def of(cls, offer: ordering.Offer, *, measured: Setups | None, used_today: UsedToday) -> Self:
        """An offer for clients, with its measured set-up times and the use of its budget."""
        return cls(
            **members(offer, without=("budget",), offer="name"),
            circuit_hours_a_day=offer.budget.circuit_hours,
            orders_a_day=offer.budget.orders,
            measured=None if measured is None else MeasuredSetups(**members(measured)),
            used_today=used_today,
        )


class CircuitOffers(Answer):
    """All offers, by name."""

    offers: list[CircuitOffer]


class CircuitProviderWanted(Shape):
    """A provider, without its name. Files are read on the hub's machine when the provider is used."""

    url: _Url
    """Of its Connection Service."""
    provider_nsa: _Nsa
    requester_nsa: _Nsa
    """The hub's own name, which the provider knows."""
    dialect: Dialect = Dialect.CAPACITY
    """`capacity`: the standard's change of a rate; `p2ps`: SuPA behind PolyNSI, OSCARS; `none`: OpenNSA."""
    certificate: _File | None = None
    """The hub's certificate in PEM, as an absolute path; it belongs together with `key` and `authorities`."""
    key: _File | None = None
    authorities: _File | None = None
    """The certificates in PEM that the provider's own is verified with."""
    reply_to: _Url | None = None
    """The address for callbacks; null: the provider is asked for news instead."""
    service_type: _Url = _SERVICE_TYPE

    @field_validator("certificate", "key", "authorities")
    @classmethod
    def _is_absolute(cls, path: str | None) -> str | None:
        if path is not None and not (PurePosixPath(path).is_absolute() and path.isprintable()):
            raise ValueError(f"{path[:80]!r} is not an absolute path; write for example /etc/downburst/nsi.pem")
        return path

    @model_validator(mode="after")
    def _all_files(self) -> Self:
        files = (self.certificate, self.key, self.authorities)
        if None in files and files != (None, None, None):
            raise ValueError("certificate, key and authorities belong together; give all three, or none")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"certificate", "key", "authorities", "reply_to"}

    def to_model(self, name: str) -> ordering.Provider:
        """The provider; refuses impossible values."""
        return checked_provider(
            ordering.Provider(
                _checked_name(name, "a provider"),
                self.url,
                self.provider_nsa,
                self.requester_nsa,
                self.dialect,
                self._files(),
                self.reply_to,
                self.service_type,
            )
        )

    def _files(self) -> Certificate | None:
        if self.certificate is None or self.key is None or self.authorities is None:
            return None
        return Certificate(Path(self.certificate), Path(self.key), Path(self.authorities))


class CircuitProvider(Answer):
    """Another network's provider of circuits, which is asked by NSI."""

    provider: str
    url: str
    provider_nsa: str
    requester_nsa: str
    dialect: Dialect
    certificate: str | None
    """Null, like the next two: a proxy on the hub's machine adds TLS."""
    key: str | None
    authorities: str | None
    reply_to: str | None
    service_type: str

    @classmethod
    def of(cls, provider: ordering.Provider) -> Self:
        """A provider for clients, with the paths of its files."""
        files = provider.certificate
        return cls(
            **members(provider, without=("certificate",), provider="name"),
            certificate=None if files is None else str(files.certificate),
            key=None if files is None else str(files.key),
            authorities=None if files is None else str(files.authorities),
        )


class CircuitProviders(Answer):
    """All providers, by name."""

    providers: list[CircuitProvider]


class CircuitOrderAsked(Answer):
    """The decision of the scheduler."""

    order: int
    offer: str
    feed: str
    site: str
    rate_bps: int
    reason: str
    """The reason for the order, in a sentence."""


class CircuitOrder(CircuitOrderAsked):
    """An order of a circuit on demand, from the decision to the outcome."""

    step: OrderStep
    circuit: int | None
    """Null: none was made, or none is known yet."""
    ordered_at: datetime
    until: datetime
    """The end of the circuit's window; later while the feed needs it."""
    up_at: datetime | None
    """The end of the probes; null: it never carried the feed."""
    released_at: datetime | None
    ended_at: datetime | None
    setup_s: float | None
    """From the order to the end of the probes."""
    outcome: str
    """The result, or the reason for a refusal, in a sentence."""
    used_share: float | None
    """Bytes carried over the bytes that its rate allows in the reserved time; null: not ended."""
    products: int | None
    gained_ms: float | None
    """Median latency on the routed path less that on the circuit; the outcome says which medians. Null: not known."""

    @classmethod
    def of(cls, order: DemandOrder) -> Self:
        """An order for clients."""
        use = order.use
        return cls(
            **members(order, without=("times", "use"), order="number"),
            **members(order.times),
            setup_s=order.setup_s,
            used_share=None if use is None else use.used_share,
            products=None if use is None else use.products,
            gained_ms=None if use is None else use.gained_ms,
        )


class CircuitOrderPage(Answer):
    """A page of orders, newest first."""

    orders: list[CircuitOrder]
    next: int | None
    """`before` of the next page; null: there is none."""


def _checked_name(text: str, of: str) -> str:
    if not _NAME.fullmatch(text):
        raise BadName(
            f"{text[:80]!r} can't be the name of {of}; "
            "use 1 to 63 letters, digits and . _ : -, a letter or digit first"
        )
    return text


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,62}")
