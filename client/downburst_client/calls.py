"""A function for each route of the API: what it takes is asked, what it returns is sent by a hub.

Generated from the routes by `unit.api.write_contract`; a test compares. Not to be edited.
"""

from typing import Literal

from downburst.domain.bridges.publishers import Step
from downburst.domain.circuits.states import CircuitState
from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport
from downburst.domain.probes import ProbeKind, ProbeState
from downburst_client.call import Call, path_of
from downburst_contract import (
    access,
    alarms,
    circuits,
    feeds,
    latency,
    ldm,
    ordering,
    overview,
    plans,
    products,
    relays,
    resends,
    sites,
    subscriptions,
    tcp_profiles,
    topology,
    tracer,
    upstreams,
)
from downburst_contract.bridges import publishers, sources
from downburst_contract.desk import calendar
from downburst_contract.measuring import measurements
from downburst_contract.now import incidents, strip
from downburst_contract.paths import probes, siblings


def healthz() -> Call[overview.Health]:
    """200 while every probe passes; else 503 with a problem that names the failing ones. It is cheap to request."""
    return Call("GET", path_of("healthz"), overview.Health)


def livez() -> Call[overview.Alive]:
    """200 while the process answers at all; without an answer it should be restarted."""
    return Call("GET", path_of("livez"), overview.Alive)


def readyz() -> Call[overview.Health]:
    """200 while the hub stores and sends products, which it also does without the ledger's server."""
    return Call("GET", path_of("readyz"), overview.Health)


def list_requests(
    *, decided: bool | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[access.AccessRequest]]:
    """Pending requests, oldest first."""
    return Call(
        "GET",
        path_of("v1", "access-requests"),
        list[access.AccessRequest],
        query={"decided": decided, "cursor": cursor, "limit": limit},
    )


def ask_for_access(body: access.RequestNew) -> Call[access.RequestMade]:
    """Asks for access; the secret in the answer gives access to the state of the request, and is shown only here."""
    return Call("POST", path_of("v1", "access-requests"), access.RequestMade, body=body)


def show_request(body: access.RequestSecret) -> Call[access.RequestStateShown]:
    """State of a request; once approved, with a link to choose a password, until one is chosen."""
    return Call("POST", path_of("v1", "access-requests", "state"), access.RequestStateShown, body=body)


def approve(number: int, body: access.Approval | None = None) -> Call[access.AccessRequest]:
    """Creates the site as it registered itself, and a user who sees only that site."""
    return Call("POST", path_of("v1", "access-requests", number, "approval"), access.AccessRequest, body=body)


def refuse(number: int, body: access.Refusal) -> Call[access.AccessRequest]:
    """Refuses a request, with a reason."""
    return Call("POST", path_of("v1", "access-requests", number, "refusal"), access.AccessRequest, body=body)


def list_access_tokens(*, cursor: str | None = None, limit: int | None = None) -> Call[list[access.AccessToken]]:
    """Every access token, newest first; without their secrets."""
    return Call(
        "GET", path_of("v1", "access-tokens"), list[access.AccessToken], query={"cursor": cursor, "limit": limit}
    )


def add_access_token(body: access.AccessTokenNew) -> Call[access.AccessTokenMade]:
    """Creates an access token; its text is shown only here."""
    return Call("POST", path_of("v1", "access-tokens"), access.AccessTokenMade, body=body)


def revoke_access_token(number: int) -> Call[access.AccessToken]:
    """Revokes an access token; it is invalid from this moment."""
    return Call("DELETE", path_of("v1", "access-tokens", number), access.AccessToken)


def list_receivers(*, cursor: str | None = None, limit: int | None = None) -> Call[list[alarms.Receiver]]:
    """Alarm receivers, by name."""
    return Call(
        "GET", path_of("v1", "alarm-receivers"), list[alarms.Receiver], query={"cursor": cursor, "limit": limit}
    )


def add_receiver(body: alarms.ReceiverNew) -> Call[alarms.Receiver]:
    """Creates a receiver."""
    return Call("POST", path_of("v1", "alarm-receivers"), alarms.Receiver, body=body)


def remove_receiver(receiver: str) -> Call[None]:
    """Removes a receiver."""
    return Call("DELETE", path_of("v1", "alarm-receivers", receiver), None)


def try_receiver(receiver: str) -> Call[None]:
    """Sends a test notification to a receiver; the problem has the reason if that fails."""
    return Call("POST", path_of("v1", "alarm-receivers", receiver, "test"), None)


def list_alarms(
    *,
    site: str | None = None,
    feed: str | None = None,
    ended: bool | None = None,
    cursor: int | None = None,
    limit: int | None = None,
) -> Call[alarms.AlarmPage]:
    """Open alarms, the most severe first and of those the newest; with `ended` all, newest first, in pages."""
    return Call(
        "GET",
        path_of("v1", "alarms"),
        alarms.AlarmPage,
        query={"site": site, "feed": feed, "ended": ended, "cursor": cursor, "limit": limit},
    )


def list_changes(
    *,
    who: str | None = None,
    kind: str | None = None,
    subject: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    cursor: int | None = None,
    limit: int | None = None,
) -> Call[access.ChangePage]:
    """Changes, newest first, with their author and the former values."""
    return Call(
        "GET",
        path_of("v1", "audit"),
        access.ChangePage,
        query={
            "who": who,
            "kind": kind,
            "subject": subject,
            "from": begin,
            "to": end,
            "cursor": cursor,
            "limit": limit,
        },
    )


def list_bridges(*, cursor: str | None = None, limit: int | None = None) -> Call[list[sources.Bridge]]:
    """All sources with the state of their brokers, by name."""
    return Call("GET", path_of("v1", "bridges"), list[sources.Bridge], query={"cursor": cursor, "limit": limit})


def add_bridge(body: sources.BridgeWanted) -> Call[sources.Bridge]:
    """Adds a source of WIS2, which connects to its brokers."""
    return Call("POST", path_of("v1", "bridges"), sources.Bridge, body=body)


def remove_bridge(bridge: str) -> Call[None]:
    """Removes a source; its products stay."""
    return Call("DELETE", path_of("v1", "bridges", bridge), None)


def show_bridge(bridge: str) -> Call[sources.Bridge]:
    """A source with the state of its brokers."""
    return Call("GET", path_of("v1", "bridges", bridge), sources.Bridge)


def change_bridge(bridge: str, body: sources.BridgeChange) -> Call[sources.Bridge]:
    """Changes a source; it connects to its brokers anew, and loses nothing."""
    return Call("PATCH", path_of("v1", "bridges", bridge), sources.Bridge, body=body)


def list_centres(
    bridge: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[sources.CentreAccount]]:
    """The accounts of centres for today, UTC, and those of centres from which products are still to come."""
    return Call(
        "GET",
        path_of("v1", "bridges", bridge, "centres"),
        list[sources.CentreAccount],
        query={"cursor": cursor, "limit": limit},
    )


