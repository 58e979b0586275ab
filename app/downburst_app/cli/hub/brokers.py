"""A sentence for each broker of a hub's sources and publishers, with the remedy where one does not work; pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from downburst_app.cli.hub.findings import BAD, OK, WEAK, Found


def brokers_found(
    sources: Sequence[dict[str, Any]], publishers: Sequence[dict[str, Any]], now: datetime
) -> Iterator[Found]:
    """The findings about bridges as the API shows them."""
    if not sources and not publishers:
        yield OK, "this hub has no sources and no publishers of WIS2"
    for source in sources:
        yield from _of_source(source, now)
    for publisher in publishers:
        yield _of_publisher(publisher, now)


def _of_source(source: dict[str, Any], now: datetime) -> Iterator[Found]:
    if not source["enabled"]:
        yield OK, f"source {source['bridge']} is switched off"
        return
    brokers = source["brokers"]
    others_bring_it = any(one["bound"] and not one["refused"] for one in brokers)
    for broker in brokers:
        state, sentence, remedy = _subscription(broker, now)
        is_covered = state == BAD and others_bring_it
        yield WEAK if is_covered else state, f"source {source['bridge']}: {broker['url']} {sentence}", remedy


def _subscription(broker: dict[str, Any], now: datetime) -> tuple[str, str, str]:
    if not broker["connected_at"]:
        return BAD, f"is away: {broker['fault']}", remedy_for(broker["fault"])
    if broker["refused"]:
        remedy = "correct the topics, or ask the broker's operator for the right to read them"
        return BAD, f"refuses topics: {', '.join(broker['refused'])}", remedy
    if not broker["bound"]:
        return WEAK, "is connected, and has not accepted the topics yet", "check again in some seconds"
    return OK, f"is connected, {broker['bound']} topics bound, {_last(broker, now)}", ""


def _of_publisher(publisher: dict[str, Any], now: datetime) -> Found:
    name, broker, products = publisher["publisher"], publisher["broker"], publisher["products"]
    if not publisher["enabled"]:
        return OK, f"publisher {name} is switched off"
    subject = f"publisher {name}: {broker['url']}"
    if not broker["connected_at"]:
        return BAD, f"{subject} is away: {broker['fault']}", remedy_for(broker["fault"])
    if products["refusal"]:
        state = WEAK if "no client is subscribed" in products["refusal"] else BAD
        remedy = REMEDY_OF_REFUSAL[state].format(centre=publisher["centre"])
        return state, f"{subject} does not announce: {products['refusal']}", remedy
    counts = f"{products['announced']} products announced, {products['waiting']} waiting"
    return OK, f"{subject} is connected, {counts}, {_last(broker, now)}"


def _last(broker: dict[str, Any], now: datetime) -> str:
    from downburst.deliveries.stages import duration

    if not broker["last_at"]:
        return "no message yet"
    age_s = max(0.0, (now - datetime.fromisoformat(broker["last_at"])).total_seconds())
    return f"last message {duration(age_s * 1000)} ago"


def remedy_for(fault: str) -> str:
    """The first thing to do about a broker that is away."""
    return next((remedy for words, remedy in REMEDIES.items() if words in fault), CHECK_THE_WAY)


CHECK_THE_WAY = "check the address, the broker itself, and firewalls between"
REMEDIES = {
    "refuses user": "correct user and password: add the source or publisher again with --user and --password-file",
    "unknown authority": "set bridges_ca_file to the authority's certificate, and restart the hub",
    "certificate": "have the broker's operator renew the certificate, or use the name in it",
    "speaks no TLS": "write mqtt:// or ws:// for a broker without TLS, or correct the port",
    "no WebSocket": "correct the path: most brokers have /mqtt",
    "not connected yet": "check again in some seconds",
}
"""By words of the fault."""
REMEDY_OF_REFUSAL = {
    BAD: "let its user write origin/a/wis2/{centre}/# at the broker",
    WEAK: "subscribe a Global Broker to origin/a/wis2/{centre}/# with QoS 1",
}
