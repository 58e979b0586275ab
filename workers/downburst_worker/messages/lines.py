"""The lines exchanged with the node, from and to the types of the model; no other module knows their format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from downburst.domain.credentials import Credential
from downburst.domain.events import (
    ActionFailed,
    BatchReady,
    FeedTraffic,
    LdmPeerChanged,
    LdmSourceChanged,
    LegChanged,
    LinkedFiles,
    SessionChanged,
    SessionTraffic,
    SiteProgress,
    Streams,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.products import Acknowledgement, Product
from downburst.domain.receipts import LogHead
from downburst.domain.resends import Resend
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.domain.tcp.path import TcpPath
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.foundation.bounds import (
    OFFSET_MAX_US,
    OutOfBounds,
    SetAside,
    clock_us,
    count,
    each,
    entries,
    feed_name,
    flag,
    integer,
    maybe,
    origin_us,
    sentence,
    site_name,
    word,
)
from downburst.foundation.bounds import epoch as epoch_of
from downburst.foundation.clock import from_us, to_us
from downburst.settings.kafka import KafkaSettings
from downburst.settings.ldm import LdmSettings
from downburst.settings.multicast import MulticastSettings
from downburst_worker.messages.catch_up_lines import catch_up_line
from downburst_worker.messages.circuit_lines import circuit_use
from downburst_worker.messages.clock_lines import site_clock
from downburst_worker.messages.leg_lines import leg_number, leg_traffic
from downburst_worker.messages.reading_lines import host_reading
from downburst_worker.messages.tcp_lines import applied_profile, transfers

Line = dict[str, Any]
Word = TypeVar("Word", bound=str)


class FaultTold(TypedDict):
    """The fields of a fault reported by the node."""

    sentence: str
    feed: str | None
    site: str | None


def shared_log(settings: KafkaSettings, *, sends: bool = False) -> Line | None:
    """The place of feeds' logs, unless only on the node's machine; a node that `sends` has copies."""
    if settings.products == "here":
        return None
    shared = settings.model_dump(mode="json", exclude={"products"})
    return {**shared, "role": "sender" if sends else settings.products}


def feeds_job(feeds: Iterable[Feed], heads: Sequence[LogHead]) -> Line:
    """The job with the whole set of feeds, and the remembered state of their logs."""
    return {"feeds": [_feed(feed, heads) for feed in feeds]}


def opened_heads(answer: Line) -> list[LogHead]:
    """The heads of the opened logs."""
    return [
        LogHead(feed_name(feed["feed"]), epoch_of(feed["epoch"]), count(feed["head"]))
        for feed in answer.get("feeds", [])
    ]


def sites_job(
    sites: Iterable[Site],
    credentials: Sequence[Credential],
    subscriptions: Sequence[Subscription],
    resends: Sequence[Resend] = (),
) -> Line:
    """The job with all sites' credentials, subscriptions and resends; feeds outside their rights are left out."""
    return {
        "sites": [
            _site(site, credentials, subscriptions)
            | {"resends": [_resend(one) for one in resends if one.site == site.name and site.may_take(one.feed)]}
            for site in sites
        ]
    }


def upstreams_job(upstreams: Iterable[Upstream]) -> Line:
    """The job with the whole set of upstreams."""
    return {
        "upstreams": [
            {"upstream": one.name, "address": one.address, "token": one.token, "feeds": list(one.feeds)}
            for one in upstreams
        ]
    }


def ldm_job(sources: Iterable[LdmSource], accepts: Iterable[LdmAccept], settings: LdmSettings) -> Line:
    """The job with LDM sources, and the port for LDM downstreams and for LDMs that push."""
    return {
        "listen": list(settings.listen),
        "connections": settings.max_clients,
        "rtstats": {"collector": settings.rtstats} if settings.rtstats else None,
        "sources": [
            {
                "source": one.name,
                "feeds": one.feeds,
                "pattern": one.pattern,
                "upstreams": list(one.upstreams),
                "max_age_seconds": one.max_age_s,
            }
            for one in sources
        ],
        "accept": [{"feeds": one.feeds, "pattern": one.pattern, "host": one.host} for one in accepts],
    }


def plan_job(plan: Plan, multicast: MulticastSettings) -> Line:
    """The job with the node's part of a plan, and the settings for its multicast."""
    own = multicast.of(plan.feed)
    return {"feed": plan.feed, "version": plan.version, "legs": [_leg(leg, own) for leg in plan.legs]}


