"""The delivery state of a product for one site: one of nine states, its reason, and the next action.

The first of these that applies decides: the site's receipts, its recorded losses, its rights, its subscriptions,
its session, and finally the facts about an offline site.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from downburst.deliveries.matching import is_beyond_limits, why_unwanted
from downburst.deliveries.stages import Timing, duration, measured, timing
from downburst.foundation.sizes import size_text

if TYPE_CHECKING:
    from downburst.deliveries.facts import Known, ProductFacts, ReceiptFacts, SessionFacts, SiteFacts
    from downburst.domain.subscriptions import Subscription


class DeliveryState(StrEnum):
    """Where a product is for a site."""

    WAITING = "waiting"
    SENDING = "sending"
    REPAIRING = "repairing"
    STORED = "stored"
    REJECTED = "rejected"
    EXPIRED = "expired"
    DROPPED = "dropped"
    """Of a feed with a deadline, and later than that."""
    NOT_SUBSCRIBED = "not-subscribed"
    DENIED = "denied"


class Cause(StrEnum):
    """What keeps a product from a site or from its local software, as a word for programs; names are promises."""

    NOT_SUBSCRIBED = "not-subscribed"
    FILTERED = "filtered"
    """The patterns of its subscriptions exclude it."""
    DENIED = "denied"
    QUEUED = "queued-behind"
    SITE_DOWN = "site-down"
    LEFT_THE_LOG = "left-the-log"
    TOO_OLD = "too-old"
    DEADLINE = "deadline"
    DIGEST = "digest-mismatch"
    ACTION = "action-failed"
    DISK = "disk"
    """The site can't write: its disk is full, as a rule."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The computed state of one product for one site."""

    site: str
    state: DeliveryState
    reason: str
    next_action: str
    receipt: "ReceiptFacts | None" = None
    timing: Timing = field(default_factory=Timing)
    cause: Cause | None = None
    """None without an obstacle: the product is there, or on its way."""
    objective_ms: float | None = None
    """For the distribution latency at the site."""


def deliver(product: "ProductFacts", facts: "SiteFacts", known: "Known", *, now: datetime) -> Delivery:
    """The state of a product for a site."""
    case = _Case(product, facts, known, now)
    for judge in (_by_receipt, _by_exception, _by_rights, _by_subscription, _by_session, _while_away):
        judged = judge(case)
        if judged is not None:
            return replace(judged, objective_ms=known.objective_ms)
    raise AssertionError("a site that is away has a state")


@dataclass(frozen=True, slots=True)
class _Case:
    product: "ProductFacts"
    facts: "SiteFacts"
    known: "Known"
    now: datetime

    def is_(self, state: DeliveryState, reason: str, next_action: str = "", cause: Cause | None = None) -> Delivery:
        return Delivery(self.facts.site, state, reason, next_action or NOTHING_TO_DO, cause=cause)

    @property
    def resend(self) -> str:
        """The command that sends it again."""
        begin = self.product.stored_at - timedelta(seconds=1)
        end = self.product.stored_at + timedelta(seconds=1)
        return (
            f"downburst resend --site {self.facts.site} --feed '{self.product.feed}' "
            f"--from {_moment(begin)} --to {_moment(end)}"
        )

    @property
    def again(self) -> str:
        """A way in which the site can still get it."""
        if self.product.kept:
            return f"to send it again: {self.resend}"
        return f"the hub's log has only its description left; ask its origin, {self.product.origin}, for the bytes"


def _by_receipt(case: _Case) -> Delivery | None:
    receipts = sorted(case.facts.receipts, key=lambda receipt: _OUTCOMES.get(receipt.outcome, len(_OUTCOMES)))
    if not receipts:
        return None
    receipt = receipts[0]
    match receipt.outcome:
        case "stored" | "held":
            return _stored(case, receipt)
        case "rejected":
            return _rejected(case, receipt)
        case "late-at-hub" | "late-at-site":
            return _dropped(case, receipt)
        case _:
            return _expired(case, receipt)