def list_failed_products(
    bridge: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[sources.FailedProduct]]:
    """The last 10,000 products for which nothing is tried any more, by data id."""
    return Call(
        "GET",
        path_of("v1", "bridges", bridge, "failed"),
        list[sources.FailedProduct],
        query={"cursor": cursor, "limit": limit},
    )


def retry_failed_products(bridge: str) -> Call[sources.Retried]:
    """Has all failed products of a source fetched once more."""
    return Call("POST", path_of("v1", "bridges", bridge, "failed", "retry"), sources.Retried)


def list_holes(bridge: str, *, cursor: str | None = None, limit: int | None = None) -> Call[list[sources.BrokerHole]]:
    """The times in which a broker may have dropped notifications, the newest first."""
    return Call(
        "GET",
        path_of("v1", "bridges", bridge, "holes"),
        list[sources.BrokerHole],
        query={"cursor": cursor, "limit": limit},
    )


def list_passed_over_messages(bridge: str) -> Call[list[sources.PassedOverMessage]]:
    """The last 100 messages of which nothing was fetched, with the reasons; copies are left out."""
    return Call("GET", path_of("v1", "bridges", bridge, "passed-over"), list[sources.PassedOverMessage])


def show_calendar(*, begin: str | None = None, end: str | None = None) -> Call[calendar.Calendar]:
    """The calendar of a window of at most 400 days: links, hosts and ports with circuits, tests and maintenance.

    `begin` is RFC 3339 or a time ago, `end` RFC 3339 or so long after the begin: `+7d`.
    """
    return Call("GET", path_of("v1", "calendar"), calendar.Calendar, query={"begin": begin, "end": end})


def show_circuit_rates(circuit: int) -> Call[calendar.CircuitRates]:
    """The rates in use through a circuit in the last six hours, as far as this hub has run."""
    return Call("GET", path_of("v1", "calendar", "circuits", circuit), calendar.CircuitRates)


def list_circuit_offers() -> Call[ordering.CircuitOffers]:
    """All offers of circuits on demand, with their measured set-up times and the use of today's budgets."""
    return Call("GET", path_of("v1", "circuit-offers"), ordering.CircuitOffers)


def remove_circuit_offer(offer: str) -> Call[None]:
    """Removes an offer that no open order needs; its orders stay readable."""
    return Call("DELETE", path_of("v1", "circuit-offers", offer), None)


def show_circuit_offer(offer: str) -> Call[ordering.CircuitOffer]:
    """One offer."""
    return Call("GET", path_of("v1", "circuit-offers", offer), ordering.CircuitOffer)


def put_circuit_offer(offer: str, body: ordering.CircuitOfferWanted) -> Call[ordering.CircuitOffer]:
    """Adds an offer, or gives it exactly these values; the scheduler weighs it in its next plans."""
    return Call("PUT", path_of("v1", "circuit-offers", offer), ordering.CircuitOffer, body=body)