def ingest_job(path: str, product: Product, *, digest: object, remove: bool) -> Line:
    """The job that makes a product of a complete file."""
    return {
        "path": path,
        "feed": product.feed,
        "product_id": product.product_id,
        "created_us": None if product.created_at is None else to_us(product.created_at),
        "origin": product.origin,
        "digest": digest,
        "properties": stated(product),
        "remove": remove,
    }


def stated(product: Product) -> str | None:
    """The statements of a product's source, as a job carries them."""
    return None if product.properties is None else product.properties.decode()


def acknowledgement(answer: Line) -> Acknowledgement:
    """The outcome of an ingested file."""
    return Acknowledgement(
        size_bytes=count(answer["size"]),
        digest=word(answer["digest"]),
        sequence=maybe(answer.get("sequence"), count),
        epoch=maybe(answer.get("epoch"), epoch_of),
        stored_at=_instant(answer.get("stored_us")),
        created_at=_instant(answer.get("created_us")),
        duplicate_of=answer.get("duplicate_of"),
    )


def session_changed(line: Line) -> SessionChanged:
    """The report that a site connected, disconnected or was refused, or a stranger was."""
    return SessionChanged(
        site=maybe(line["site"], site_name) or "",
        state=_one_of(line["state"], SESSION_STATES),
        at=_at(line),
        peer=sentence(line["peer"]),
        reason=maybe(line.get("reason"), sentence),
        software=maybe(line.get("software"), sentence),
        stand_by=flag(line.get("stand_by", False)),
        renews=flag(line.get("renews", False)),
    )


def upstream_changed(line: Line) -> UpstreamChanged:
    """The report that the connection to an upstream began, ended or was refused."""
    return UpstreamChanged(
        upstream=sentence(line["upstream"]),
        state=_one_of(line["state"], SESSION_STATES),
        at=_at(line),
        hub=maybe(line.get("hub"), sentence),
        reason=maybe(line.get("reason"), sentence),
    )


def ldm_source_changed(line: Line) -> LdmSourceChanged:
    """The report that the connection to an upstream LDM began, ended or was refused."""
    return LdmSourceChanged(
        source=sentence(line["source"]),
        upstream=sentence(line["upstream"]),
        state=_one_of(line["state"], SESSION_STATES),
        at=_at(line),
        mode=sentence(line["mode"]),
        reason=maybe(line.get("reason"), sentence),
    )


def ldm_peer_changed(line: Line) -> LdmPeerChanged:
    """The report that a connection of an LDM to this hub began, ended or was refused."""
    return LdmPeerChanged(
        peer=sentence(line["peer"]),
        state=_one_of(line["state"], SESSION_STATES),
        at=_at(line),
        what=sentence(line["what"]),
        site=maybe(line.get("site"), site_name),
        reason=maybe(line.get("reason"), sentence),
    )


def leg_changed(line: Line) -> LegChanged:
    """The report that a site joined or left a leg, or did not hear it."""
    return LegChanged(
        feed=feed_name(line["feed"]),
        leg=leg_number(line["leg"]),
        site=site_name(line["site"]),
        state=_one_of(line["state"], LEG_STATES),
        at=_at(line),
        after=maybe(line.get("after"), count),
        reason=maybe(line.get("reason"), sentence),
    )


def traffic_seen(line: Line, transports: Mapping[int, Transport], aside: list[SetAside]) -> TrafficSeen:
    """A second of counters; `transports` has the transport of each leg.

    An impossible entry goes to `aside`, and the others count: the line is about all sites.
    """
    return TrafficSeen(
        from_us=clock_us(line["from_us"]),
        to_us=clock_us(line["to_us"]),
        feeds=each(_listed(line, "feeds"), _feed_traffic, "a feed's traffic", aside),
        legs=each(_listed(line, "legs"), lambda leg: leg_traffic(leg, transports), "a leg's traffic", aside),
        sessions=each(_listed(line, "sessions"), _session_traffic, "a session", aside),
        control_bytes=count(line["control_bytes"]),
        circuits=each(_listed(line, "circuits"), circuit_use, "a circuit's traffic", aside),
        gone=frozenset(each(_listed(line, "gone"), site_name, "a site that is gone", aside)),
    )


def resend_ended(line: Line) -> tuple[int, int, int, int]:
    """The outcome of a resend: its number, products, bytes, and the number expired."""
    number, products, size_bytes, expired = (count(line[name]) for name in ("resend", "products", "bytes", "expired"))
    return number, products, size_bytes, expired


