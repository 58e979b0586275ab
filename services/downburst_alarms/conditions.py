"""The conditions of alarms at a moment: pure functions of the ledger's facts and the present."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeGuard

from downburst.domain.alarms import AlarmKind, Condition, Objective, alarm_key
from downburst.domain.circuits import CircuitState
from downburst.domain.credentials import Credential
from downburst.domain.events import SiteProgress
from downburst.domain.latency import Certainty, LatencyKind, certainty_of
from downburst.domain.sites import Site
from downburst.foundation.sizes import size_text
from downburst.live.state import SiteSession
from downburst.parts.names import Part
from downburst.settings.alarms import AlarmSettings
from downburst.sketches.sheet import Sheet
from downburst_alarms.situation import Situation


def conditions(situation: Situation, settings: AlarmSettings) -> list[Condition]:
    """All conditions that hold now."""
    found: list[Condition] = []
    for look in (
        _objectives,
        _silences,
        _sites,
        _violations,
        _peer_violations,
        _credentials,
        _hub_disk,
        _retention,
        _damages,
        _circuits,
        _predictions,
        _faults,
        _silent_parts,
    ):
        found.extend(look(situation, settings))
    return found


def _objectives(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    of_feeds = {feed.name: feed.objective_ms for feed in situation.ledger.feeds}
    of_sites = {(one.feed, one.site): one for one in situation.ledger.objectives}
    measured = situation.ledger.latencies.by_site()
    judged: defaultdict[tuple[float, float], dict[int, Objective]] = defaultdict(dict)
    for place, path in enumerate(measured.paths):
        objective = of_sites.get((path.feed, path.site))
        if objective is None and path.feed in of_feeds:
            objective = Objective(path.feed, path.site, of_feeds[path.feed])
        if objective is not None and path.kind == LatencyKind.DISTRIBUTION.value:
            minutes = objective.minutes or settings.objective_minutes
            judged[minutes, objective.quantile or settings.objective_quantile][place] = objective
    missed = [
        condition
        for (minutes, quantile), objectives in judged.items()
        for condition in _missed(objectives, measured, minutes, quantile, situation.now, settings)
    ]
    return sorted(missed, key=lambda one: (one.feed or "", one.site or ""))


def _missed(
    objectives: Mapping[int, Objective],
    measured: Sheet,
    minutes: float,
    quantile: float,
    now: datetime,
    settings: AlarmSettings,
) -> Iterable[Condition]:
    """The unmet objectives among those with the same window and quantile, by their path's place."""
    since = int(now.timestamp() // 60) - round(minutes) + 1
    merged = measured.only(measured.minute >= since).by_path()
    (reached_ms,) = merged.quantiles_ms(quantile)
    for place, objective in objectives.items():
        reached = float(reached_ms[place])
        if merged.count[place] >= settings.objective_products and reached > objective.objective_ms:
            yield _late(objective, _measured(reached, int(merged.bound_us[place])), minutes, quantile)


def _late(objective: Objective, measured: str, minutes: float, quantile: float) -> Condition:
    feed, site = objective.feed, objective.site
    sentence = (
        f"{feed} reaches {site} late: p{quantile * 100:g} {measured} in {minutes:g} min, "
        f"objective {_ms(objective.objective_ms)}"
    )
    step = f"find the slow stage: downburst latency --feed '{feed}' --site {site}, then trace a slow product"
    return Condition(AlarmKind.OBJECTIVE, sentence, step, feed, site)


def _silences(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    # Arrivals after the node's last report are unknown.
    known_to = min(situation.now, situation.arrivals_known_to or situation.now)
    for feed in situation.ledger.feeds:
        gaps = situation.gaps.get(feed.name)
        if gaps is None or gaps.limit_s is None or gaps.usual_s is None:
            continue
        silent_s = gaps.silent_s(known_to)
        if silent_s > gaps.limit_s:
            sentence = (
                f"no product has come into {feed.name} for {_seconds(silent_s)}; "
                f"999 of 1000 of its pauses were at most {_seconds(gaps.usual_s)}"
            )
            step = f"check the source of {feed.name}: that it runs, reaches the hub, and has a valid token"
            yield Condition(AlarmKind.SILENCE, sentence, step, feed.name)


def _sites(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    wanting = {wish.site for wish in situation.ledger.subscriptions}
    for site in situation.ledger.sites:
        if not site.active or site.name not in wanting:
            continue
        session = situation.hub.sessions.get(site.name)
        if session is None or not session.connected:
            yield from _away(site, session, situation, settings)
        else:
            yield from _connected(site, session, situation, settings)


def _away(
    site: Site, session: SiteSession | None, situation: Situation, settings: AlarmSettings
) -> Iterable[Condition]:
    since = session.since if session is not None else situation.started_at
    if situation.now - since < timedelta(seconds=settings.site_down_s):
        return
    if session is None and all(credential.site != site.name for credential in situation.ledger.credentials):
        return
    reason = f": {session.reason}" if session is not None and session.reason else ""
    backlog = situation.hub.backlogs.get(site.name)
    lacking = f"; it {backlog.words(situation.now)}" if backlog is not None and backlog.lacks else ""
    sentence = f"{site.name} has not been connected since {since:%Y-%m-%d %H:%M:%S} UTC{reason}{lacking}"
    step = f"check the receiver's log at {site.organisation or site.name}; it catches up by itself when it reconnects"
    yield Condition(AlarmKind.SITE_DOWN, sentence, step, site=site.name)


def _connected(
    site: Site, session: SiteSession, situation: Situation, settings: AlarmSettings
) -> Iterable[Condition]:
    for progress in session.progress.values():
        failed = progress.action_failed
        if failed is not None and failed.rule == DAMAGED_STATE:
            sentence = f"{site.name} found its stored data of {progress.feed} damaged: {failed.last_error}"
            step = f"at the site: look for failures of the disk (dmesg, smartctl); {RESEND_STEP}"
            yield Condition(AlarmKind.DAMAGED_DATA, sentence, step, progress.feed, site.name)
        elif failed is not None:
            others = f" for {failed.count} products" if failed.count > 1 else ""
            sentence = (
                f"{site.name} has {progress.feed}, and its rule {failed.rule} failed{others}: {failed.last_error}"
            )
            step = "at the site: run downburst-node actions failed, fix the cause, then run actions retry or drop"
            yield Condition(AlarmKind.ACTION, sentence, step, progress.feed, site.name)
        if progress.trouble:
            sentence = f"{site.name} can't store {progress.feed}: {progress.trouble}"
            step = (
                "free or repair the disk at the site; the feed then continues by itself while this hub still keeps it"
            )
            yield Condition(AlarmKind.SITE_DISK, sentence, step, progress.feed, site.name)
            continue
        overdue = _heartbeat(site, progress, settings)
        if overdue is not None:
            yield overdue
            continue
        since = situation.standstills.get((site.name, progress.feed))
        if since is not None and situation.now - since >= timedelta(seconds=settings.stalled_s):
            waited = _seconds((situation.now - since).total_seconds())
            sentence = (
                f"{site.name} is connected and has stored nothing of {progress.feed} for {waited}, while "
                "products wait"
            )
            step = f"check the receiver's log and disk at the site, and its path: downburst sites path {site.name}"
            grave = situation.now - since >= LASTING
            yield Condition(AlarmKind.STALLED, sentence, step, progress.feed, site.name, grave=grave)
    yield from _group_loss(site, situation)
    yield from _linked_files(site, session, settings)
    offset_us = session.clock_offset_us
    if offset_us is not None and abs(offset_us) > settings.clock_ms * 1000:
        sentence = f"the clock of {site.name} is off by {_ms(offset_us / 1000)}"
        step = "synchronise the site's host with a time server (chrony); latencies are corrected until then"
        yield Condition(AlarmKind.CLOCK, sentence, step, site=site.name)


def _linked_files(site: Site, session: SiteSession, settings: AlarmSettings) -> Iterable[Condition]:
    """Holds while so little is free that only these files can give more: a site may keep files on purpose."""
    spaces = [progress.linked for progress in session.progress.values() if progress.linked is not None]
    held = sum(space.bytes for space in spaces)
    free = min((space.free_bytes for space in spaces), default=0)
    if free < settings.linked_free_share * held:
        sentence = (
            f"the disk of {site.name} has {size_text(free)} left, and linked files below received/ hold "
            f"{size_text(held)} of products that left its log: this space returns only when they are removed"
        )
        step = (
            "at the site: remove files below received/ that are no longer needed, or set an age for them "
            "(receive --scour), or move them to another disk; copies (--files copy) would take as much"
        )
        yield Condition(AlarmKind.LINKED_FILES, sentence, step, site=site.name)


def _group_loss(site: Site, situation: Situation) -> Iterable[Condition]:
    """Holds until the site hears the group again, or the time of its next attempt is long past."""
    tried = situation.hub.groups.get(site.name)
    if tried is not None and tried.result == "too-slow" and situation.now - tried.at < GROUP_RESTS:
        sentence = f"{site.name} can't keep up with the group of {tried.feed}: {tried.reason}"
        step = (
            f"look for loss on the path to the site (switch, cable, a link that is too slow): downburst sites path "
            f"{site.name}; it gets unicast copies, and the group again after 5 minutes at the earliest"
        )
        yield Condition(AlarmKind.GROUP_LOSS, sentence, step, tried.feed, site.name)


def _heartbeat(site: Site, progress: SiteProgress, settings: AlarmSettings) -> Condition | None:
    """A heartbeat takes the path of every product, so a delay of it delays all of them."""
    # Waiting time as of the node's report: a late report is no fault of the site.
    waited = timedelta(microseconds=progress.heartbeat_waited_us or 0)
    if progress.heartbeat_waits_us is None or waited < timedelta(seconds=settings.heartbeat_late_s):
        return None
    said = "products wait for it" if progress.pending else "it acknowledges the products that it gets"
    sentence = (
        f"no {progress.feed} has come out at {site.name} for "
        f"{_seconds(waited.total_seconds())}, though it is connected and {said}"
    )
    step = (
        "check the receiver's log at the site and the disk with its received files (read-only, full, hung), "
        f"then its path: downburst sites path {site.name}"
    )
    return Condition(AlarmKind.HEARTBEAT, sentence, step, progress.feed, site.name)


def _violations(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    lately = situation.now - timedelta(seconds=settings.violation_s)
    for site in situation.ledger.sites:
        said = situation.violations.get(site.name)
        if said is not None and said.last_at >= lately:
            # Without their count, which would change the sentence at each check.
            since = f"{said.since:%Y-%m-%d %H:%M} UTC"
            sentence = f"{site.name} has reported impossible values since {since}: {said.sentence}"
            step = (
                f"check the receiver at {site.organisation or site.name}: its program, its clock, its state; "
                "no other site is affected; if it continues, set the site inactive until it is repaired"
            )
            yield Condition(AlarmKind.VIOLATION, sentence, step, site=site.name)


def _peer_violations(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    lately = situation.now - timedelta(seconds=settings.violation_s)
    known = {site.name for site in situation.ledger.sites}
    worst = sorted(situation.peer_violations.items(), key=lambda one: (one[1].since, one[0]))
    for peer, said in [one for one in worst if one[1].last_at >= lately][:PEERS_NAMED]:
        since = f"{said.since:%Y-%m-%d %H:%M} UTC"
        sentence = f"the LDM {peer} has reported impossible values since {since}: {said.sentence}"
        step = (
            "contact its operator about its program; its connection ends each time, and no other peer is "
            "affected; if it continues, remove its source or its accept line: downburst ldm sources, downburst "
            "ldm accepts"
        )
        site = said.site if said.site in known else None
        yield Condition(AlarmKind.PEER_VIOLATION, sentence, step, site=site, subject=peer)


def _credentials(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    """Judges each site by its longest-lived credential: those of re-enrolled receivers may expire."""
    last: dict[str, Credential] = {}
    for credential in situation.ledger.credentials:
        known = last.setdefault(credential.site, credential)
        if known.expires_at and (not credential.expires_at or credential.expires_at > known.expires_at):
            last[credential.site] = credential
    for site in situation.ledger.sites:
        credential_of = last.get(site.name)
        if site.active and credential_of is not None:
            yield from _ending(site, credential_of, situation, settings)


def _ending(site: Site, credential: Credential, situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    if credential.expires_at is None:
        return
    left = credential.expires_at - situation.now
    lifetime = credential.expires_at - credential.created_at
    if left > min(timedelta(days=settings.credential_days), lifetime / 4):
        return
    token = f"downburst sites token {site.name}"
    session = situation.hub.sessions.get(site.name)
    if left <= timedelta(0):
        sentence = f"the credential of {site.name} ended {credential.expires_at:%Y-%m-%d %H:%M} UTC: it can't connect"
        step = f"enrol its receiver again: {token}; then start it there with --token-file"
    elif session is None or not session.connected:
        sentence = (
            f"the credential of {site.name} ends in {_days(left)}, and the site is offline, so its "
            "receiver can't replace it"
        )
        step = f"bring the receiver back before that, or enrol it again afterwards: {token}"
    elif not session.renews:
        sentence = f"the credential of {site.name} ends in {_days(left)}, and its receiver can't replace it by itself"
        step = f"update downburst-node at the site, or enrol it again: {token}"
    else:
        sentence = f"the credential of {site.name} ends in {_days(left)}, and was not replaced"
        step = f"check in the receiver's log that it can write its state directory; if that can't be fixed, {token}"
    yield Condition(AlarmKind.CREDENTIAL, sentence, step, site=site.name, grave=left <= timedelta(0))


def _hub_disk(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    free, whole = situation.hub.disk_free_bytes, situation.hub.disk_bytes
    if free is not None and whole and free < settings.disk_free_share * whole:
        sentence = f"the hub's disk has {free / 1e9:.1f} GB left, {100 * free / whole:.1f} %"
        step = "free space, or keep fewer hours: downburst log advise shows the use of each feed"
        yield Condition(
            AlarmKind.HUB_DISK, sentence, step, grave=free < FULL_SHARE * settings.disk_free_share * whole
        )


def _retention(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    for feed, warning in situation.hub.retention.items():
        yield Condition(AlarmKind.RETENTION, warning.problem, warning.step, feed)


def _damages(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    for feed, damage in situation.hub.damages.items():
        if situation.now - damage.at < DAMAGE_STANDS:
            step = f"look for failures of the hub's disk (dmesg, smartctl), then downburst log verify; {RESEND_STEP}"
            yield Condition(AlarmKind.DAMAGED_DATA, damage.sentence, step, feed)


def _circuits(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    for circuit in situation.ledger.circuits:
        if circuit.shown_state in (CircuitState.DEGRADED, CircuitState.DOWN, CircuitState.FAILED):
            number = str(circuit.number)
            sentence = f"circuit {number} is {circuit.shown_state}: {circuit.shown_reason}"
            step = f"downburst circuits show {number} names the hop and the remedy"
            yield Condition(AlarmKind.CIRCUIT, sentence, step, site=circuit.sites[0], subject=number)


def _predictions(situation: Situation, settings: AlarmSettings) -> Iterable[Condition]:
    """Figures far below the objective affect no decision: both count as a fiftieth of it if they are lower."""
    floors_ms = {feed.name: feed.objective_ms * PREDICTION_FLOOR for feed in situation.ledger.feeds}
    for plan in situation.ledger.plans:
        predicted_ms, measured_ms, count = (
            plan.figures.get(name) for name in ("predicted_p99_ms", "measured_p99_ms", "measured_count")
        )
        if not (_is_number(predicted_ms) and _is_number(measured_ms) and _is_number(count)):
            continue
        floor_ms = floors_ms.get(plan.feed, 0.0)
        if count < settings.objective_products or max(predicted_ms, measured_ms) <= floor_ms:
            continue
        apart = max(predicted_ms, floor_ms, LEAST_MS) / max(measured_ms, floor_ms, LEAST_MS)
        stands = alarm_key(AlarmKind.PREDICTION, plan.feed, None, "") in situation.ledger.standing
        bound = settings.prediction_factor ** (ENDS_WITHIN if stands else 1.0)
        if not 1 / bound <= apart <= bound:
            pace = "slower" if measured_ms > predicted_ms else "faster"
            figures = f"measured p99 {_ms(measured_ms)}, predicted {_ms(predicted_ms)}"
            sentence = f"{plan.feed} is {pace} than predicted: {figures}"
            step = f"the feed keeps its transport; compare the figures: downburst plans show '{plan.feed}'"
            yield Condition(AlarmKind.PREDICTION, sentence, step, plan.feed)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _faults(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    for fault in (*situation.hub.faults, *situation.remote_faults):
        where = f"the {fault.process}" if fault.process else "the hub"
        step = f"{where} continues without it; send the trace in its log to the maintainers of Downburst"
        yield Condition(AlarmKind.INTERNAL_FAULT, fault.sentence, step, subject=fault.place)


def _silent_parts(situation: Situation, _settings: AlarmSettings) -> Iterable[Condition]:
    for part, silent_s in situation.hub.silent_s.items():
        # To the minute: seconds would change the sentence at each check.
        since = situation.now - timedelta(seconds=silent_s)
        sentence = f"the {part} has given no sign of life since {since:%Y-%m-%d %H:%M} UTC"
        yield Condition(AlarmKind.PART_SILENT, sentence, Part(part).remedy, subject=part)


def silent_hub(silent_s: float) -> Condition:
    """The only condition that can be judged without the hub's process."""
    sentence = f"the hub has not answered the alarm service for {_seconds(silent_s)}; other alarms are not evaluated"
    return Condition(AlarmKind.PART_SILENT, sentence, Part.HUB.remedy, subject=Part.HUB.value)


def _ms(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.0f} ms" if abs(value) >= 10 else f"{value:.1f} ms"


def _measured(value_ms: float, bound_us: int) -> str:
    """A latency across two clocks with its bound; below zero: there is none."""
    within = "" if bound_us < 0 else f" ± {_ms(bound_us / 1000)}"
    doubt = certainty_of(value_ms, None if bound_us < 0 else bound_us / 1000)
    return f"{_ms(value_ms)}{within}" + ("" if doubt is Certainty.KNOWN else f" ({doubt})")


def _days(left: timedelta) -> str:
    days = left / timedelta(days=1)
    return f"{days:.0f} days" if days >= 2 else _seconds(left.total_seconds())


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


GROUP_RESTS = timedelta(minutes=6)
"""The node offers the group again after five minutes to a site that was too slow; then the result is known."""
DAMAGED_STATE = "damaged state"
"""A site's node reports this in place of a rule if its own stored files are damaged."""
DAMAGE_STANDS = timedelta(hours=48)
"""Each check of a log reports the remaining damage; the default is one a day."""
PREDICTION_FLOOR = 1 / 50
"""Relative to a feed's objective, as in the scheduler's reviews (`TELLING_SHARE_OF_OBJECTIVE`)."""
LEAST_MS = 1e-3
ENDS_WITHIN = 0.8
"""Exponent of the factor within which an alarm of predictions ends: hysteresis, so that it does not flap."""
LASTING = timedelta(minutes=10)
"""A standstill of this length is no transient: the site counts as down."""
FULL_SHARE = 0.2
"""Relative to the share that must be free: below it the disk is full in minutes, 1 % by default."""
PEERS_NAMED = 20
"""Most LDM peers with an alarm each at a time: addresses are easy to obtain."""
RESEND_STEP = "a damaged product is no longer delivered; it is stored again if its source sends it again"
