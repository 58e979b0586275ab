"""Requests of sites for access, by number."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.access import AccessRequest, Decision, RequestState, Role, User
from downburst.domain.sites import Place, Site
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound, Refused
from downburst.ledger.repositories.access import Users
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.sites import Sites
from downburst.ledger.storage import limits
from downburst.ledger.tables.access import access_requests
from downburst.network.addresses import network_of


class AccessRequests:
    """The queue; decided requests beyond the newest thousand are removed."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self, *, waiting: bool = True) -> list[AccessRequest]:
        """The pending requests, oldest first; or all."""
        query = select(access_requests).order_by(access_requests.c.number)
        if waiting:
            query = query.where(access_requests.c.state == RequestState.WAITING)
        return [_request(row) for row in self._connection.execute(query)]

    def one(self, number: int) -> AccessRequest:
        """The request; refuses an unknown number."""
        query = select(access_requests).where(access_requests.c.number == number)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"there is no request {number}; `downburst requests list` shows pending ones")
        return _request(row)

    def by_secret(self, sha256: str) -> AccessRequest:
        """The request with this secret; refuses another secret."""
        query = select(access_requests).where(access_requests.c.secret_sha256 == sha256)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise Refused("this request is unknown here; request access again")
        return _request(row)

    def add(self, wanted: AccessRequest) -> AccessRequest:
        """Adds a request under a new number, within the limits."""
        self._check_limits(wanted.peer)
        row = _row(wanted) | {"feeds": list(wanted.feeds), "asked_at": self._clock.now()}
        del row["number"]
        key = self._connection.execute(insert(access_requests).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        decided = access_requests.c.state != RequestState.WAITING
        self._connection.execute(delete(access_requests).where(decided, access_requests.c.number <= number - KEPT))
        kept = self.one(number)
        self._audit.record("access request", number, "added", after=_audited(kept))
        return kept

    def approve(self, number: int, *, allow: Sequence[str], by: str, answer: str = "") -> AccessRequest:
        """Adds the requested site, and a user of the site who may sign in once invited."""
        request = self._waiting(number)
        sites = Sites(self._connection, self._clock)
        if sites.find(request.site) is not None:
            raise AlreadyThere(
                f"site {request.site!r} already exists; refuse this request with that reason, or invite a "
                "user of that "
                f"site: downburst users add NAME --role site --site {request.site}"
            )
        sites.add(
            Site(
                request.site,
                organisation=request.organisation,
                contact=request.contact,
                place=Place(request.place),
                multicast_interface=request.multicast_interface,
                access_rate_bps=request.access_rate_bps,
                allow=tuple(allow),
            )
        )
        user = Users(self._connection, self._clock).add(User(user_of(request.site), Role.SITE, request.site))
        return self._decide(request, RequestState.APPROVED, by, answer, invites=user.name)

    def refuse(self, number: int, *, by: str, answer: str) -> AccessRequest:
        """Refuses a request, with a reason for the requester."""
        return self._decide(self._waiting(number), RequestState.REFUSED, by, answer)

    def _check_limits(self, peer: str) -> None:
        waiting = access_requests.c.state == RequestState.WAITING
        limits.REQUESTS.check(self._connection, access_requests, waiting, holder="this hub")
        network = network_of(peer)
        peers = self._connection.scalars(select(access_requests.c.peer).where(waiting))
        same = sum(network_of(one) == network for one in peers)
        limits.REQUESTS_OF_ADDRESS.check_count(same, holder=f"the address {network}")

    def _waiting(self, number: int) -> AccessRequest:
        request = self.one(number)
        made = request.decision
        if made.state is not RequestState.WAITING:
            raise AlreadyThere(f"request {number} was {made.state.value} by {made.decided_by} already")
        return request

    def _decide(
        self, request: AccessRequest, state: RequestState, by: str, answer: str, *, invites: str | None = None
    ) -> AccessRequest:
        decided = replace(request, decision=Decision(state, self._clock.now(), by, answer, invites))
        change = update(access_requests).where(access_requests.c.number == request.number)
        self._connection.execute(change.values(asdict(decided.decision) | {"state": state.value}))
        self._audit.record(
            "access request", request.number, state.value, before=_audited(request), after=_audited(decided)
        )
        return decided


def user_of(site: str) -> str:
    """The user created together with the site of a request."""
    return f"admin@{site}"[:64]


def _row(request: AccessRequest) -> dict[str, Any]:
    """The columns of a request: its decision lies in the same row."""
    return {name: it for name, it in asdict(request).items() if name != "decision"} | asdict(request.decision)


def _audited(request: AccessRequest) -> dict[str, Any]:
    """The columns without the hash of the requester's secret."""
    values = _row(request)
    del values["secret_sha256"]
    return values


def _request(row: Row[Any]) -> AccessRequest:
    values = dict(row._mapping)
    decision = Decision(**{one.name: values.pop(one.name) for one in fields(Decision)})
    decision = replace(decision, state=RequestState(decision.state))
    return AccessRequest(**values | {"feeds": tuple(values["feeds"])}, decision=decision)


KEPT = 1_000
