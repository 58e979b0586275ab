"""Faults of the hub itself: of its node, its ledger, and its probes."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from downburst.domain.alarms import Severity
from downburst.domain.faults import Fault
from downburst.ledger.storage.outage import LEDGER_STEP, MEANWHILE, Outage
from downburst.live.state import LiveState
from downburst.parts.names import Part
from downburst_api.overview.wrong import Wrong
from downburst_api.runtime import Runtime


def wrong_with_hub(hub: Runtime, now: datetime) -> Iterable[Wrong]:
    """The hub's own faults, unordered."""
    outage = hub.ledger.outage
    node = list(_node(hub.live, now, running=hub.node.running))
    yield from node
    if outage is not None:
        yield _ledger(outage, now)
    for probe in hub.probes.all():
        follows = bool(node) if probe.name in _BY_NODE else outage is not None
        failing_s = hub.probes.failing_s(probe.name)
        if probe.fault is not None and probe.name in _STEPS and failing_s >= PROBED_S and not follows:
            at = now - timedelta(seconds=failing_s)
            sentence = f"the hub is not healthy: its probe of the {probe.name} fails: {probe.fault}"
            yield Wrong(Fault(at, sentence, next_step=_STEPS[probe.name]), Severity.CRITICAL, of_hub=True)


def _node(live: LiveState, now: datetime, *, running: bool) -> Iterable[Wrong]:
    """A node that ended; one that is back is shown until its sites are, and longer if it ends again and again."""
    last = live.node.ends[-1] if live.node.ends else None
    if not running:
        reason = f"{last.reason}, " if last and not live.node.running else "the node is not running, "
        at = last.at if last and not live.node.running else now
        fault = Fault(at, f"{reason}so no products are received or sent", next_step=_AWAY_STEP)
        yield Wrong(fault, Severity.CRITICAL, of_hub=True)
        return
    back_at = live.node.back_at
    if last is None or back_at is None:
        return
    lately = [one for one in live.node.ends if now - one.at < AGAIN_WITHIN]
    if len(lately) >= AGAIN:
        minutes = AGAIN_WITHIN // timedelta(minutes=1)
        sentence = f"the node ended {len(lately)} times in {minutes} min, last {last.at:%H:%M:%S} UTC: {last.reason}"
        yield Wrong(Fault(last.at, sentence, next_step=_AGAIN_STEP), Severity.WARNING, of_hub=True)
    elif now - back_at < SETTLES:
        sentence = f"{last.reason}; it has been running again since {back_at:%H:%M:%S} UTC, and its sites reconnect"
        yield Wrong(Fault(last.at, sentence, next_step=_BACK_STEP), Severity.WARNING, of_hub=True)


def _ledger(outage: Outage, now: datetime) -> Wrong:
    at = now - timedelta(seconds=outage.seconds)
    sentence = f"the ledger has been unavailable since {at:%H:%M:%S} UTC: {outage.sentence}; {MEANWHILE}"
    return Wrong(Fault(at, sentence, next_step=LEDGER_STEP), Severity.CRITICAL, of_hub=True)


SETTLES = timedelta(seconds=10)
"""After a restart of the node the fault stays this long: its sites reconnect in that time."""
AGAIN = 3
AGAIN_WITHIN = timedelta(minutes=10)
PROBED_S = 5.0
"""Two rounds of probes: a single failure may be due to a busy machine."""
_BY_NODE = ("node", "store")
_STEPS = {
    "ledger": "read the hub's log; then check the database and the disk that holds it",
    "node": "the hub restarts a hanging node by itself; if this persists, read the hub's log",
    "store": "free space on the hub's disk, or repair it (dmesg, smartctl)",
    "alarms": "read the hub's log for the reason that alarms are not evaluated",
    **{part.command: part.remedy for part in Part},
}
_AWAY_STEP = "the hub restarts it; no acknowledged product is lost; if it stays down, read the hub's log"
_BACK_STEP = "no acknowledged product is lost, and sites catch up by themselves; if it ends again, read the hub's log"
_AGAIN_STEP = "read its last lines in the hub's log; no acknowledged product is lost"
