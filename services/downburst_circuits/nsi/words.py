"""The messages of the Connection Service in both directions, typed and free of XML."""

from dataclasses import dataclass
from enum import StrEnum

from downburst_circuits.nsi.stp import Stp


class Operation(StrEnum):
    """The requests, by their names on the wire."""

    RESERVE = "reserve"
    COMMIT = "reserveCommit"
    ABORT = "reserveAbort"
    PROVISION = "provision"
    RELEASE = "release"
    TERMINATE = "terminate"
    SUMMARY = "querySummarySync"
    RESULTS = "queryResultSync"


class Question(StrEnum):
    """The queries that a provider answers, by their names on the wire."""

    SUMMARY = "querySummary"
    SUMMARY_SYNC = "querySummarySync"
    RECURSIVE = "queryRecursive"
    NOTIFICATIONS_SYNC = "queryNotificationSync"
    RESULTS_SYNC = "queryResultSync"


class ReservationState(StrEnum):
    """The negotiation of a reservation. START is committed or fallen back: only our own commit tells."""

    START = "ReserveStart"
    CHECKING = "ReserveChecking"
    HELD = "ReserveHeld"
    COMMITTING = "ReserveCommitting"
    FAILED = "ReserveFailed"
    TIMEOUT = "ReserveTimeout"
    ABORTING = "ReserveAborting"

    @classmethod
    def _missing_(cls, value: object) -> "ReservationState | None":
        # OpenNSA lists a reservation that it commits with one letter less.
        return cls.COMMITTING if value == "ReserveComitting" else None


class ProvisionState(StrEnum):
    """The request for the data plane."""

    RELEASED = "Released"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RELEASING = "Releasing"


class LifecycleState(StrEnum):
    """The life of a reservation."""

    CREATED = "Created"
    FAILED = "Failed"
    PASSED_END = "PassedEndTime"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"


@dataclass(frozen=True, slots=True)
class Criteria:
    """The asked or granted properties of a reservation."""

    capacity_mbps: int
    """Whole Mb/s, one figure for both directions."""
    source: Stp
    dest: Stp
    begin_us: int | None = None
    """Microseconds since 1970; None: immediately."""
    end_us: int | None = None
    """None: until it is terminated."""


@dataclass(frozen=True, slots=True)
class Told:
    """Criteria as a provider tells them; None: it left the value out."""

    version: int
    capacity_mbps: int | None = None
    source: Stp | None = None
    dest: Stp | None = None
    begin_us: int | None = None
    end_us: int | None = None
    service_type: str | None = None
    both_ways: bool = True
    """False: the provider names another directionality than Bidirectional."""


@dataclass(frozen=True, slots=True)
class States:
    """The four states of a reservation."""

    reservation: ReservationState
    provision: ProvisionState | None
    """None: not told, as before the first commit."""
    lifecycle: LifecycleState
    active: bool
    active_version: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceException:
    """The reason of a refusal or failure, bounded."""

    error_id: str
    text: str
    nsa: str = ""
    connection_id: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request, complete but for its XML."""

    operation: Operation
    correlation_id: str
    connection_id: str | None = None
    """None: a first reservation, or a query of all."""
    global_id: str | None = None
    description: str | None = None
    version: int | None = None
    criteria: Criteria | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The names in the header of a message."""

    correlation_id: str
    requester_nsa: str
    provider_nsa: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a provider reads it."""

    operation: Operation | Question
    header: Header
    reply_to: str | None = None
    connection_ids: tuple[str, ...] = ()
    """One, but for queries of several and for a first reservation."""
    global_ids: tuple[str, ...] = ()
    description: str = ""
    version: int | None = None
    """None: left out."""
    criteria: Told | None = None
    first_number: int | None = None
    """The range of notifications or results, to `last_number`; None: open."""
    last_number: int | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The provider has taken a request and works on it. `connection_id` is the one that a reservation got."""

    connection_id: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A SOAP fault."""

    text: str
    exception: ServiceException | None = None
    """None: a fault of SOAP itself."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """reserveConfirmed: held until a time-out of the provider."""

    connection_id: str
    told: Told


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The confirmation of any other operation."""

    operation: Operation
    connection_id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation failed, with a change of state."""

    operation: Operation
    connection_id: str
    exception: ServiceException


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An operation met an error that changed no state."""

    exception: ServiceException


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """reserveTimeout: the hold was given up."""

    connection_id: str
    timeout_s: int


@dataclass(frozen=True, slots=True)
class DataPlaneChanged:
    """dataPlaneStateChange."""

    connection_id: str
    active: bool
    version: int | None


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """errorEvent: activateFailed, deactivateFailed, dataplaneError or forcedEnd."""

    connection_id: str
    event: str
    exception: ServiceException | None


@dataclass(frozen=True, slots=True)
class DeliveryTimedOut:
    """messageDeliveryTimeout: an aggregator could not deliver a request further down."""

    connection_id: str
    of_correlation_id: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A reservation in the answer to a query."""

    connection_id: str
    global_id: str | None
    requester_nsa: str
    states: States
    told: tuple[Told, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry of a list that can't be read."""

    sentence: str
    requester_nsa: str | None
    """Its requester, if that could be read."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to querySummarySync."""

    reservations: tuple[Listed, ...]
    unread: tuple[Unread, ...] = ()
    """While one may be ours, absence from the list proves nothing."""


Reply = Reserved | Confirmed | Failed | ErrorReply
"""The answers to an operation; the correlation id of their header is the operation's."""


@dataclass(frozen=True, slots=True)
class Result:
    """A stored reply."""

    correlation_id: str
    reply: Reply


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to queryResultSync, oldest first."""

    results: tuple[Result, ...]


Notice = HoldExpired | DataPlaneChanged | ErrorEvent | DeliveryTimedOut
Body = Acknowledged | Fault | Reply | Notice | Listing | Results


@dataclass(frozen=True, slots=True)
class Sent:
    """A reply or notification that a provider has made, with its place in the order of all."""

    number: int
    at_us: int
    correlation_id: str
    """Of the request, or of the notification itself."""
    body: Reply | Notice
    states: States | None = None
    """The states after a failed operation."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message from a provider."""

    header: Header | None
    """None: faults may lack it."""
    body: Body