def _stored(case: _Case, receipt: "ReceiptFacts") -> Delivery:
    timed = timing(case.product, receipt, objective_ms=case.known.objective_ms, sent_before=case.facts.sent_before)
    if receipt.outcome == "held":
        reason = "the site already had it, by its duplicate key, and did not store it twice"
        return Delivery(case.facts.site, DeliveryState.STORED, reason, NOTHING_TO_DO, receipt, timed)
    way = f"by {receipt.transport.value}" + ("" if receipt.lane == "live" else f", in the {receipt.lane} lane")
    if timed.distribution_ms is None:
        reason = f"stored {way}; how long it took is not known, because the site's clock is not compared yet"
    else:
        reason = f"stored {way} in {measured(timed.distribution_ms, timed.bound_ms)}"
    if timed.sentence:
        reason += f"; {timed.sentence}"
    failed = _failed_action(case)
    if failed is not None:
        reason += f"; but {failed}"
        return Delivery(
            case.facts.site, DeliveryState.STORED, reason, MEND_THE_RULE, receipt, timed, cause=Cause.ACTION
        )
    if receipt.action_done_at is None:
        reason += f"; its file is not yet reported (normally within {duration(FILE_WITHIN_MS)})"
        soon = LOOK_AGAIN if timed.slow is None else _NEXT_OF_STAGE[timed.slow]
        step = LOOK_AT_RECEIVED if _is_overdue(case, receipt) else soon
        return Delivery(case.facts.site, DeliveryState.STORED, reason, step, receipt, timed)
    return Delivery(case.facts.site, DeliveryState.STORED, reason, _NEXT_OF_STAGE[timed.slow], receipt, timed)


def _failed_action(case: _Case) -> str | None:
    """The failure of the site's own rules for the product."""
    failed, product = case.known.action_failed, case.product
    if failed is None or failed.epoch not in (None, product.epoch):
        return None
    if (failed.product, failed.sequence) == (product.product_id, product.sequence):
        return f"the site's rule {failed.rule} failed for it: {failed.last_error}"
    if failed.epoch is not None and product.sequence in failed.others:
        return (
            f"a rule of the site failed for it, as for {failed.count - 1} other products of the feed; the newest "
            f"failure is that of {failed.rule}: {failed.last_error}"
        )
    return None


def _is_overdue(case: _Case, receipt: "ReceiptFacts") -> bool:
    """True if the file's report is overdue; only the site knows whether the file is missing."""
    stored_at = receipt.site_stored_at
    return stored_at is not None and case.now - stored_at > timedelta(milliseconds=FILE_OVERDUE_MS)


def _rejected(case: _Case, receipt: "ReceiptFacts | None" = None) -> Delivery:
    reason = "its bytes did not match its digest at the site three times in a row, so the site skipped it"
    action = f"check the site's memory and network for the cause of corruption; {case.again}"
    return Delivery(case.facts.site, DeliveryState.REJECTED, reason, action, receipt, cause=Cause.DIGEST)


def _expired(case: _Case, receipt: "ReceiptFacts | None" = None) -> Delivery:
    limit_s = _age_limit_s(case)
    if limit_s is not None:
        reason = (
            f"it was older than the {duration(limit_s * 1000)} that the subscription allows before the site got it"
        )
        action = f"if it is worth having later, raise the subscription's maximum age; {case.again}"
        return Delivery(case.facts.site, DeliveryState.EXPIRED, reason, action, receipt, cause=Cause.TOO_OLD)
    reason = "its bytes left the hub's log before the site got them"
    action = f"keep more hours (downburst log advise shows how many fit); {case.again}"
    return Delivery(case.facts.site, DeliveryState.EXPIRED, reason, action, receipt, cause=Cause.LEFT_THE_LOG)


def _dropped(case: _Case, receipt: "ReceiptFacts") -> Delivery:
    limit = "" if case.known.deadline_ms is None else f" of {duration(case.known.deadline_ms)}"
    where = "the site dropped it when it came" if receipt.outcome == "late-at-site" else "the hub did not send it"
    return Delivery(
        case.facts.site,
        DeliveryState.DROPPED,
        f"later than the feed's deadline{limit}: {where}",
        f"if this is common: compare the feed's rate with the path's, or raise the deadline; {case.again}",
        receipt,
        cause=Cause.DEADLINE,
    )


