"""Bounds on the growth of every table of the ledger, and the parties that can add rows.

`docs/access.md` shows this as a table. A test requires an entry for each table of the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from downburst.ledger.storage import limits
from downburst.ledger.storage.limits import Newest, RowLimit


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one row for each of these, which are bounded themselves."""

    columns: tuple[str, ...]
    """The primary key, or a part of it that is unique."""
    each: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows are removed by age or number, irrespective of their creator."""

    words: str
    setting: str | None = None


Bound = RowLimit | Newest | Unique | Kept


@dataclass(frozen=True, slots=True)
class Growth:
    """One table."""

    by: str
    """The parties that can add rows."""
    bounds: tuple[Bound, ...]


LATENCY_DAYS, HISTORY_DAYS, AUDIT_DAYS = "latency_days", "history_days", "access.audit_days"
MEASUREMENT_DAYS = "measurement_days"
GROWTH: Mapping[str, Growth] = {
    "access_requests": Growth(
        "anybody", (limits.REQUESTS, limits.REQUESTS_OF_ADDRESS, Kept("the newest 1,000 answered requests"))
    ),
    "access_tokens": Growth(
        "administrators", (limits.ACCESS_TOKENS_OF_MAKER, limits.ACCESS_TOKENS, limits.ENDED_ACCESS_TOKENS)
    ),
    "alarm_receivers": Growth("operators", (limits.RECEIVERS,)),
    "alarms": Growth(
        "the hub, by what sites and feeds do",
        (Kept("one open alarm for each kind, feed, site and subject, and the newest 10,000 ended ones"),),
    ),
    "answers": Growth(
        "clients that send an `Idempotency-Key`",
        (limits.KEYS_OF_TENANT, limits.KEYS_OF_STRANGER, limits.KEYS_OF_STRANGERS, Kept("kept for a day")),
    ),
    "assignments": Growth("the hub", (Unique(("feed", "site"), "feed and site"),)),
    "audit": Growth(
        "users who change something; operators and administrators have no limit",
        (limits.CHANGES_OF_TENANT, Kept("kept for", AUDIT_DAYS)),
    ),
    "batches": Growth("the hub", (Kept("the newest 200,000"),)),
    "circuit_ends": Growth("operators", (Unique(("circuit", "position"), "circuit and end"),)),
    "circuit_events": Growth("the hub", (Kept("the newest 200 per circuit"),)),
    "circuit_hops": Growth("operators", (Unique(("circuit", "position"), "circuit and hop"),)),
    "circuit_measurements": Growth(
        "the hub", (Unique(("circuit", "site", "direction"), "circuit, site and direction"),)
    ),
    "circuit_offers": Growth("operators", (limits.CIRCUIT_OFFERS,)),
    "circuit_ports": Growth("operators", (limits.PORTS,)),
    "circuit_providers": Growth("operators", (limits.CIRCUIT_PROVIDERS,)),
    "circuits": Growth("operators", (limits.CIRCUITS, Kept("finished circuits among the newest 100,000"))),
    "credentials": Growth(
        "sites, with tokens and in their sessions",
        (limits.CREDENTIALS_OF_SITE, limits.REPLACEMENTS_OF_SITE, limits.ENDED_CREDENTIALS_OF_SITE),
    ),
    "demand_orders": Growth("the hub", (limits.DEMAND_ORDERS,)),
    "egress_quarters": Growth("the hub", (Kept("one for each quarter hour, kept for", HISTORY_DAYS),)),
    "exceptions": Growth("sites, by what they report", (limits.EXCEPTIONS_OF_SITE, Kept("kept for", LATENCY_DAYS))),
    "faults": Growth("the hub, by what sites do", (Kept("the newest 1,000"),)),
    "feed_seconds": Growth(
        "sites, by what they report",
        (Kept("one for each feed with a deadline, site and second of the newest hour; totals stay in `settled`"),),
    ),
    "feeds": Growth("operators", (limits.FEEDS,)),
    "heads": Growth("the hub", (Kept("the newest 8 lives of the log per feed"),)),
    "holders": Growth("the hub's processes", (Unique(("role",), "role of a process"),)),
    "latency_minutes": Growth(
        "sites, by what they report",
        (Kept("one for each feed, kind and minute of nine days: the node ignores what is older or ahead"),),
    ),
    "latency_sheets": Growth("the hub", (Kept("one for each feed, kind, step and span, kept for", LATENCY_DAYS),)),
    "ldm_accepts": Growth("operators", (limits.LDM_ACCEPTS,)),
    "ldm_sources": Growth("operators", (limits.LDM_SOURCES,)),
    "leg_counters": Growth(
        "the hub", (Kept("one for each leg of the plans that are kept; others are summed up by feed and transport"),)
    ),
    "legs": Growth("the hub", (limits.LEGS,)),
    "login_links": Growth(
        "users; administrators, by invitations",
        (limits.LINKS_OF_USER, Kept("kept for a week at most; an invitation replaces the one before")),
    ),
    "login_sessions": Growth("users", (limits.SESSIONS_OF_USER, Kept("kept for", "access.session_hours"))),
    "measurements": Growth(
        "test points, by what they archive",
        (limits.MEASUREMENTS_OF_POINT, Kept("kept for", MEASUREMENT_DAYS)),
    ),
    "node_clocks": Growth("the hub's nodes", (Unique(("name",), "node"),)),
    "nsi_connections": Growth(
        "requesters of other networks", (limits.NSI_CONNECTIONS_OF_SUBJECT, limits.NSI_CONNECTIONS, limits.NSI_ENDED)
    ),
    "nsi_correlations": Growth("requesters of other networks", (limits.NSI_CORRELATIONS,)),
    "nsi_orders": Growth("the hub", (Unique(("circuit",), "circuit"),)),
    "nsi_replies": Growth("requesters of other networks", (limits.NSI_REPLIES,)),
    "objectives": Growth("operators", (Unique(("feed", "site"), "feed and site"),)),
    "pins": Growth("operators", (Unique(("feed",), "feed"),)),
    "placements": Growth("the hub", (Unique(("number",), "hub"),)),
    "plans": Growth("the hub", (limits.PLANS_OF_FEED,)),
    "probe_ceilings": Growth("sites and operators", (Unique(("site", "side"), "site and side"),)),
    "probe_schedules": Growth("operators", (limits.PROBE_SCHEDULES_OF_SITE,)),
    "probe_seconds": Growth("the hub", (Unique(("probe", "minute"), "probe and minute, of a week at most"),)),
    "probes": Growth("operators", (limits.PROBES_OF_SITE, limits.ENDED_PROBES_OF_SITE)),
    "relay_log": Growth("relays, by what they report", (limits.LOG_OF_RELAY,)),
    "relay_sites": Growth("operators", (Unique(("relay", "site"), "relay and site"),)),
    "relays": Growth("operators", (limits.RELAYS,)),
    "resends": Growth("sites and operators", (limits.RESENDS_OF_SITE, Kept("the newest 1,000 ended resends"))),
    "senders": Growth("the hub's nodes", (Unique(("name",), "sender"),)),
    "settled": Growth(
        "sites, by what they report",
        (Unique(("feed", "site", "epoch"), "feed, site and life of the feed's log: the node ignores other lives"),),
    ),
    "sibling_exchanges": Growth("sites and operators", (Unique(("site",), "site"),)),
    "sibling_savings": Growth("sites, by what they report", (Unique(("site", "feed"), "site and feed"),)),
    "silences": Growth(
        "sites and operators",
        (limits.WINDOWS_OF_SITE, limits.SILENCES_OF_MAKER, limits.SILENCES, Kept("kept until they end")),
    ),
    "site_receivers": Growth("sites", (limits.RECEIVERS_OF_SITE,)),
    "site_ways": Growth("the hub", (Unique(("site",), "site"),)),
    "sites": Growth("operators", (limits.SITES,)),
    "subscriptions": Growth("sites and operators", (limits.SUBSCRIPTIONS_OF_SITE,)),
    "tcp_profiles": Growth("operators", (limits.TCP_PROFILES,)),
    "test_points": Growth("operators", (limits.TEST_POINTS,)),
    "tokens": Growth(
        "sites and operators", (limits.PENDING_TOKENS_OF_SITE, limits.PENDING_TOKENS, limits.ENDED_TOKENS_OF_SITE)
    ),
    "topology_elements": Growth("operators", (limits.TOPOLOGY_ELEMENTS,)),
    "traffic_hours": Growth("the hub", (Kept("one for each feed and hour, kept for", HISTORY_DAYS),)),
    "traffic_minutes": Growth("the hub", (Kept("one for each feed and minute, kept for", HISTORY_DAYS),)),
    "upstreams": Growth("operators", (limits.UPSTREAMS,)),
    "users": Growth("administrators; members of mapped groups, by signing in at a provider", (limits.USERS,)),
    "wis2_days": Growth("the hub", (Kept("one for each source, centre and day, kept for", HISTORY_DAYS),)),
    "wis2_holes": Growth("the hub", (limits.WIS2_HOLES_OF_SOURCE,)),
    "wis2_notices": Growth(
        "centres of WIS2, by what they announce",
        (Unique(("source", "data_id"), "source and data id"), Kept("kept for two days after their product is held")),
    ),
    "wis2_outgoing": Growth("the hub", (Kept("one for each product of a publisher's feed, kept for two days"),)),
    "wis2_places": Growth("the hub", (Unique(("publisher",), "publisher"),)),
    "wis2_publishers": Growth("operators", (limits.WIS2_PUBLISHERS,)),
    "wis2_sources": Growth("operators", (limits.WIS2_SOURCES,)),
}
