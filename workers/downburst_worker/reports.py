"""The node's reports, line by line, as events, counts for the ledger, and faults."""

import logging
from dataclasses import replace

from downburst.domain.events import (
    FeedTraffic,
    LdmPeerChanged,
    LdmSourceChanged,
    ResendsChanged,
    TcpProfilesChanged,
    UpstreamChanged,
)
from downburst.domain.receipts import LogHead
from downburst.foundation.bounds import SetAside, sentence
from downburst.live.state import Damage
from downburst_worker.accounts import TunnelRecords
from downburst_worker.desired import DesiredState
from downburst_worker.enrolment import Enrolment
from downburst_worker.ledger_writer import LedgerWriter
from downburst_worker.messages import (
    backlog_lines,
    catch_up_lines,
    circuit_lines,
    lines,
    probe_lines,
    relay_lines,
    sibling_lines,
    silence_lines,
    tcp_lines,
)
from downburst_worker.node import Line
from downburst_worker.reporter import Reporter
from downburst_worker.shared import Shared
from downburst_worker.upkeep import Upkeep
from downburst_worker.violations import ViolationReports


class NodeReports:
    """Handles the reports of one node."""

    def __init__(
        self,
        shared: Shared,
        desired: DesiredState,
        writer: LedgerWriter,
        upkeep: Upkeep,
        *,
        enrolment: Enrolment,
        reporter: Reporter,
    ) -> None:
        self._shared = shared
        self._desired = desired
        self._writer = writer
        self._upkeep = upkeep
        self._enrolment = enrolment
        self._reporter = reporter
        self._role = reporter.role
        self._violations = ViolationReports(shared.clock, say=reporter.say, write_down=reporter.fault)
        self._heads: dict[str, tuple[str, int]] = {}
        """By feed, the node's last report."""
        self._tunnels = TunnelRecords()
        self.egress_bps = 0.0
        """A sender's egress in its last second, in bits per second."""

    async def hear(self, line: Line) -> None:
        """Handles one line."""
        match line.get("event"):
            case "traffic" | "backlog" as name:
                await (self._count if name == "traffic" else self._backlog_told)(line)
            case "batch":
                await self._batch_told(line)
            case "enrol" | "credential-offered" | "credential-taken" | "violation" | "ldm-violation" as name:
                await (self._violations if name.endswith("violation") else self._enrolment).hear(line)
            case "leg":
                await self._leg_changed(line)
            case "resend":
                await self._finish_resend(line)
            case "session" | "upstream" | "ldm-source" | "ldm-peer":
                self._connection_changed(line)
            case "circuit" | "tcp-trial" | "relay" | "siblings" as name:
                told = {"circuit": self._circuit_changed, "tcp-trial": self._trial_told}
                told |= {"relay": self._relay_told, "siblings": self._siblings_told}
                await told[name](line)
            case "rtstats" | "stirred" | "silent" | "probe-second" | "probe-ended" | "catch-up":
                self._measured(line)
            case "damaged" | "recovered" | "fault":
                await self._trouble_told(line)
            case other:
                _LOG.warning("the node reported %r, which is unknown here", other)

    def _connection_changed(self, line: Line) -> None:
        changed: UpstreamChanged | LdmSourceChanged | LdmPeerChanged
        match line["event"]:
            case "session":
                return self._reporter.say(replace(lines.session_changed(line), sender=self._role.sender))
            case "upstream":
                what, changed = f"upstream {line['upstream']}", lines.upstream_changed(line)
            case "ldm-source":
                what, changed = f"LDM {line['upstream']} of {line['source']}", lines.ldm_source_changed(line)
            case _:
                who = line.get("site") or "no site"
                what, changed = f"LDM {line['peer']} of {who}", lines.ldm_peer_changed(line)
        _LOG.info("%s is %s%s", what, changed.state, f": {changed.reason}" if changed.reason else "")
        return self._reporter.say(changed)

    def _measured(self, line: Line) -> None:
        match line["event"]:
            case "probe-second":
                self._reporter.say(probe_lines.probe_second_reported(line))
            case "probe-ended":
                self._reporter.say(probe_lines.probe_over(line))
            case "stirred":
                self._reporter.say(silence_lines.feed_stirred(line))
            case "silent":
                self._reporter.say(silence_lines.feed_silent(line))
            case "catch-up":
                self._reporter.say(changed := catch_up_lines.catch_up_changed(line))
                _LOG.info("catch-up by group %s: %s", changed.state, changed.sentence)
            case _:
                self._shared.live.reported(sentence(line["line"]))

    async def _count(self, line: Line) -> None:
        aside: list[SetAside] = []
        traffic = lines.traffic_seen(line, self._desired.accounts.transports, aside)
        await self._violations.set_aside(aside)
        counted, minutes = self._desired.accounts.count(traffic)
        self.egress_bps = traffic.egress_bps
        self._reporter.say(self._role.told(traffic))
        if not self._role.takes_in:
            await self._writer.count(counted)
            return
        heads = [LogHead(feed.feed, feed.epoch, feed.head) for feed in traffic.feeds if self._grew(feed)]
        if counted or minutes or heads:
            await self._writer.count(counted, minutes, heads)

    async def _batch_told(self, line: Line) -> None:
        self._reporter.say(batch := lines.batch_ready(line))
        if self._upkeep.is_ending:
            await self._writer.take_batch(batch.path)
        else:
            # Loaded in a separate task: with a slow database, reports about sites must not wait for receipts.
            self._writer.look_for_batches()
            self._upkeep.catch_up_soon()

    async def _backlog_told(self, line: Line) -> None:
        aside: list[SetAside] = []
        self._reporter.say(backlog_lines.backlog_seen(line, aside, sender=self._role.sender))
        await self._violations.set_aside(aside)

    async def _relay_told(self, line: Line) -> None:
        aside: list[SetAside] = []
        seen = relay_lines.relay_seen(line, aside, at=self._shared.clock.now())
        if seen.report.relay not in self._desired.relays:
            # The node does not know the records of relays: to it, any site without subscriptions may be one.
            return
        if records := self._tunnels.to_record(seen.report):
            await self._writer.log_tunnels(seen.report.relay, records)
        self._reporter.say(seen)
        await self._violations.set_aside(aside)

    async def _siblings_told(self, line: Line) -> None:
        aside: list[SetAside] = []
        await self._writer.count_saved(sibling_lines.saved(line, aside))
        await self._violations.set_aside(aside)

    def _grew(self, feed: FeedTraffic) -> bool:
        """True if the feed's head moved: heartbeats take numbers too, though they are no products."""
        before = self._heads.get(feed.feed)
        self._heads[feed.feed] = (feed.epoch, feed.head)
        return bool(feed.epoch) and (bool(feed.products) or (before is not None and before[1] != feed.head))

    async def _finish_resend(self, line: Line) -> None:
        await self._writer.finish_resend(*lines.resend_ended(line))
        await self._desired.apply_sites()
        self._shared.bus.publish(ResendsChanged())

    async def _trial_told(self, line: Line) -> None:
        trial = tcp_lines.tcp_trial(line, at=self._shared.clock.now(), sender=self._role.sender)
        _LOG.info("TCP profile %s: %s: %s", trial.profile, trial.step, trial.reason)
        await self._writer.keep_trial(trial)
        # Learnt values go to all nodes of the hub; this one too follows the event.
        self._shared.bus.publish(TcpProfilesChanged())

    async def _trouble_told(self, line: Line) -> None:
        told, step = lines.told_fault(line), ""
        if line["event"] == "recovered" and line.get("whole"):
            _LOG.info("feed %s: %s", told["feed"], told["sentence"])
            return
        if line["event"] == "damaged":
            self._shared.live.damages[line["feed"]] = Damage(self._shared.clock.now(), told["sentence"])
            step = DISK_STEP
        await self._reporter.fault(**told, next_step=step)

    async def _circuit_changed(self, line: Line) -> None:
        self._reporter.say(circuit_lines.circuit_told(line))
        if line["state"] == "up":
            await self._desired.apply_unmet_plans()

    async def _leg_changed(self, line: Line) -> None:
        self._reporter.say(lines.leg_changed(line))
        if advice := (line.get("reception") or {}).get("advice"):
            text = f"site {line['site']}: {sentence(advice)}"
            await self._reporter.fault(text, feed=line["feed"], site=line["site"])


_LOG = logging.getLogger("downburst.agent")
DISK_STEP = "look for failures of the disk (dmesg, smartctl); downburst log verify lists all damage"