def told_fault(line: Line) -> FaultTold:
    """A fault for operators."""
    return {
        "sentence": sentence(line["sentence"]),
        "feed": maybe(line.get("feed"), feed_name),
        "site": maybe(line.get("site"), site_name),
    }


def batch_ready(line: Line) -> BatchReady:
    """A batch file to load."""
    return BatchReady(word(line["batch"]), Path(line["path"]))


def _feed_traffic(feed: Line) -> FeedTraffic:
    return FeedTraffic(
        feed=feed_name(feed["feed"]),
        products=count(feed["products"]),
        bytes=count(feed["bytes"]),
        sizes=tuple(count(size) for size in entries(feed["sizes"], most=MOST_SIZES)),
        head=count(feed["head"]),
        epoch=epoch_of(feed["epoch"]) if feed.get("epoch") else "",
    )


def _feed(feed: Feed, heads: Sequence[LogHead]) -> Line:
    remembered = [{"epoch": head.epoch, "sequence": head.sequence} for head in heads if head.feed == feed.name]
    return {
        "feed": feed.name,
        "class": feed.feed_class.value,
        "retention_hours": feed.retention_hours,
        "retention_bytes": feed.retention_bytes,
        "durability": feed.durability.value,
        "duplicate_rule": feed.duplicate_rule.value,
        "max_product_bytes": feed.max_product_bytes,
        "unicast_leg": feed.unicast_leg,
        "at_least": remembered,
        "ldm_feed_type": feed.ldm_feed_type,
        "ldm_pattern": feed.ldm_pattern,
        "deadline_ms": feed.deadline_ms,
    }


def _site(site: Site, credentials: Sequence[Credential], subscriptions: Sequence[Subscription]) -> Line:
    wishes = [wish for wish in subscriptions if wish.site == site.name and site.may_take(wish.feed)]
    return {
        "site": site.name,
        "credentials": [_credential(credential) for credential in credentials if credential.site == site.name],
        "allow": list(site.allow),
        "limits": [asdict(limit) for limit in site.limits],
        "subscriptions": [_subscription(wish) for wish in wishes],
        "interface": site.multicast_interface,
        "active": site.active,
        "data_connections": site.data_connections,
        "access_rate_bps": round(site.access_rate_bps) if site.access_rate_bps else None,
        "ceiling_bps_by_hour": [round(ceiling * 1e6) for ceiling in site.ceiling_mbps_by_hour],
        "ldm_host": site.ldm_host,
        # If several sites list the same host, the one created first gets it, like the first line of LDM's file.
        "ldm_order": to_us(site.created_at) if site.created_at else 0,
    }


def _credential(credential: Credential) -> Line:
    expires = credential.expires_at
    return {
        "sha256": credential.sha256,
        "expires_us": None if expires is None else to_us(expires),
        "renew_us": to_us(credential.renews_at),
        "replaces": credential.replaces,
    }


def _subscription(wish: Subscription) -> Line:
    line: Line = {"feed": wish.feed, "pattern": wish.pattern, "not_pattern": wish.not_pattern}
    if wish.in_order:
        line["hold_us"] = round(wish.hold_s * 1e6)
    if wish.max_age_s is not None:
        line["max_age_us"] = round(wish.max_age_s * 1e6)
    return line


def _resend(resend: Resend) -> Line:
    return {
        "resend": resend.id,
        "feed": resend.feed,
        "kind": resend.kind.value,
        "from_us": to_us(resend.from_at),
        "to_us": to_us(resend.to_at),
        "wanted": asdict(resend.wanted),
        "had": [asdict(one) for one in resend.had],
    }


def _leg(leg: Leg, multicast: MulticastSettings) -> Line:
    line: Line = {"leg": leg.leg, "transport": leg.transport.value, "sites": list(leg.sites)}
    if leg.circuits and leg.transport is Transport.MULTICAST:
        line["circuit"] = leg.circuits[0][1]
    elif leg.circuits:
        line["circuits"] = [{"site": site, "lease": number} for site, number in leg.circuits]
    if leg.group is not None:
        line |= {"group": leg.group, "port": leg.port, "rate_bps": leg.rate_bps}
        line |= {
            "interface": multicast.interface,
            "hops": multicast.hops,
            "burst_bytes": multicast.burst_bytes,
            "parity_percent": multicast.parity_percent,
            "loss_quantile": multicast.loss_quantile,
            "repair_seconds": multicast.repair_s,
            "offload": multicast.offload,
        }
    if leg.group is not None and (catch_up := catch_up_line(leg, multicast)):
        line["catch_up"] = catch_up
    if leg.relay is not None:
        line |= {"relay": leg.relay, "fan_out": leg.fan_out.value}
    return line


