"""A provider agent's machine: bytes in, status and bytes out, in the dialect of SuPA or of OpenNSA."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from kit.nsi import words
from kit.nsi.words import Granted


@dataclass
class Connection:
    connection_id: str
    global_id: str
    requester: str
    granted: Granted | None = None
    held: Granted | None = None
    held_until_us: int = 0
    reservation: str = "ReserveHeld"
    provision: str | None = "Released"
    lifecycle: str = "Created"
    results: list[tuple[str, str]] = field(default_factory=list)
    never_ends: bool = False
    path_from_us: int = 0
    """The data plane is not there before."""

    def active(self, now_us: int) -> bool:
        now = words.moment(now_us)
        started = self.granted is not None and (self.granted.begin is None or self.granted.begin <= now)
        started = started and now_us >= self.path_from_us
        return started and self.provision == "Provisioned" and self.lifecycle == "Created"


class ProviderMachine:
    """All of its reservations. `now_us` is its clock; `callbacks` collects what it would post to replyTo."""

    def __init__(self, now_us: Callable[[], int], *, kind: str = "supa", port_mbps: int = 1_000) -> None:
        self.now_us, self.kind, self.port_mbps = now_us, kind, port_mbps
        self.hold_us = 30_000_000
        self.activation_us = 0
        self.connections: dict[str, Connection] = {}
        self.callbacks: list[bytes] = []
        self.correlations: set[str] = set()
        self.requests: list[str] = []
        self.away = False
        """Behind its proxy: every request is answered with 00500."""
        self.decides = True
        """False: orders stay in checking."""
        self.lists_refused = True
        """False: what it refused is in no list; its reply is kept."""
        self.grants: Callable[[Granted], Granted] = lambda granted: granted
        """Alters what is confirmed."""
        self.vlan = 100

    def live(self) -> list[Connection]:
        return [one for one in self.connections.values() if one.lifecycle not in ("Terminated", "Terminating")]

    def post(self, body: bytes) -> tuple[int, bytes]:
        envelope = etree.fromstring(body)
        head, request = envelope[0][0], envelope[1][0]
        operation = etree.QName(request).localname
        correlation_id = head.findtext("correlationId") or ""
        self.requests.append(operation)
        self.tick()
        if self.away:
            return 500, words.fault("00500", "INTERNAL_ERROR: UNAVAILABLE: io exception")
        if self.kind == "supa" and correlation_id in self.correlations:
            return 500, words.fault("00101", "correlationId must be unique")
        self.correlations.add(correlation_id)
        if operation == "queryResultSync" and self.kind == "opennsa":
            return 500, words.html()
        handler: Callable[..., tuple[int, bytes]] = getattr(self, f"_{operation}", self._change)
        return handler(operation=operation, request=request, correlation_id=correlation_id, head=head)

    def tick(self) -> None:
        for one in self.live():
            if one.reservation == "ReserveHeld" and self.now_us() >= one.held_until_us:
                one.reservation = "ReserveTimeout" if self.kind == "supa" else "ReserveStart"
                one.held = None
            if one.granted and one.granted.end and one.granted.end <= words.moment(self.now_us()):
                one.lifecycle = "PassedEndTime"

    def _reserve(
        self, request: etree._Element, correlation_id: str, head: etree._Element, **_: str
    ) -> tuple[int, bytes]:
        known = request.findtext("connectionId")
        if known:
            return self._modify(known, request, correlation_id)
        asked = self._asked(request)
        if self.kind == "opennsa" and asked.source.split("?")[0].endswith("unknown"):
            self._keep_refused(request, head)
            return 500, words.fault("00704", "STP_UNAVAILABLE: no such port")
        one = Connection(
            f"conn-{len(self.connections) + 1}",
            request.findtext("globalReservationId") or "",
            head.findtext("requesterNSA") or "",
        )
        self.connections[one.connection_id] = one
        self._hold(one, asked, correlation_id)
        return 200, words.reserve_response(one.connection_id, correlation_id)

    def _keep_refused(self, request: etree._Element, head: etree._Element) -> None:
        """OpenNSA lists some orders that it refused at once, and never tells them terminated."""
        named = request.findtext("globalReservationId") or "", head.findtext("requesterNSA") or ""
        one = Connection(f"conn-{len(self.connections) + 1}", *named, reservation="ReserveStart", never_ends=True)
        self.connections[one.connection_id] = one

    def _modify(self, connection_id: str, request: etree._Element, correlation_id: str) -> tuple[int, bytes]:
        one = self.connections.get(connection_id)
        if self.kind == "opennsa":
            return 500, words.fault("00100", "modification is not supported")
        if one is None or one.granted is None:
            return 500, words.fault("00203", "no such connection")
        version = int(request.find("criteria").get("version"))  # type: ignore[union-attr,arg-type]
        if one.reservation != "ReserveStart" or version != one.granted.version + 1:
            return 500, words.fault("00201", "the state machine does not allow it")
        capacity = request.findtext("criteria/{*}p2ps/capacity") or "0"
        schedule = "criteria/schedule"
        begin = request.findtext(f"{schedule}/startTime") or words.moment(self.now_us())
        changed = Granted(version, int(capacity), one.granted.source, one.granted.dest, begin,
                          request.findtext(f"{schedule}/endTime"))  # fmt: skip
        self._hold(one, changed, correlation_id)
        return 200, words.reserve_response(connection_id, correlation_id)

    def _hold(self, one: Connection, asked: Granted, correlation_id: str) -> None:
        refusal = self._refusal(asked) if one.granted is None else None
        if refusal:
            one.reservation = "ReserveFailed"
            self._tell(one, correlation_id, words.failed("reserve", one.connection_id, *refusal, prefix=""))
            return
        if not self.decides:
            one.reservation = "ReserveChecking"
            return
        one.held = self.grants(asked)
        one.reservation, one.held_until_us = "ReserveHeld", self.now_us() + self.hold_us
        self._tell(one, correlation_id, words.reserve_confirmed(one.connection_id, one.held, "reserveConfirmed"))

    def _refusal(self, asked: Granted) -> tuple[str, str] | None:
        if self.kind == "supa" and asked.capacity > self.port_mbps:
            return "00705", "CAPACITY_UNAVAILABLE"
        if asked.source.split("?")[0].endswith("unknown"):
            return "00701", "UNKNOWN_STP"
        return None

    def _tell(self, one: Connection, correlation_id: str, body: str) -> None:
        """Keeps a reply for queryResultSync, and sends it as a callback."""
        one.results.append((correlation_id, body))
        name = body[1:].partition(">")[0]
        qualified = body.replace(f"<{name}>", f"<c:{name}>").replace(f"</{name}>", f"</c:{name}>")
        self.callbacks.append(words.envelope(qualified, correlation_id))

    def _change(
        self, operation: str, request: etree._Element, correlation_id: str, **_: etree._Element
    ) -> tuple[int, bytes]:
        one = self.connections.get(request.findtext("connectionId") or "")
        if one is None or one.lifecycle == "Terminated":
            return 500, words.fault("00203", "no such connection")
        if not getattr(self, f"_on_{operation}")(one):
            return 500, words.fault("00201" if self.kind == "supa" else "00500", "not in this state")
        self._tell(one, correlation_id, words.confirmed(operation, one.connection_id, prefix=""))
        return 200, words.acknowledgment(correlation_id)

    def _on_reserveCommit(self, one: Connection) -> bool:  # noqa: N802
        if one.reservation != "ReserveHeld":
            return False
        one.granted, one.held, one.reservation = one.held, None, "ReserveStart"
        return True

    def _on_reserveAbort(self, one: Connection) -> bool:  # noqa: N802
        if one.granted is None or one.reservation == "ReserveStart":
            return False
        one.held, one.reservation = None, "ReserveStart"
        return True

    def _on_provision(self, one: Connection) -> bool:
        if one.granted is None or one.provision != "Released":
            return False
        one.provision, one.path_from_us = "Provisioned", self.now_us() + self.activation_us
        return True

    def _on_release(self, one: Connection) -> bool:
        if one.provision != "Provisioned":
            return False
        one.provision = "Released"
        return True

    def _on_terminate(self, one: Connection) -> bool:
        one.lifecycle, one.provision = "Terminating" if one.never_ends else "Terminated", "Released"
        return True

    def _querySummarySync(self, **_: object) -> tuple[int, bytes]:  # noqa: N802
        shown = (one for one in self.connections.values() if self.lists_refused or one.reservation != "ReserveFailed")
        return 200, words.summary(*(self._listed(one) for one in shown))

    def _queryResultSync(self, request: etree._Element, **_: object) -> tuple[int, bytes]:  # noqa: N802
        one = self.connections[request.findtext("connectionId") or ""]
        return 200, words.results(*one.results)

    def _listed(self, one: Connection) -> str:
        """SuPA tells no criteria before the commit; OpenNSA tells version 0 always."""
        told = one.granted
        if self.kind == "opennsa" and (told or one.held):
            shown = told or one.held
            assert shown is not None
            told = Granted(0, shown.capacity, shown.source, shown.dest, shown.begin, shown.end)
        active = one.active(self.now_us())
        state = words.states(
            one.reservation, one.provision, one.lifecycle, active=active, version=told.version if told else 0
        )
        return words.reservation(
            one.connection_id, one.global_id, words.criteria(told) if told else "", state, one.requester
        )

    def _asked(self, request: etree._Element) -> Granted:
        service = "criteria/{*}p2ps"
        ends = (request.findtext(f"{service}/{name}") or "" for name in ("sourceSTP", "destSTP"))
        source, dest = (self._one_vlan(end) for end in ends)
        begin = request.findtext("criteria/schedule/startTime") or words.moment(self.now_us())
        end = request.findtext("criteria/schedule/endTime")
        return Granted(1, int(request.findtext(f"{service}/capacity") or "0"), source, dest, begin, end)

    def _one_vlan(self, stp: str) -> str:
        base, question, label = stp.partition("?vlan=")
        if not question:
            return stp
        first = int(label.split("-")[0])
        held = [criteria for one in self.live() for criteria in (one.granted, one.held) if criteria]
        taken = {end for criteria in held for end in (criteria.source, criteria.dest)}
        return next(text for vlan in range(first, 4_095) if (text := f"{base}?vlan={vlan}") not in taken)
