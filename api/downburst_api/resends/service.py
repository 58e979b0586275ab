"""Starts and ends resends: of a valid range of time, to a site that takes the feed."""

from downburst.domain.access import who_acts
from downburst.domain.events import ResendsChanged
from downburst.domain.resends import Resend
from downburst.domain.subscriptions import IdFilter
from downburst.foundation.errors import BadInput, Refused
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_pattern, check_right
from downburst_api.runtime import Runtime
from downburst_contract.resends import ResendNew


async def add(hub: Runtime, wanted: ResendNew) -> Resend:
    """Stores a resend, and has the node begin it."""
    await hub.ledger.read(lambda tx: check_right(tx, wanted.site, wanted.feed))
    await check_pattern(hub.node, "pattern", wanted.pattern)
    if wanted.not_pattern is not None:
        await check_pattern(hub.node, "not_pattern", wanted.not_pattern)
    resend = _resend(hub, wanted)
    kept = await hub.ledger.write(lambda tx: _keep(tx, resend))
    await _announce(hub)
    return kept


async def cancel(hub: Runtime, number: int) -> Resend:
    """Ends a resend."""
    ended = await hub.ledger.write(lambda tx: tx.resends.cancel(number))
    await _announce(hub)
    return ended


def _resend(hub: Runtime, wanted: ResendNew) -> Resend:
    now = hub.clock.now()
    begin, end = moment(wanted.from_at, now), moment(wanted.to_at, now)
    if begin >= end:
        raise BadInput(f"the resend ends at {end:%Y-%m-%d %H:%M:%S} UTC, before it begins; swap `from` and `to`")
    # Later products are live.
    return Resend(
        0,
        wanted.site,
        wanted.feed,
        begin,
        min(end, now),
        wanted=IdFilter(wanted.pattern, wanted.not_pattern),
        requested_by=wanted.by or who_acts().name,
    )


def _keep(tx: Transaction, resend: Resend) -> Resend:
    check_right(tx, resend.site, resend.feed)
    if all(wish.feed != resend.feed for wish in tx.subscriptions.of_site(resend.site)):
        raise Refused(
            f"site {resend.site!r} does not subscribe to {resend.feed!r}; use a subscription that begins in the "
            f"past: downburst subscriptions add {resend.site} '{resend.feed}' --start 2h"
        )
    return tx.resends.add(resend)


async def _announce(hub: Runtime) -> None:
    await hub.node.refresh()
    hub.bus.publish(ResendsChanged())