def _age_limit_s(case: _Case) -> float | None:
    """The maximum age that it exceeded; None if it expired from the log."""
    limits = [wish.max_age_s for wish in _matching(case)]
    known = [limit for limit in limits if limit is not None]
    if not known or len(known) < len(limits):
        return None
    ended_at = case.known.exception.at if case.known.exception is not None else case.now
    too_old = ended_at - case.product.stored_at >= timedelta(seconds=max(known))
    hours = case.known.retention_hours
    log_was_later = case.product.kept or hours is None or max(known) < hours * 3600
    return max(known) if too_old and log_was_later else None


def _by_exception(case: _Case) -> Delivery | None:
    exception = case.known.exception
    if exception is None:
        return None
    return _rejected(case) if exception.outcome == "rejected" else _expired(case)


def _by_rights(case: _Case) -> Delivery | None:
    feed, site, known = case.product.feed, case.facts.site, case.known
    if not known.allowed and (known.subscriptions or case.facts.subscriptions):
        return case.is_(
            DeliveryState.DENIED,
            f"the allow list of the site ({', '.join(known.allow) or 'empty'}) does not cover {feed}",
            f'to allow it, extend the list: PATCH /v1/sites/{site} with {{"allow": [...]}}',
            Cause.DENIED,
        )
    if not case.facts.matching and is_beyond_limits(case.product.product_id, known.subscriptions, known.limits):
        granted = " or ".join(sorted({_granted(limit.pattern, limit.not_pattern) for limit in known.limits}))
        return case.is_(
            DeliveryState.DENIED,
            f"the site subscribes to it, and may take of {feed} only {granted}",
            f'to allow it, widen the limit: PATCH /v1/sites/{site} with {{"limits": [...]}}',
            Cause.DENIED,
        )
    if not case.facts.active:
        return case.is_(
            DeliveryState.DENIED,
            "the site is inactive at this hub",
            f'to serve it again: PATCH /v1/sites/{site} with {{"active": true}}',
            Cause.DENIED,
        )
    return None


def _by_subscription(case: _Case) -> Delivery | None:
    feed, site = case.product.feed, case.facts.site
    if not case.facts.subscriptions:
        return case.is_(
            DeliveryState.NOT_SUBSCRIBED,
            f"the site has no subscription to {feed}",
            f"if it should get it: downburst subscriptions add {site} '{feed}'",
            Cause.NOT_SUBSCRIBED,
        )
    if not case.facts.matching:
        count = case.facts.subscriptions
        wishes = "its subscription does" if count == 1 else f"its {count} subscriptions do"
        why = why_unwanted(case.product.product_id, case.known.subscriptions)
        return case.is_(
            DeliveryState.NOT_SUBSCRIBED,
            f"{wishes} not include this id of {feed}{f': {why}' if why else ''}",
            f"compare the patterns with the id: downburst sites show {site}",
            Cause.FILTERED,
        )
    since = _wanted_since(case)
    settled = case.facts.session is not None and case.facts.session.standing == "settled"
    if since is not None and since > case.product.stored_at and not settled:
        return case.is_(
            DeliveryState.NOT_SUBSCRIBED,
            f"it was stored {duration(_ms(since - case.product.stored_at))} before the subscription began",
            case.again,
            Cause.NOT_SUBSCRIBED,
        )
    return None


def _wanted_since(case: _Case) -> datetime | None:
    """The time from which the matching subscriptions want products; None if unknown."""
    begins = [wish.start_at or wish.created_at for wish in _matching(case)]
    known = [begin for begin in begins if begin is not None]
    return min(known, default=None)


def _matching(case: _Case) -> list["Subscription"]:
    filters = {(wish.pattern, wish.not_pattern) for wish in case.facts.matching}
    return [wish for wish in case.known.subscriptions if (wish.pattern, wish.not_pattern) in filters]


