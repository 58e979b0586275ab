"""The life of a request for access: its secret, its state, its approval."""

from downburst.domain.access import LINK_PREFIX, REQUEST_PREFIX, AccessRequest, Caller, LinkKind, hashed, new_secret
from downburst.ledger import Transaction
from downburst.network.addresses import network_of
from downburst_api.runtime import Runtime
from downburst_api.sites.service import announce
from downburst_api.users.invitations import INVITATION
from downburst_contract import access as shapes


async def ask(hub: Runtime, caller: Caller, wanted: shapes.RequestNew) -> shapes.RequestMade:
    """Stores a request, within the rate limit of its address."""
    hub.gate.requests.take(network_of(caller.peer))
    secret = new_secret(REQUEST_PREFIX)
    given = wanted.model_dump() | {"feeds": tuple(wanted.feeds or ())}
    request = AccessRequest(0, hashed(secret), **given, peer=caller.peer)
    kept = await hub.ledger.write(lambda tx: tx.access.requests.add(request))
    return shapes.RequestMade(number=kept.number, secret=secret, fragment=f"#request={secret}")


async def state(hub: Runtime, secret: str) -> shapes.RequestStateShown:
    """State of a request; an approved one gets a new link each time, until a password is chosen."""
    sha256, link = hashed(secret), new_secret(LINK_PREFIX)

    def look(tx: Transaction) -> shapes.RequestStateShown:
        request = tx.access.requests.by_secret(sha256)
        made = request.decision
        user = None if made.invites is None else tx.access.users.find(made.invites)
        fragment = None
        if user is not None and user.password_hash is None and user.active and user.site == request.site:
            tx.access.links.add(hashed(link), LinkKind.INVITATION, lifetime=INVITATION, user=user.name)
            fragment = f"#invitation={link}"
        return shapes.RequestStateShown(
            number=request.number,
            site=request.site,
            state=made.state,
            answer=made.answer,
            asked_at=request.asked_at,
            user=None if user is None else user.name,
            fragment=fragment,
        )

    return await hub.ledger.write(look)


async def approve(hub: Runtime, number: int, given: shapes.Approval, *, by: str) -> AccessRequest:
    """Creates the site and its user; the feeds are those requested, unless others are given."""

    def decide(tx: Transaction) -> AccessRequest:
        asked = tx.access.requests.one(number).feeds
        allow = asked if given.allow is None else tuple(given.allow)
        for feed in allow:
            if feed != "*":
                tx.feeds.one(feed)
        return tx.access.requests.approve(number, allow=allow, by=by, answer=given.answer)

    decided = await hub.ledger.write(decide)
    await announce(hub)
    return decided
