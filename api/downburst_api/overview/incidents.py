"""Incidents: faults with their title, cause, extent and next step, in the order of their priority."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from downburst.domain.alarms import Alarm, AlarmKind, Severity, Silence
from downburst.foundation.clock import from_us
from downburst.live.state import LiveState
from downburst_api.overview.actions import actions_of
from downburst_api.overview.facts import Facts
from downburst_api.overview.wording import capitalised, moment_words, sentence_of, size_words, title_and_cause
from downburst_api.overview.wrong import Wrong, graded, in_order, out


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault with its alarm and the silence that covers it."""

    wrong: Wrong
    alarm: Alarm | None
    silence: Silence | None
    title: str
    """As a part of a sentence."""
    cause: str | None

    @property
    def counts(self) -> bool:
        """True if it lasts and is not silenced."""
        return self.silence is None and not self.wrong.is_over

    @property
    def since(self) -> datetime:
        """A fault may have been known before its alarm was raised."""
        at = self.wrong.fault.at
        return min(at, self.alarm.since) if self.alarm else at

    @property
    def severity(self) -> Severity:
        """An event that is over needs no action."""
        return Severity.INFORMATION if self.wrong.is_over else self.wrong.severity


def incidents_of(found: Iterable[Wrong], facts: Facts, live: LiveState, now: datetime) -> list[Incident]:
    """All incidents by severity, then in the order of priority; silenced ones and events that are over come last."""
    raised = {alarm.key: alarm for alarm in facts.alarms}
    sites = {site.name: site for site in facts.sites}
    made = []
    for wrong in in_order(graded(found, facts.alarms)):
        alarm = raised.get(wrong.key or "")
        shown = out(wrong, alarm, facts.silences, now)
        site = sites.get(wrong.fault.site or "")
        standing = facts.standings.of(site, live) if site is not None else None
        title, cause = title_and_cause(wrong, standing)
        made.append(Incident(wrong, alarm, shown["silence"], title, cause))
    return sorted(made, key=lambda one: (not one.counts, one.severity.rank))


def incident_out(incident: Incident, facts: Facts, live: LiveState, now: datetime) -> dict[str, Any]:
    """For clients."""
    fault = incident.wrong.fault
    return {
        "severity": incident.severity.value,
        "kind": incident.wrong.kind,
        "alarm": incident.alarm.number if incident.alarm else None,
        "title": capitalised(incident.title, {fault.site, fault.feed}),
        "since": incident.since,
        "cause": incident.cause,
        "feed": fault.feed,
        "site": fault.site,
        "affected": _affected(incident, facts, live, now),
        "next": sentence_of(fault.next_step, {fault.site, fault.feed}) if fault.next_step else None,
        "actions": [] if incident.wrong.is_over else actions_of(incident.wrong),
        "silence": incident.silence,
        "over": incident.wrong.is_over,
    }


def of_site(incidents: Sequence[Incident], site: str) -> list[Incident]:
    """Those of a site: its administrator learns nothing of others."""
    return [one for one in incidents if one.wrong.fault.site == site]


def _affected(incident: Incident, facts: Facts, live: LiveState, now: datetime) -> dict[str, Any]:
    fault = incident.wrong.fault
    pairs = [
        (feed, site)
        for feed, site in facts.wanted
        if (fault.site is None or site == fault.site) and (fault.feed is None or feed == fault.feed)
    ]
    nothing = {"sites": 0, "feeds": 0, "waiting_products": None, "waiting_bytes": None, "lost_products": None}
    nothing |= {"kept_until": None, "words": None}
    if fault.site is None and fault.feed is None and not incident.wrong.of_hub:
        return nothing
    counted = {"sites": len({site for _, site in pairs}), "feeds": len({feed for feed, _ in pairs})}
    waiting = _waiting(fault.site, facts, live, now) if incident.wrong.kind in _WITH_BACKLOG and fault.site else {}
    return nothing | counted | waiting


def _waiting(site: str, facts: Facts, live: LiveState, now: datetime) -> dict[str, Any]:
    """The site's backlog, and how long all of it is kept."""
    backlog = live.backlog(site)
    if backlog is None:
        return {}
    hours = {feed.name: feed.retention_hours for feed in facts.feeds}
    ends = [
        from_us(one.oldest_us) + timedelta(hours=hours[one.feed])
        for one in live.backlog_by_feed(site).values()
        if one.known and one.oldest_us is not None and one.products and one.feed in hours
    ]
    kept_until = min(ends, default=None)
    words = []
    if backlog.products:
        least = "At least " if backlog.counting else ""
        kept = f"; all are kept until {moment_words(kept_until, now)}" if kept_until and kept_until > now else ""
        words.append(f"{least}{backlog.products:,} products ({size_words(backlog.bytes)}) wait here{kept}.")
    if backlog.lost_products:
        words.append(f"{backlog.lost_products:,} products left the log before delivery.")
    return {
        "waiting_products": backlog.products,
        "waiting_bytes": backlog.bytes,
        "lost_products": backlog.lost_products,
        "kept_until": kept_until,
        "words": " ".join(words) or "No products wait here.",
    }


_WITH_BACKLOG = frozenset({AlarmKind.SITE_DOWN, AlarmKind.SITE_DISK, AlarmKind.STALLED, AlarmKind.HEARTBEAT})