def _by_session(case: _Case) -> Delivery | None:
    session = case.facts.session
    if session is None:
        return None
    if session.standing != "settled" and not case.product.kept:
        return _expired(case)
    if session.standing != "settled" and case.known.trouble is not None:
        return case.is_(
            DeliveryState.WAITING,
            f"the site can't store {case.product.feed}: {case.known.trouble}",
            "free or repair the disk at the site; it then continues by itself, and no product is lost while the "
            "hub keeps it",
            Cause.DISK,
        )
    return _BY_STANDING.get(session.standing, _without_answer)(case, session)


def _settled(case: _Case, _session: "SessionFacts") -> Delivery:
    reason = "the site confirmed it; its receipt is no longer kept, or not stored yet, so its latency is not known"
    failed = _failed_action(case)
    if failed is not None:
        return case.is_(DeliveryState.STORED, f"{reason}; {failed}", MEND_THE_RULE, Cause.ACTION)
    return case.is_(DeliveryState.STORED, reason)


def _before_the_line(case: _Case, session: "SessionFacts") -> Delivery:
    if session.asked:
        reason = (
            "the site requested it, because its group or session did not deliver it; it goes from the log by unicast"
        )
        return case.is_(DeliveryState.REPAIRING, reason + _behind(session), WAIT_OR_LINE)
    if session.first_byte_at is not None:
        since = duration(_ms(case.now - session.first_byte_at))
        reason = f"its first byte left {since} ago by unicast, {size_text(case.product.size_bytes)} in all"
        return case.is_(DeliveryState.SENDING, reason, WAIT_OR_LINE)
    if session.lane == "backfill":
        reason = f"the site is catching up; {session.numbers_before or 0} sequences of the log come before it"
        return case.is_(DeliveryState.WAITING, reason, LOOK_AGAIN, Cause.QUEUED)
    waited = duration(_ms(case.now - case.product.stored_at))
    reason = f"it has waited {waited} in the hub's queue for this site{_behind(session)}"
    return case.is_(DeliveryState.WAITING, reason, WAIT_OR_LINE, Cause.QUEUED)


def _on_a_leg(case: _Case, session: "SessionFacts") -> Delivery:
    leg = f"multicast leg {session.leg}"
    if session.first_byte_at is None:
        backlog = session.leg_backlog_bytes or 0
        queue = f", which has {size_text(backlog)} before it" if backlog else ""
        return case.is_(DeliveryState.WAITING, f"it waits for {leg}{queue}", WAIT_OR_RATE, Cause.QUEUED)
    since_ms = _ms(case.now - session.first_byte_at)
    reason = f"{leg} sent its first byte {duration(since_ms)} ago"
    if since_ms <= REPAIR_AFTER_MS:
        return case.is_(DeliveryState.SENDING, reason, LOOK_AGAIN)
    return case.is_(
        DeliveryState.REPAIRING,
        f"{reason}, and the site still lacks parts of it",
        "if this lasts, the group's path to the site loses packets: compare its repair with that of other sites",
    )


def _on_the_line(case: _Case, session: "SessionFacts") -> Delivery:
    since = session.first_byte_at or case.product.stored_at
    since_ms = _ms(case.now - since)
    reason = f"it was handed to the site's connection {duration(since_ms)} ago, and the site has not confirmed it yet"
    if since_ms <= CONFIRM_WITHIN_MS:
        return case.is_(DeliveryState.SENDING, reason, LOOK_AGAIN)
    return case.is_(
        DeliveryState.SENDING,
        reason,
        "the line is slow, or the site can't store it: check the site's log for a full or read-only disk",
    )


def _not_yet_served(case: _Case, _session: "SessionFacts") -> Delivery:
    reason = "the site connected a moment ago, and the hub is finding the position where it continues"
    return case.is_(DeliveryState.WAITING, reason, LOOK_AGAIN)


def _without_answer(case: _Case, _session: "SessionFacts") -> Delivery:
    reason = "the site is connected, but its session was too busy for details"
    return case.is_(DeliveryState.WAITING, reason, LOOK_AGAIN)