def list_circuit_orders(
    *,
    offer: str | None = None,
    feed: str | None = None,
    site: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Call[ordering.CircuitOrderPage]:
    """Orders of the scheduler, newest first, each with its reason and its outcome."""
    return Call(
        "GET",
        path_of("v1", "circuit-orders"),
        ordering.CircuitOrderPage,
        query={"offer": offer, "feed": feed, "site": site, "before": before, "limit": limit},
    )


def show_circuit_order(number: int) -> Call[ordering.CircuitOrder]:
    """One order."""
    return Call("GET", path_of("v1", "circuit-orders", number), ordering.CircuitOrder)


def list_circuit_providers() -> Call[ordering.CircuitProviders]:
    """All records of other networks' providers."""
    return Call("GET", path_of("v1", "circuit-providers"), ordering.CircuitProviders)


def remove_circuit_provider(provider: str) -> Call[None]:
    """Removes a provider that no offer and no unfinished circuit needs."""
    return Call("DELETE", path_of("v1", "circuit-providers", provider), None)


def show_circuit_provider(provider: str) -> Call[ordering.CircuitProvider]:
    """One provider."""
    return Call("GET", path_of("v1", "circuit-providers", provider), ordering.CircuitProvider)


def put_circuit_provider(provider: str, body: ordering.CircuitProviderWanted) -> Call[ordering.CircuitProvider]:
    """Adds a provider, or gives it exactly these values; certificates and keys are paths on the hub's machine."""
    return Call("PUT", path_of("v1", "circuit-providers", provider), ordering.CircuitProvider, body=body)


def list_circuits(
    *,
    state: list[CircuitState] | None = None,
    site: str | None = None,
    port: str | None = None,
    finished: bool | None = None,
    archived: bool | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[list[circuits.Circuit]]:
    """The newest circuits, newest first; finished ones and the archive only on request."""
    return Call(
        "GET",
        path_of("v1", "circuits"),
        list[circuits.Circuit],
        query={
            "state": state,
            "site": site,
            "port": port,
            "finished": finished,
            "archived": archived,
            "cursor": cursor,
            "limit": limit,
        },
    )


def request_circuit(body: circuits.CircuitNew, *, dry_run: bool | None = None) -> Call[circuits.CircuitAnswered]:
    """Reserves a circuit, or holds it for `hold_s`; a refusal has the reason and the circuits in conflict."""
    return Call("POST", path_of("v1", "circuits"), circuits.CircuitAnswered, query={"dry_run": dry_run}, body=body)


def cancel_circuit(
    circuit: int, *, by: str | None = None, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Cancels a circuit; its rate is free immediately, and its set-up is removed."""
    return Call(
        "DELETE", path_of("v1", "circuits", circuit), circuits.CircuitAnswered, query={"by": by, "dry_run": dry_run}
    )


def show_circuit(circuit: int) -> Call[circuits.CircuitWhole]:
    """One circuit with its history and measurements."""
    return Call("GET", path_of("v1", "circuits", circuit), circuits.CircuitWhole)


def modify_circuit(
    circuit: int, body: circuits.CircuitModify, *, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Changes rate, window or burst, together or not at all: a refusal leaves the circuit and its traffic as is."""
    return Call(
        "PATCH", path_of("v1", "circuits", circuit), circuits.CircuitAnswered, query={"dry_run": dry_run}, body=body
    )


def clone_circuit(
    circuit: int, body: circuits.CircuitClone | None = None, *, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Reserves a copy of a circuit, with the same duration, from now or from `begin`."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "clone"),
        circuits.CircuitAnswered,
        query={"dry_run": dry_run},
        body=body,
    )


def commit_circuit(
    circuit: int, *, by: str | None = None, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Makes a held circuit a reservation; one that is reserved already stays so."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "commit"),
        circuits.CircuitAnswered,
        query={"by": by, "dry_run": dry_run},
    )


def create_path(
    circuit: int, *, by: str | None = None, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Has the path of a waiting circuit set up; one that has a path keeps it."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "create-path"),
        circuits.CircuitAnswered,
        query={"by": by, "dry_run": dry_run},
    )


def add_leaf(circuit: int, body: circuits.LeafNew, *, dry_run: bool | None = None) -> Call[circuits.CircuitAnswered]:
    """Adds a site to a multipoint circuit; the others go on. Feeds ride to it when probes have passed."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "leaves"),
        circuits.CircuitAnswered,
        query={"dry_run": dry_run},
        body=body,
    )


def remove_leaf(
    circuit: int, site: str, *, by: str | None = None, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Removes a site from a multipoint circuit; the others go on, and feeds to it take the routed path."""
    return Call(
        "DELETE",
        path_of("v1", "circuits", circuit, "leaves", site),
        circuits.CircuitAnswered,
        query={"by": by, "dry_run": dry_run},
    )


def measure_circuit(circuit: int) -> Call[circuits.CircuitWhole]:
    """Measures a circuit now; the result is in `measurements` some seconds later."""
    return Call("POST", path_of("v1", "circuits", circuit, "measure"), circuits.CircuitWhole)


def override_circuit(
    circuit: int, body: circuits.CircuitOverride, *, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Shows a circuit as active or down whatever its probes say; feeds never use one that the probes refuse."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "override"),
        circuits.CircuitAnswered,
        query={"dry_run": dry_run},
        body=body,
    )


def tear_down_path(
    circuit: int, *, by: str | None = None, dry_run: bool | None = None
) -> Call[circuits.CircuitAnswered]:
    """Removes the path of a circuit, which stays reserved and waits for its creation."""
    return Call(
        "POST",
        path_of("v1", "circuits", circuit, "tear-down-path"),
        circuits.CircuitAnswered,
        query={"by": by, "dry_run": dry_run},
    )


def lost_deliveries(
    *,
    state: list[Literal["expired", "rejected"]] | None = None,
    site: str | None = None,
    feed: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[products.LostPage]:
    """Products that a site will not get, newest first: rejected there, or expired before delivery."""
    return Call(
        "GET",
        path_of("v1", "deliveries"),
        products.LostPage,
        query={
            "state": state,
            "site": site,
            "feed": feed,
            "from": begin,
            "to": end,
            "cursor": cursor,
            "limit": limit,
        },
    )


def list_feeds(*, cursor: str | None = None, limit: int | None = None) -> Call[list[feeds.Feed]]:
    """Every feed, by name; a site's administrator sees those that the site may take."""
    return Call("GET", path_of("v1", "feeds"), list[feeds.Feed], query={"cursor": cursor, "limit": limit})


def add_feed(body: feeds.FeedNew) -> Call[feeds.Feed]:
    """Creates a feed."""
    return Call("POST", path_of("v1", "feeds"), feeds.Feed, body=body)


def remove_feed(feed: str, *, if_match: str | None = None) -> Call[None]:
    """Removes a feed and the subscriptions to it."""
    return Call("DELETE", path_of("v1", "feeds", feed), None, headers={"if-match": if_match} if if_match else {})


def show_feed(feed: str) -> Call[feeds.Feed]:
    """One feed."""
    return Call("GET", path_of("v1", "feeds", feed), feeds.Feed)


def change_feed(feed: str, body: feeds.FeedChange, *, if_match: str | None = None) -> Call[feeds.Feed]:
    """Changes the given properties of a feed."""
    return Call(
        "PATCH",
        path_of("v1", "feeds", feed),
        feeds.Feed,
        body=body,
        headers={"if-match": if_match} if if_match else {},
    )


def put_feed(feed: str, body: feeds.FeedChange, *, if_match: str | None = None) -> Call[feeds.Feed]:
    """Creates the feed, or gives it exactly these properties."""
    return Call(
        "PUT", path_of("v1", "feeds", feed), feeds.Feed, body=body, headers={"if-match": if_match} if if_match else {}
    )


def list_catch_ups(feed: str, *, cursor: str | None = None, limit: int | None = None) -> Call[list[feeds.CatchUp]]:
    """The last streams by which several sites caught up on the feed together, since the hub started; newest first."""
    return Call(
        "GET",
        path_of("v1", "feeds", feed, "catch-ups"),
        list[feeds.CatchUp],
        query={"cursor": cursor, "limit": limit},
    )


def show_distribution(feed: str, *, hours: float | None = None) -> Call[products.Distribution]:
    """Product sizes of a feed and gaps between its products, from its log."""
    return Call("GET", path_of("v1", "feeds", feed, "distribution"), products.Distribution, query={"hours": hours})


def remove_objective(feed: str, site: str) -> Call[None]:
    """Removes an objective; the feed's own applies at the site again."""
    return Call("DELETE", path_of("v1", "feeds", feed, "objectives", site), None)


def put_objective(feed: str, site: str, body: alarms.ObjectiveWanted) -> Call[alarms.Objective]:
    """Sets the objective of a feed at a site."""
    return Call("PUT", path_of("v1", "feeds", feed, "objectives", site), alarms.Objective, body=body)


def list_outcomes(feed: str, *, cursor: str | None = None, limit: int | None = None) -> Call[list[feeds.Outcomes]]:
    """The outcomes of a feed's products at each site: for a feed with a deadline, how many were in time."""
    return Call(
        "GET",
        path_of("v1", "feeds", feed, "outcomes"),
        list[feeds.Outcomes],
        query={"cursor": cursor, "limit": limit},
    )


def test_pattern(feed: str, body: products.PatternTest) -> Call[products.PatternTested]:
    """Effect of a pattern on the last hours: counts, and the newest ids that match and do not."""
    return Call("POST", path_of("v1", "feeds", feed, "pattern-test"), products.PatternTested, body=body)


def unpin_feed(feed: str, *, if_match: str | None = None) -> Call[None]:
    """Lets the scheduler choose again; a feed without a pin stays as it is."""
    return Call(
        "DELETE", path_of("v1", "feeds", feed, "pin"), None, headers={"if-match": if_match} if if_match else {}
    )


def pin_feed(feed: str, body: feeds.PinNew, *, if_match: str | None = None) -> Call[feeds.Pin]:
    """Orders the scheduler to use one transport for a feed.

    A transport that can't serve the feed's sites is refused (422); one that traffic or paths rule out for now is
    kept.
    """
    return Call(
        "PUT",
        path_of("v1", "feeds", feed, "pin"),
        feeds.Pin,
        body=body,
        headers={"if-match": if_match} if if_match else {},
    )


def plan_history(feed: str, *, cursor: str | None = None, limit: int | None = None) -> Call[list[plans.Plan]]:
    """The plans of a feed, newest first, each with the bytes that its legs sent."""
    return Call(
        "GET", path_of("v1", "feeds", feed, "plans"), list[plans.Plan], query={"cursor": cursor, "limit": limit}
    )


def put_product(
    feed: str, product_id: str, content: bytes, *, headers: dict[str, str] | None = None
) -> Call[products.Stored]:
    """Stores one product; the id is one percent-encoded value, so `/` and `%` in it survive."""
    return Call(
        "PUT",
        path_of("v1", "feeds", feed, "products", product_id),
        products.Stored,
        content=content,
        headers=headers or {},
    )


def list_feed_seconds(
    feed: str,
    *,
    site: str | None = None,
    since: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[list[feeds.FeedSecond]]:
    """Seconds of a feed with a deadline at its sites, newest first: records by outcome, reordering, delay, jitter."""
    return Call(
        "GET",
        path_of("v1", "feeds", feed, "seconds"),
        list[feeds.FeedSecond],
        query={"site": site, "since": since, "cursor": cursor, "limit": limit},
    )


def what_if(feed: str, body: plans.WhatIfNew) -> Call[plans.WhatIf]:
    """The planner's choice for a feed under other conditions, on the feed's own arrivals; nothing is changed.

    The same functions decide as for the plan in force. More sites than the feed has are taken to be like them.
    """
    return Call("POST", path_of("v1", "feeds", feed, "what-if"), plans.WhatIf, body=body)


def list_latencies(
    *,
    feed: str | None = None,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind | None = None,
    minutes: int | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[list[latency.PathLatency]]:
    """p50, p95, p99 and worst latency of each feed, site and transport, with the bound of the clocks."""
    return Call(
        "GET",
        path_of("v1", "latency"),
        list[latency.PathLatency],
        query={
            "feed": feed,
            "site": site,
            "transport": transport,
            "kind": kind,
            "minutes": minutes,
            "cursor": cursor,
            "limit": limit,
        },
    )


def latency_heat(
    *,
    feed: str,
    site: str | None = None,
    minutes: int | None = None,
    until: str | None = None,
    limit: int | None = None,
) -> Call[latency.Heat]:
    """Latency by site and time: p99 by the hour for up to a week, by the day for more, the worst site first."""
    return Call(
        "GET",
        path_of("v1", "latency", "heat"),
        latency.Heat,
        query={"feed": feed, "site": site, "minutes": minutes, "until": until, "limit": limit},
    )


def latency_histogram(
    *,
    feed: str,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind | None = None,
    minutes: int | None = None,
    until: str | None = None,
) -> Call[latency.Histogram]:
    """Latency distribution: product counts in ten steps per decade, with the figures of all products."""
    return Call(
        "GET",
        path_of("v1", "latency", "histogram"),
        latency.Histogram,
        query={"feed": feed, "site": site, "transport": transport, "kind": kind, "minutes": minutes, "until": until},
    )


def latency_history(
    *,
    feed: str,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind | None = None,
    minutes: int | None = None,
    until: str | None = None,
    step: Literal["minute", "5-minutes", "hour", "day"] | None = None,
) -> Call[latency.LatencyHistory]:
    """Latency over time: by the minute for up to a day, by the day for more. Any range of the last year."""
    return Call(
        "GET",
        path_of("v1", "latency", "history"),
        latency.LatencyHistory,
        query={
            "feed": feed,
            "site": site,
            "transport": transport,
            "kind": kind,
            "minutes": minutes,
            "until": until,
            "step": step,
        },
    )


def list_accepts(*, cursor: str | None = None, limit: int | None = None) -> Call[list[ldm.LdmAccept]]:
    """Hosts that may push, with their feed types, oldest first."""
    return Call("GET", path_of("v1", "ldm", "accepts"), list[ldm.LdmAccept], query={"cursor": cursor, "limit": limit})


def add_accept(body: ldm.LdmAcceptNew) -> Call[ldm.LdmAccept]:
    """Lets hosts push products."""
    return Call("POST", path_of("v1", "ldm", "accepts"), ldm.LdmAccept, body=body)


def remove_accept(number: int) -> Call[None]:
    """Withdraws the permission to push."""
    return Call("DELETE", path_of("v1", "ldm", "accepts", number), None)


def list_peers() -> Call[ldm.LdmPeers]:
    """Connected LDMs with their requests, and the products sent and answered.

    LDM has no receipts: an answer means that the peer processed the product, not that it is on its disk.
    """
    return Call("GET", path_of("v1", "ldm", "peers"), ldm.LdmPeers)


def list_reports(
    *, host: str | None = None, feed: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[ldm.LdmReport]]:
    """Latest rtstats lines: latencies at hosts that this hub does not run, by their clocks."""
    return Call(
        "GET",
        path_of("v1", "ldm", "reports"),
        list[ldm.LdmReport],
        query={"host": host, "feed": feed, "cursor": cursor, "limit": limit},
    )


def list_sources(*, cursor: str | None = None, limit: int | None = None) -> Call[list[ldm.LdmSourceListed]]:
    """All sources with the state of each of their upstreams, and feed types without a feed."""
    return Call(
        "GET", path_of("v1", "ldm", "sources"), list[ldm.LdmSourceListed], query={"cursor": cursor, "limit": limit}
    )


def add_source(body: ldm.LdmSourceNew) -> Call[ldm.LdmSource]:
    """Requests products from LDMs, into the feeds that have their feed types."""
    return Call("POST", path_of("v1", "ldm", "sources"), ldm.LdmSource, body=body)


def remove_source(source: str) -> Call[None]:
    """Removes a source; its products stay."""
    return Call("DELETE", path_of("v1", "ldm", "sources", source), None)


def change_source(source: str, body: ldm.LdmSourceNew) -> Call[ldm.LdmSource]:
    """Gives a source exactly these properties."""
    return Call("PUT", path_of("v1", "ldm", "sources", source), ldm.LdmSource, body=body)


def list_measurements(
    *, point: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[measurements.PathMeasurement]]:
    """Measurements of all test points, newest first, with those that were refused."""
    return Call(
        "GET",
        path_of("v1", "measurements"),
        list[measurements.PathMeasurement],
        query={"point": point, "cursor": cursor, "limit": limit},
    )


def archive_measurement(token: str) -> Call[measurements.Archived]:
    """Takes a result from pScheduler's HTTP archiver; the token names the test point. Up to 1 MiB."""
    return Call("POST", path_of("v1", "measurements", "archive", token), measurements.Archived)


def archive_measurement_again(token: str) -> Call[measurements.Archived]:
    """The same for an archiver with `op` `put`; a run that is stored already stays as it is."""
    return Call("PUT", path_of("v1", "measurements", "archive", token), measurements.Archived)


def now_history(*, hours: int | None = None) -> Call[strip.NowHistory]:
    """Rates in and out, the saved share and the worst latency by the quarter hour, and the sums of the day."""
    return Call("GET", path_of("v1", "now", "history"), strip.NowHistory, query={"hours": hours})


def now_incidents(*, site: str | None = None) -> Call[incidents.NowIncidents]:
    """The state of the hub in a sentence, and its incidents: the worst first, causes before consequences."""
    return Call("GET", path_of("v1", "now", "incidents"), incidents.NowIncidents, query={"site": site})


def now_strip(*, site: str | None = None, limit: int | None = None, hours: int | None = None) -> Call[strip.Strip]:
    """Sites by the quarter hour, the worst first: the worst feed as a share of its objective."""
    return Call(
        "GET", path_of("v1", "now", "strip"), strip.Strip, query={"site": site, "limit": limit, "hours": hours}
    )


def list_objectives(
    *, site: str | None = None, feed: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[alarms.Objective]]:
    """Objectives of single sites, by feed and site; elsewhere the feed's own objective applies."""
    return Call(
        "GET",
        path_of("v1", "objectives"),
        list[alarms.Objective],
        query={"site": site, "feed": feed, "cursor": cursor, "limit": limit},
    )


def show_overview() -> Call[overview.Overview]:
    """Problems, feeds, plans with reasons, sites, latencies."""
    return Call("GET", path_of("v1", "overview"), overview.Overview)


def list_plans(*, cursor: str | None = None, limit: int | None = None) -> Call[list[plans.CurrentPlan]]:
    """The current plan of every feed that has one."""
    return Call("GET", path_of("v1", "plans"), list[plans.CurrentPlan], query={"cursor": cursor, "limit": limit})


def list_ports(*, cursor: str | None = None, limit: int | None = None) -> Call[list[circuits.Port]]:
    """Every port where circuits may end, by name."""
    return Call("GET", path_of("v1", "ports"), list[circuits.Port], query={"cursor": cursor, "limit": limit})


def add_port(body: circuits.PortNew) -> Call[circuits.Port]:
    """Creates a port."""
    return Call("POST", path_of("v1", "ports"), circuits.Port, body=body)


def remove_port(port: str) -> Call[None]:
    """Removes a port that no circuit needs."""
    return Call("DELETE", path_of("v1", "ports", port), None)


def show_port(port: str) -> Call[circuits.Port]:
    """One port."""
    return Call("GET", path_of("v1", "ports", port), circuits.Port)


def change_port(port: str, body: circuits.PortChange) -> Call[circuits.Port]:
    """Changes the given properties of a port, unless circuits on it would lose reserved capacity."""
    return Call("PATCH", path_of("v1", "ports", port), circuits.Port, body=body)


def list_probe_schedules(
    *, site: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[probes.ProbeSchedule]]:
    """The schedules of probes, by number."""
    return Call(
        "GET",
        path_of("v1", "probe-schedules"),
        list[probes.ProbeSchedule],
        query={"site": site, "cursor": cursor, "limit": limit},
    )


def add_probe_schedule(body: probes.ProbeScheduleNew) -> Call[probes.ProbeSchedule]:
    """Repeats a probe, within hours of the day."""
    return Call("POST", path_of("v1", "probe-schedules"), probes.ProbeSchedule, body=body)


def remove_probe_schedule(number: int) -> Call[None]:
    """Removes a schedule; its probes stay."""
    return Call("DELETE", path_of("v1", "probe-schedules", number), None)


def list_probes(
    *,
    site: str | None = None,
    kind: ProbeKind | None = None,
    state: ProbeState | None = None,
    since: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[list[probes.Probe]]:
    """The newest probes, newest first; as a table, a row for each rate of each."""
    return Call(
        "GET",
        path_of("v1", "probes"),
        list[probes.Probe],
        query={"site": site, "kind": kind, "state": state, "since": since, "cursor": cursor, "limit": limit},
    )


def add_probe(body: probes.ProbeNew) -> Call[probes.Probe]:
    """Asks for a probe; it runs when its rate is free, or is refused with the holder of the rate or the ceiling."""
    return Call("POST", path_of("v1", "probes"), probes.Probe, body=body)


def stop_probe(probe: int) -> Call[probes.Probe]:
    """Asks for the end of a probe, which follows within a second; its results until then stay."""
    return Call("DELETE", path_of("v1", "probes", probe), probes.Probe)


def show_probe(probe: int, *, site: str | None = None) -> Call[probes.Probe]:
    """One probe with its circumstances and its result; with `site` only if it is one of that site."""
    return Call("GET", path_of("v1", "probes", probe), probes.Probe, query={"site": site})


def list_probe_seconds(
    probe: int, *, site: str | None = None, first: int | None = None, limit: int | None = None
) -> Call[list[probes.ProbeSecond]]:
    """The seconds of a probe at one rate, from one on; a sweep has none."""
    return Call(
        "GET",
        path_of("v1", "probes", probe, "seconds"),
        list[probes.ProbeSecond],
        query={"site": site, "first": first, "limit": limit},
    )


def list_products(
    *,
    feed: str,
    contains: str | None = None,
    pattern: str | None = None,
    since: str | None = None,
    until: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[products.ProductPage]:
    """Products of a feed that match, of a period, newest first; `next` leads to the next page."""
    return Call(
        "GET",
        path_of("v1", "products"),
        products.ProductPage,
        query={
            "feed": feed,
            "contains": contains,
            "pattern": pattern,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        },
    )


def trace(
    *,
    product: str,
    feed: str | None = None,
    site: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Call[products.Trace]:
    """State of a product at every site that subscribes to it, with the reason, the next action and its times."""
    return Call(
        "GET",
        path_of("v1", "products", "trace"),
        products.Trace,
        query={"product": product, "feed": feed, "site": site, "before": before, "limit": limit},
    )


def list_publishers(*, cursor: str | None = None, limit: int | None = None) -> Call[list[publishers.Publisher]]:
    """All publishers with the state of their brokers, by name."""
    return Call(
        "GET", path_of("v1", "publishers"), list[publishers.Publisher], query={"cursor": cursor, "limit": limit}
    )


def add_publisher(body: publishers.PublisherWanted) -> Call[publishers.Publisher]:
    """Adds a publisher. It begins with the products that come after it is switched on."""
    return Call("POST", path_of("v1", "publishers"), publishers.Publisher, body=body)


def remove_publisher(publisher: str) -> Call[None]:
    """Removes a publisher; its products are served no more."""
    return Call("DELETE", path_of("v1", "publishers", publisher), None)


def show_publisher(publisher: str) -> Call[publishers.Publisher]:
    """A publisher with the state of its broker."""
    return Call("GET", path_of("v1", "publishers", publisher), publishers.Publisher)


def change_publisher(publisher: str, body: publishers.PublisherChange) -> Call[publishers.Publisher]:
    """Changes a publisher; products that it has announced stay announced."""
    return Call("PATCH", path_of("v1", "publishers", publisher), publishers.Publisher, body=body)


def preview_notification(publisher: str) -> Call[publishers.AnnouncedProduct]:
    """The notification of the newest product that matches, as it would be sent; nothing is sent."""
    return Call("POST", path_of("v1", "publishers", publisher, "preview"), publishers.AnnouncedProduct)


def list_announced_products(
    publisher: str, *, step: Step | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[publishers.AnnouncedProduct]]:
    """The last 1,000 products of a publisher, by the number of their notification, with what was sent."""
    return Call(
        "GET",
        path_of("v1", "publishers", publisher, "products"),
        list[publishers.AnnouncedProduct],
        query={"step": step, "cursor": cursor, "limit": limit},
    )


def withdraw_product(publisher: str, body: publishers.Withdrawal) -> Call[publishers.AnnouncedProduct]:
    """Announces that the data of a data id are withdrawn, and serves them no more; the product stays in its feed."""
    return Call("POST", path_of("v1", "publishers", publisher, "withdraw"), publishers.AnnouncedProduct, body=body)


def list_relays(*, cursor: str | None = None, limit: int | None = None) -> Call[list[relays.Relay]]:
    """All relays with their states, and the tunnels and legs of their newest reports."""
    return Call("GET", path_of("v1", "relays"), list[relays.Relay], query={"cursor": cursor, "limit": limit})


def remove_relay(relay: str) -> Call[None]:
    """Removes a relay with its site record and credentials; its session ends, and its sites take other ways."""
    return Call("DELETE", path_of("v1", "relays", relay), None)


def show_relay(relay: str) -> Call[relays.Relay]:
    """One relay."""
    return Call("GET", path_of("v1", "relays", relay), relays.Relay)


def put_relay(relay: str, body: relays.RelayWanted) -> Call[relays.Relay]:
    """Adds a relay, or gives it exactly these values; its host enrols with a token of the site of this name."""
    return Call("PUT", path_of("v1", "relays", relay), relays.Relay, body=body)


def show_relay_log(
    relay: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[relays.RelayRecord]]:
    """The performance that tunnels of a relay achieved, newest first: each at its end, and each hour until then."""
    return Call(
        "GET",
        path_of("v1", "relays", relay, "log"),
        list[relays.RelayRecord],
        query={"cursor": cursor, "limit": limit},
    )


def list_resends(
    *, site: str | None = None, feed: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[resends.Resend]]:
    """The newest resends, newest first."""
    return Call(
        "GET",
        path_of("v1", "resends"),
        list[resends.Resend],
        query={"site": site, "feed": feed, "cursor": cursor, "limit": limit},
    )


def add_resend(body: resends.ResendNew) -> Call[resends.Resend]:
    """Sends products in a feed's log to a site again, by a range of time; it waits while the site is offline."""
    return Call("POST", path_of("v1", "resends"), resends.Resend, body=body)


def cancel_resend(resend: int) -> Call[resends.Resend]:
    """Cancels a resend; delivered products stay."""
    return Call("DELETE", path_of("v1", "resends", resend), resends.Resend)


def show_resend(resend: int) -> Call[resends.Resend]:
    """One resend."""
    return Call("GET", path_of("v1", "resends", resend), resends.Resend)


def sign_out() -> Call[access.SignedOut]:
    """Ends the session that the request shows, if there is one; a provider's user may sign out there as well."""
    return Call("DELETE", path_of("v1", "session"), access.SignedOut)


def who_am_i() -> Call[access.Who]:
    """The caller and its rights; without a login `user` is null."""
    return Call("GET", path_of("v1", "session"), access.Who)


def sign_in(body: access.SignIn) -> Call[access.SessionBegun]:
    """Signs a user in: a cookie for a browser, or a secret for a program that asks for it."""
    return Call("POST", path_of("v1", "session"), access.SessionBegun, body=body)


def use_link(body: access.LinkUse) -> Call[access.SessionBegun]:
    """Uses a one-time link: the first administrator, an invitation with a password, or a sign-in from the shell."""
    return Call("POST", path_of("v1", "session", "link"), access.SessionBegun, body=body)


def make_link() -> Call[access.SignInLink]:
    """Creates a link that signs a browser in once, as the caller: a user, or an account of the hub's machine."""
    return Call("POST", path_of("v1", "session", "links"), access.SignInLink)


def change_password(body: access.PasswordChange) -> Call[None]:
    """Changes the user's own password; every session of the user ends."""
    return Call("PUT", path_of("v1", "session", "password"), None, body=body)


def ways_to_sign_in() -> Call[access.SignInWays]:
    """The ways to sign in: by password, and at the hub's provider of OpenID Connect, if it has one."""
    return Call("GET", path_of("v1", "session", "ways"), access.SignInWays)


def list_siblings(*, cursor: str | None = None, limit: int | None = None) -> Call[list[siblings.SiblingSite]]:
    """Every site that exchanges products with siblings, or took any, with the bytes that the hub did not send."""
    return Call(
        "GET", path_of("v1", "siblings"), list[siblings.SiblingSite], query={"cursor": cursor, "limit": limit}
    )


def list_silences(*, cursor: str | None = None, limit: int | None = None) -> Call[list[alarms.Silence]]:
    """Active silences."""
    return Call("GET", path_of("v1", "silences"), list[alarms.Silence], query={"cursor": cursor, "limit": limit})


def add_silence(body: alarms.SilenceNew) -> Call[alarms.Silence]:
    """Creates a silence: its alarms are raised and shown, without notifications."""
    return Call("POST", path_of("v1", "silences"), alarms.Silence, body=body)


def end_silence(number: int) -> Call[None]:
    """Ends a silence; receivers are notified of alarms that are still open."""
    return Call("DELETE", path_of("v1", "silences", number), None)


def list_site_receivers(
    *, site: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[alarms.SiteReceiver]]:
    """Alarm receivers of sites, set by their administrators, by site and name."""
    return Call(
        "GET",
        path_of("v1", "site-alarm-receivers"),
        list[alarms.SiteReceiver],
        query={"site": site, "cursor": cursor, "limit": limit},
    )


def list_sites(*, cursor: str | None = None, limit: int | None = None) -> Call[list[sites.SiteListed]]:
    """Every site, by name, with its state, its backlog, and the reason of each feed that it can't store."""
    return Call("GET", path_of("v1", "sites"), list[sites.SiteListed], query={"cursor": cursor, "limit": limit})


def add_site(body: sites.SiteNew) -> Call[sites.Site]:
    """Creates a site."""
    return Call("POST", path_of("v1", "sites"), sites.Site, body=body)


def remove_site(site: str, *, if_match: str | None = None) -> Call[None]:
    """Removes a site; its receiver is disconnected immediately."""
    return Call("DELETE", path_of("v1", "sites", site), None, headers={"if-match": if_match} if if_match else {})


def show_site(site: str) -> Call[sites.SiteWhole]:
    """One site with its subscriptions, credentials and tokens, and the state of its session."""
    return Call("GET", path_of("v1", "sites", site), sites.SiteWhole)


def change_site(site: str, body: sites.SiteChange, *, if_match: str | None = None) -> Call[sites.Site]:
    """Changes the given properties of a site."""
    return Call(
        "PATCH",
        path_of("v1", "sites", site),
        sites.Site,
        body=body,
        headers={"if-match": if_match} if if_match else {},
    )


def list_own_receivers(
    site: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[alarms.Receiver]]:
    """Alarm receivers of the site itself, by name."""
    return Call(
        "GET",
        path_of("v1", "sites", site, "alarm-receivers"),
        list[alarms.Receiver],
        query={"cursor": cursor, "limit": limit},
    )


def add_own_receiver(site: str, body: alarms.OwnReceiver) -> Call[alarms.Receiver]:
    """Creates a receiver for the alarms of this site."""
    return Call("POST", path_of("v1", "sites", site, "alarm-receivers"), alarms.Receiver, body=body)


def remove_own_receiver(site: str, receiver: str) -> Call[None]:
    """Removes a receiver of this site."""
    return Call("DELETE", path_of("v1", "sites", site, "alarm-receivers", receiver), None)


def try_own_receiver(site: str, receiver: str) -> Call[None]:
    """Sends a test notification to a receiver of this site; the problem has the reason if that fails."""
    return Call("POST", path_of("v1", "sites", site, "alarm-receivers", receiver, "test"), None)


def revoke_credentials(site: str, *, sha256: str | None = None) -> Call[sites.CredentialsRevoked]:
    """Revokes one credential of a site, or all; a connected receiver is disconnected immediately."""
    return Call(
        "DELETE", path_of("v1", "sites", site, "credentials"), sites.CredentialsRevoked, query={"sha256": sha256}
    )


def replace_credentials(site: str) -> Call[sites.ReplacementAsked]:
    """Has the receivers of a site replace their credentials when they are connected; their sessions continue."""
    return Call("POST", path_of("v1", "sites", site, "credentials", "replacement"), sites.ReplacementAsked)


def register_endpoint(site: str, body: sites.EndpointChange) -> Call[sites.Site]:
    """Changes a site's own properties: organisation, contact, place, interface, circuit attachment, rates."""
    return Call("PUT", path_of("v1", "sites", site, "endpoint"), sites.Site, body=body)


def list_site_measurements(
    site: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[measurements.PathMeasurement]]:
    """Measurements with an end at a site, newest first: an end is at the site whose test point has its address."""
    return Call(
        "GET",
        path_of("v1", "sites", site, "measurements"),
        list[measurements.PathMeasurement],
        query={"cursor": cursor, "limit": limit},
    )


def show_path(site: str) -> Call[sites.Path]:
    """Facts about the path to a site: measured, tested and reserved."""
    return Call("GET", path_of("v1", "sites", site, "path"), sites.Path)


def show_probe_ceiling(site: str) -> Call[probes.ProbeCeilings]:
    """The ceilings of a site's probes, of both sides, and the bytes of today."""
    return Call("GET", path_of("v1", "sites", site, "probe-ceiling"), probes.ProbeCeilings)


def set_probe_ceiling(site: str, body: probes.ProbeCeilingWanted) -> Call[probes.ProbeCeilings]:
    """Sets a ceiling of the site's probes: a site's administrator sets the site's, others the operator's."""
    return Call("PUT", path_of("v1", "sites", site, "probe-ceiling"), probes.ProbeCeilings, body=body)


def end_siblings(site: str) -> Call[None]:
    """Switches the exchange of a site off: running transfers end within a second."""
    return Call("DELETE", path_of("v1", "sites", site, "siblings"), None)


def show_siblings(site: str) -> Call[siblings.SiblingSite]:
    """The exchange of one site, and the bytes that the hub did not send to it."""
    return Call("GET", path_of("v1", "sites", site, "siblings"), siblings.SiblingSite)


def set_siblings(site: str, body: siblings.SiblingExchangeWanted) -> Call[siblings.SiblingSite]:
    """Switches the exchange of a site on, with exactly these values; siblings learn its address, and it theirs."""
    return Call("PUT", path_of("v1", "sites", site, "siblings"), siblings.SiblingSite, body=body)


def list_maintenance(site: str, *, cursor: str | None = None, limit: int | None = None) -> Call[list[alarms.Silence]]:
    """Current and planned maintenance windows of this site, by number."""
    return Call(
        "GET",
        path_of("v1", "sites", site, "silences"),
        list[alarms.Silence],
        query={"cursor": cursor, "limit": limit},
    )


def begin_maintenance(site: str, body: alarms.Maintenance) -> Call[alarms.Silence]:
    """Creates a maintenance window of this site: its alarms are not notified."""
    return Call("POST", path_of("v1", "sites", site, "silences"), alarms.Silence, body=body)


def end_maintenance(site: str, number: int) -> Call[None]:
    """Ends or cancels a maintenance window of this site."""
    return Call("DELETE", path_of("v1", "sites", site, "silences", number), None)


def list_subscriptions(
    site: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[list[subscriptions.Subscription]]:
    """The subscriptions of a site, oldest first."""
    return Call(
        "GET",
        path_of("v1", "sites", site, "subscriptions"),
        list[subscriptions.Subscription],
        query={"cursor": cursor, "limit": limit},
    )


def add_subscription(site: str, body: subscriptions.SubscriptionNew) -> Call[subscriptions.Subscription]:
    """Subscribes a site to matching products; an invalid pattern is refused with the position."""
    return Call("POST", path_of("v1", "sites", site, "subscriptions"), subscriptions.Subscription, body=body)


def remove_subscription_of(site: str, subscription: int, *, if_match: str | None = None) -> Call[None]:
    """Ends a subscription of this site."""
    return Call(
        "DELETE",
        path_of("v1", "sites", site, "subscriptions", subscription),
        None,
        headers={"if-match": if_match} if if_match else {},
    )


def end_tokens(site: str) -> Call[sites.TokensEnded]:
    """Ends the unused enrolment tokens of a site; enrolled receivers are not affected."""
    return Call("DELETE", path_of("v1", "sites", site, "tokens"), sites.TokensEnded)


def add_token(site: str, body: sites.TokenNew | None = None) -> Call[sites.TokenMade]:
    """Creates a one-time enrolment token; its text is shown only here."""
    return Call("POST", path_of("v1", "sites", site, "tokens"), sites.TokenMade, body=body)


def show_tracer(
    site: str, *, last_s: float | None = None, points: int | None = None, variable: list[str] | None = None
) -> Call[tracer.TracedSite]:
    """Limits of the connections of a site by share of the time, with stalls and samples, by the hub's kernel."""
    return Call(
        "GET",
        path_of("v1", "sites", site, "tracer"),
        tracer.TracedSite,
        query={"last_s": last_s, "points": points, "variable": variable},
    )


def status() -> Call[overview.Status]:
    """The hub and its node, with the node's feeds and sessions."""
    return Call("GET", path_of("v1", "status"), overview.Status)


def list_all_subscriptions(
    *, feed: str | None = None, site: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[list[subscriptions.Subscription]]:
    """Every subscription, of a feed or site if given, oldest first."""
    return Call(
        "GET",
        path_of("v1", "subscriptions"),
        list[subscriptions.Subscription],
        query={"feed": feed, "site": site, "cursor": cursor, "limit": limit},
    )


def remove_subscription(subscription: int, *, if_match: str | None = None) -> Call[None]:
    """Ends a subscription."""
    return Call(
        "DELETE",
        path_of("v1", "subscriptions", subscription),
        None,
        headers={"if-match": if_match} if if_match else {},
    )


def list_tcp_profiles(*, cursor: str | None = None, limit: int | None = None) -> Call[list[tcp_profiles.TcpProfile]]:
    """All TCP profiles, with their learnt values and the present or last trial."""
    return Call(
        "GET", path_of("v1", "tcp-profiles"), list[tcp_profiles.TcpProfile], query={"cursor": cursor, "limit": limit}
    )


def remove_tcp_profile(profile: str) -> Call[None]:
    """Removes a TCP profile; its connections get the values of a shorter prefix, or the kernel's."""
    return Call("DELETE", path_of("v1", "tcp-profiles", profile), None)


def show_tcp_profile(profile: str) -> Call[tcp_profiles.TcpProfile]:
    """One TCP profile."""
    return Call("GET", path_of("v1", "tcp-profiles", profile), tcp_profiles.TcpProfile)


def put_tcp_profile(profile: str, body: tcp_profiles.TcpProfileWanted) -> Call[tcp_profiles.TcpProfile]:
    """Adds a TCP profile, or gives it exactly these values; they apply to present and later connections."""
    return Call("PUT", path_of("v1", "tcp-profiles", profile), tcp_profiles.TcpProfile, body=body)


def list_test_bookings(*, cursor: str | None = None, limit: int | None = None) -> Call[list[topology.BookedTest]]:
    """The tests that run, and the last of those that are over, by number."""
    return Call(
        "GET", path_of("v1", "test-bookings"), list[topology.BookedTest], query={"cursor": cursor, "limit": limit}
    )


def book_test(body: topology.WantedTest) -> Call[topology.BookingAnswered]:
    """Books a test's rate for its seconds from now on, or says when it would fit."""
    return Call("POST", path_of("v1", "test-bookings"), topology.BookingAnswered, body=body)


def release_test(number: int) -> Call[None]:
    """Ends a booking before its time, as the test is over."""
    return Call("DELETE", path_of("v1", "test-bookings", number), None)


def list_test_points(*, cursor: str | None = None, limit: int | None = None) -> Call[list[measurements.TestPoint]]:
    """All test points, by name; their tokens are not kept."""
    return Call(
        "GET", path_of("v1", "test-points"), list[measurements.TestPoint], query={"cursor": cursor, "limit": limit}
    )


def add_test_point(body: measurements.TestPointWanted) -> Call[measurements.AddedTestPoint]:
    """Adds a test point; the answer has its token, which is shown this once."""
    return Call("POST", path_of("v1", "test-points"), measurements.AddedTestPoint, body=body)


def remove_test_point(point: str) -> Call[None]:
    """Removes a test point with its measurements; its token is no longer taken."""
    return Call("DELETE", path_of("v1", "test-points", point), None)


def show_topology() -> Call[topology.Topology]:
    """The topology: domains, switches, links, hosts, and windows of maintenance."""
    return Call("GET", path_of("v1", "topology"), topology.Topology)


def put_topology(body: topology.TopologyWanted, *, dry_run: bool | None = None) -> Call[topology.TopologyAnswered]:
    """Replaces the topology, unless circuits would lose a link or a rate; the answer has the changes."""
    return Call("PUT", path_of("v1", "topology"), topology.TopologyAnswered, query={"dry_run": dry_run}, body=body)


def find_rate(body: topology.RateAsked) -> Call[topology.RateAnswer]:
    """The rates that are free throughout a window; nothing is reserved."""
    return Call("POST", path_of("v1", "topology", "rate"), topology.RateAnswer, body=body)


def find_window(body: topology.WindowAsked) -> Call[topology.WindowAnswer]:
    """The first window in which a circuit would be admitted, with its path and tags; nothing is reserved."""
    return Call("POST", path_of("v1", "topology", "window"), topology.WindowAnswer, body=body)


def totals() -> Call[plans.Totals]:
    """Totals of all legs of all feeds."""
    return Call("GET", path_of("v1", "totals"), plans.Totals)


def tree() -> Call[latency.Tree]:
    """The distribution tree: upstreams, this hub, its sites with their feeds; no addresses, no contacts."""
    return Call("GET", path_of("v1", "tree"), latency.Tree)


def list_upstreams(*, cursor: str | None = None, limit: int | None = None) -> Call[list[upstreams.UpstreamListed]]:
    """All upstreams with their state: connected or the reason, and products stored, skipped and looped."""
    return Call(
        "GET", path_of("v1", "upstreams"), list[upstreams.UpstreamListed], query={"cursor": cursor, "limit": limit}
    )


def add_upstream(body: upstreams.UpstreamNew) -> Call[upstreams.Upstream]:
    """Makes this hub a site of another one, with a token from its operator."""
    return Call("POST", path_of("v1", "upstreams"), upstreams.Upstream, body=body)


def remove_upstream(upstream: str) -> Call[None]:
    """Removes an upstream; its products stay."""
    return Call("DELETE", path_of("v1", "upstreams", upstream), None)


def list_users(*, cursor: str | None = None, limit: int | None = None) -> Call[list[access.User]]:
    """Every user, by name."""
    return Call("GET", path_of("v1", "users"), list[access.User], query={"cursor": cursor, "limit": limit})


def add_user(body: access.UserNew) -> Call[access.UserInvited]:
    """Creates a user and an invitation to choose a password; its text is shown only here."""
    return Call("POST", path_of("v1", "users"), access.UserInvited, body=body)


def remove_user(user: str) -> Call[None]:
    """Removes a user, who is signed out immediately."""
    return Call("DELETE", path_of("v1", "users", user), None)


def show_user(user: str) -> Call[access.User]:
    """One user."""
    return Call("GET", path_of("v1", "users", user), access.User)


def change_user(user: str, body: access.UserChange) -> Call[access.User]:
    """Changes a user's rights; a user who loses rights is signed out immediately."""
    return Call("PATCH", path_of("v1", "users", user), access.User, body=body)


def invite_again(user: str) -> Call[access.Invitation]:
    """Creates another invitation, for a forgotten password; the old password is valid until a new one is chosen."""
    return Call("POST", path_of("v1", "users", user, "invitations"), access.Invitation)


def volume(*, minutes: int | None = None) -> Call[latency.Volume]:
    """Volume of each feed: mean and greatest hour, share of all, products an hour; the largest feed first."""
    return Call("GET", path_of("v1", "volume"), latency.Volume, query={"minutes": minutes})


def volume_history(*, feed: str, minutes: int | None = None, until: str | None = None) -> Call[latency.VolumeHistory]:
    """Volume of a feed: by the minute for up to six hours, by the hour for up to two weeks, else by the day."""
    return Call(
        "GET",
        path_of("v1", "volume", "history"),
        latency.VolumeHistory,
        query={"feed": feed, "minutes": minutes, "until": until},
    )


def download_record(publisher: str) -> Call[None]:
    """The record of discovery of a publisher's dataset, as it was announced last."""
    return Call("GET", path_of("wis2", publisher, "record.json"), None)


def download_product(publisher: str, epoch: str, name: str) -> Call[None]:
    """The bytes of a product that a publisher has announced, or a range of them; others don't exist here."""
    return Call("GET", path_of("wis2", publisher, epoch, name), None)
