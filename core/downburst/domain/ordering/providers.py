"""Records of other networks' providers of circuits, which are asked by NSI."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Dialect(StrEnum):
    """The form in which a provider takes a change of a reservation."""

    CAPACITY = "capacity"
    """The standard's: the capacity alone."""
    P2PS = "p2ps"
    """A service element with the capacity, and always both times: SuPA behind PolyNSI, OSCARS."""
    NONE = "none"
    """It takes none: a second reservation is made before the first is removed (OpenNSA)."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM for TLS."""

    certificate: Path
    """The client's."""
    key: Path
    authorities: Path
    """The authorities that the provider's certificate is verified with."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider agent of the Connection Service."""

    name: str
    url: str
    """Of the service, such as https://nsi.example.net/soap/connection/provider."""
    provider_nsa: str
    requester_nsa: str
    dialect: Dialect = Dialect.CAPACITY
    certificate: Certificate | None = None
    """None: an address of this machine without TLS, for a proxy that adds it."""
    reply_to: str | None = None
    """The address named for callbacks. OpenNSA wants one, even if nothing listens there."""
    service_type: str = "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE"