def _while_away(case: _Case) -> Delivery:
    known, product = case.known, case.product
    if known.settled_to is not None and known.settled_to >= product.sequence:
        seen = "" if known.last_seen_at is None else f" (last seen {_moment(known.last_seen_at)})"
        return case.is_(
            DeliveryState.STORED, f"the site had everything up to {known.settled_to} before it disconnected{seen}"
        )
    if not product.kept or _age_limit_s(case) is not None:
        return _expired(case)
    if not known.enrolled:
        return case.is_(
            DeliveryState.WAITING,
            "no receiver of the site has ever enrolled",
            f"create a token and send it to the site: downburst sites token {case.facts.site}",
            Cause.SITE_DOWN,
        )
    since = "" if known.last_seen_at is None else f" since {_moment(known.last_seen_at)}"
    why = f" ({known.away_reason})" if known.away_reason else ""
    ends = ""
    if known.retention_hours is not None:
        ends = f"; the log keeps it until {_moment(product.stored_at + timedelta(hours=known.retention_hours))}"
    return case.is_(
        DeliveryState.WAITING,
        f"the site is offline{since}{why}",
        f"start its receiver; it gets the product when it reconnects{ends}",
        Cause.SITE_DOWN,
    )


def _granted(pattern: str, not_pattern: str | None) -> str:
    return f"products that match {pattern!r}" + ("" if not_pattern is None else f" and not {not_pattern!r}")


def _behind(session: "SessionFacts") -> str:
    waiting = sorted(session.waiting, key=lambda one: -one.bytes)[:3]
    listed = [
        f"{size_text(one.bytes)} of {one.feed}" + ("" if one.live else " (late)") for one in waiting if one.bytes
    ]
    return f", in which {' and '.join(listed)} wait" if listed else ""


def _moment(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def _ms(length: timedelta) -> float:
    return length / timedelta(milliseconds=1)


NOTHING_TO_DO = "nothing to do"
LOOK_AGAIN = "nothing to do; look again in some seconds"
MEND_THE_RULE = "fix the cause at the site, then run there: downburst-node actions retry"
LOOK_AT_RECEIVED = (
    "check at the site whether the file is in received/, and read the receiver's log; a product in the site's log "
    "is written as soon as that disk works, and a receiver with --no-files reports no file"
)
WAIT_OR_LINE = "nothing to do unless it persists: then the site's line is slower than its subscriptions"
WAIT_OR_RATE = "nothing to do unless it persists: then the leg's rate is lower than the feed's"

_NEXT_OF_STAGE: dict[str | None, str] = {
    None: NOTHING_TO_DO,
    "origin": "check the source, and the clock of the origin",
    "queue": "if this is common: subscribe less, widen the site's line, or raise the class of urgent feeds",
    "transfer": "if this is common: check the line between hub and site for loss and rate",
    "hub-to-last-byte": "if this is common: check the line between hub and site for loss and rate",
    "store": "check the load and the disk of the site",
    "action": "check the disk with received/ at the site, and the programs that read from it",
}
_BY_STANDING = {
    "settled": _settled,
    "queued": _before_the_line,
    "owed": _before_the_line,
    "left-to-leg": _on_a_leg,
    "said": _on_the_line,
    "not-served": _not_yet_served,
}
_OUTCOMES = {"stored": 0, "held": 1, "rejected": 2, "expired": 3, "late-at-hub": 4, "late-at-site": 5}

REPAIR_AFTER_MS = 2_000.0
"""Repairs of a leg take some round trips; a product that is incomplete by then is being repaired."""
FILE_WITHIN_MS = 2_000.0
"""Files follow the site's log within milliseconds, their stamps within 50 ms; this leaves room for a busy disk."""
FILE_OVERDUE_MS = 60_000.0
"""Beyond this an operator should look; a minute leaves room for clocks that differ."""
CONFIRM_WITHIN_MS = 5_000.0
"""Receipts arrive every 50 ms; this leaves room for a slow line."""
