"""The XML of providers, as SuPA behind PolyNSI and OpenNSA send it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

PROVIDER_NSA = "urn:ogf:network:north.example:2026:nsa:agent"
REQUESTER_NSA = "urn:ogf:network:hub.example:2026:nsa:downburst"
SERVICE_TYPE = "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE"
CORRELATION = "urn:uuid:00000000-0000-4000-8000-0000000000aa"


@dataclass
class Granted:
    version: int
    capacity: int
    source: str
    dest: str
    begin: str | None
    end: str | None


def envelope(body: str, correlation_id: str = CORRELATION, provider_nsa: str = PROVIDER_NSA) -> bytes:
    return f"""<?xml version='1.0' encoding='UTF-8'?>
<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:h="http://schemas.ogf.org/nsi/2013/12/framework/headers"
  xmlns:c="http://schemas.ogf.org/nsi/2013/12/connection/types"
  xmlns:p="http://schemas.ogf.org/nsi/2013/12/services/point2point"
  xmlns:f="http://schemas.ogf.org/nsi/2013/12/framework/types">
<s:Header><h:nsiHeader><protocolVersion>application/vnd.ogf.nsi.cs.v2.requester+soap</protocolVersion>
<correlationId>{correlation_id}</correlationId><requesterNSA>{REQUESTER_NSA}</requesterNSA>
<providerNSA>{provider_nsa}</providerNSA></h:nsiHeader></s:Header>
<s:Body>{body}</s:Body></s:Envelope>""".encode()


def exception(error_id: str, text: str) -> str:
    """With empty elements for what does not exist, as PolyNSI writes it."""
    return (
        f"<nsaId>{PROVIDER_NSA}</nsaId><connectionId></connectionId><serviceType></serviceType>"
        f"<errorId>{error_id}</errorId><text>{escape(text)}</text>"
        "<variables><variable type='x'><value>1</value></variable></variables>"
    )


def fault(error_id: str, text: str) -> bytes:
    return envelope(
        f"<s:Fault><faultcode>s:Server</faultcode><faultstring>{escape(text)}</faultstring><detail>"
        f"<f:serviceException>{exception(error_id, text)}</f:serviceException></detail></s:Fault>"
    )


def acknowledgment(correlation_id: str = CORRELATION) -> bytes:
    return envelope("<c:acknowledgment/>", correlation_id)


def reserve_response(connection_id: str, correlation_id: str = CORRELATION) -> bytes:
    return envelope(
        f"<c:reserveResponse><connectionId>{connection_id}</connectionId></c:reserveResponse>", correlation_id
    )


def criteria(granted: Granted, *, children: str = "") -> str:
    begin = f"<startTime>{granted.begin}</startTime>" if granted.begin else ""
    end = f"<endTime>{granted.end}</endTime>" if granted.end else ""
    return (
        f"<criteria version='{granted.version}'><schedule>{begin}{end}</schedule>"
        f"<serviceType>{SERVICE_TYPE}</serviceType>{children}<p:p2ps><capacity>{granted.capacity}</capacity>"
        "<directionality>Bidirectional</directionality><symmetricPath>true</symmetricPath>"
        f"<sourceSTP>{granted.source}</sourceSTP><destSTP>{granted.dest}</destSTP></p:p2ps></criteria>"
    )


def reserve_confirmed(connection_id: str, granted: Granted, name: str = "c:reserveConfirmed") -> str:
    return f"<{name}><connectionId>{connection_id}</connectionId>{criteria(granted)}</{name}>"


def confirmed(operation: str, connection_id: str, prefix: str = "c:") -> str:
    name = f"{prefix}{operation}Confirmed"
    return f"<{name}><connectionId>{connection_id}</connectionId></{name}>"


def failed(operation: str, connection_id: str, error_id: str, text: str, prefix: str = "c:") -> str:
    name = f"{prefix}{operation}Failed"
    return (
        f"<{name}><connectionId>{connection_id}</connectionId>{states('ReserveFailed')}"
        f"<serviceException>{exception(error_id, text)}</serviceException></{name}>"
    )


def states(
    reservation: str = "ReserveStart",
    provision: str | None = "Released",
    lifecycle: str = "Created",
    *,
    active: bool = False,
    version: int = 0,
) -> str:
    provisioned = f"<provisionState>{provision}</provisionState>" if provision else ""
    return (
        f"<connectionStates><reservationState>{reservation}</reservationState>{provisioned}"
        f"<lifecycleState>{lifecycle}</lifecycleState><dataPlaneStatus><active>{str(active).lower()}</active>"
        f"<version>{version}</version><versionConsistent>true</versionConsistent></dataPlaneStatus></connectionStates>"
    )


def reservation(
    connection_id: str, global_id: str | None, told: str, state: str, requester: str = REQUESTER_NSA
) -> str:
    named = f"<globalReservationId>{global_id}</globalReservationId>" if global_id else ""
    return (
        f"<reservation><connectionId>{connection_id}</connectionId>{named}<description>d</description>{told}"
        f"<requesterNSA>{requester}</requesterNSA>{state}<notificationId>1</notificationId></reservation>"
    )


def summary(*reservations: str) -> bytes:
    return envelope(f"<c:querySummarySyncConfirmed>{''.join(reservations)}</c:querySummarySyncConfirmed>")


def results(*found: tuple[str, str]) -> bytes:
    listed = "".join(
        f"<result><resultId>{number}</resultId><correlationId>{correlation_id}</correlationId>"
        f"<timeStamp>2026-01-01T00:00:00Z</timeStamp>{body}</result>"
        for number, (correlation_id, body) in enumerate(found, 1)
    )
    return envelope(f"<c:queryResultSyncConfirmed>{listed}</c:queryResultSyncConfirmed>")


def notice(name: str, connection_id: str, rest: str) -> bytes:
    return envelope(
        f"<c:{name}><connectionId>{connection_id}</connectionId><notificationId>4</notificationId>"
        f"<timeStamp>2026-01-01T00:00:00Z</timeStamp>{rest}</c:{name}>"
    )


def html(text: str = "Internal Server Error") -> bytes:
    return f"<!DOCTYPE html><html><body><h1>{text}</h1><hr></body></html>".encode()


def moment(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat()