def _session_traffic(session: Line) -> SessionTraffic:
    return SessionTraffic(
        site=site_name(session["site"]),
        clock_offset_us=maybe(session.get("clock_offset_us"), _offset_us),
        clock_bound_us=maybe(session.get("clock_bound_us"), count),
        round_trip_us=maybe(session.get("round_trip_us"), count),
        feeds=tuple(map(_progress, entries(session["feeds"], most=MOST_FEEDS))),
        streams=_streams(session),
        path=_path(session.get("path")),
        tcp_profile=maybe(session.get("tcp_profile"), applied_profile),
        clock=maybe(session.get("site_clock"), site_clock),
        transfers=transfers(session.get("transfers", [])),
    )


def _progress(feed: Any) -> SiteProgress:
    return SiteProgress(
        feed_name(feed["feed"]),
        count(feed["settled_to"]),
        count(feed["pending"]),
        Transport(feed["transport"]),
        leg_number(feed["leg"]),
        maybe(feed.get("trouble"), sentence),
        count(feed.get("late", 0)),
        _action_failed(feed.get("action_failed")),
        maybe(feed.get("heartbeat_us"), clock_us),
        maybe(feed.get("heartbeat_waits_us"), clock_us),
        maybe(feed.get("heartbeat_waited_us"), count),
        _linked(feed.get("linked")),
        maybe(feed.get("reading"), host_reading),
    )


def _linked(files: Line | None) -> LinkedFiles | None:
    if files is None:
        return None
    return LinkedFiles(bytes=count(files["bytes"]), free_bytes=count(files["free_bytes"]))


def _action_failed(failed: Line | None) -> ActionFailed | None:
    if failed is None:
        return None
    return ActionFailed(
        rule=sentence(failed["rule"]),
        exit=maybe(failed["exit"], lambda status: integer(status, least=-(2**31), most=2**31 - 1)),
        last_error=sentence(failed["last_error"]),
        product=sentence(failed["product"]),
        sequence=count(failed["sequence"]),
        epoch=maybe(failed.get("epoch"), epoch_of),
        count=count(failed.get("count", 1)),
        others=tuple(count(other) for other in entries(list(failed.get("others", ())), most=MOST_SIZES)),
    )


def _path(path: Line | None) -> TcpPath | None:
    if path is None:
        return None
    return TcpPath(
        least_round_trip_us=maybe(path["least_round_trip_us"], count),
        sent_segments=count(path["sent_segments"]),
        resent_segments=count(path["resent_segments"]),
        rate_bps=count(path["rate_bps"]),
        is_lower_bound=flag(path["is_lower_bound"]),
        congestion=sentence(path["congestion"]),
        path_mtu_bytes=maybe(path.get("path_mtu_bytes"), count),
    )


def _streams(session: Line) -> Streams | None:
    if "data_connections" not in session:
        return None
    return Streams(
        open=count(session["data_connections"]),
        planned=count(session["data_connections_planned"]),
        reason=sentence(session["data_connections_reason"]),
    )


def _listed(line: Line, name: str) -> list[object]:
    return entries(line.get(name, []), most=MOST_ENTRIES)


def _offset_us(value: object) -> int:
    return integer(value, least=-2 * OFFSET_MAX_US, most=2 * OFFSET_MAX_US)


def _one_of(value: object, words: tuple[Word, ...]) -> Word:
    found = next((one for one in words if one == value), None)
    if found is None:
        raise OutOfBounds(f"{value!r:.100} is none of {', '.join(words)}")
    return found


def _at(line: Line) -> datetime:
    return from_us(clock_us(line["at_us"]))


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(origin_us(microseconds))


SESSION_STATES: tuple[Literal["connected", "closed", "refused"], ...] = ("connected", "closed", "refused")
LegState = Literal["joined", "left", "never-heard", "too-slow"]
LEG_STATES: tuple[LegState, ...] = ("joined", "left", "never-heard", "too-slow")
MOST_ENTRIES = 100_000
MOST_FEEDS = 4_096
MOST_SIZES = 64
