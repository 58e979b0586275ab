"""The lines spoken with the node, from and to the words of the model; nothing else knows their shape."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from downburst.clock import from_us, to_us
from downburst.credentials import Credential
from downburst.events import (
    ActionFailed,
    FeedTraffic,
    LdmPeerChanged,
    LdmSourceChanged,
    LegChanged,
    LegTraffic,
    SessionChanged,
    SessionTraffic,
    SiteProgress,
    Streams,
    TcpPath,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.kafka_settings import KafkaSettings
from downburst.model import (
    Acknowledgement,
    Feed,
    Head,
    LdmAccept,
    LdmSource,
    Leg,
    Plan,
    Product,
    Resend,
    Site,
    Subscription,
    Transport,
    Upstream,
)
from downburst.settings import LdmSettings, MulticastSettings
from downburst_worker.circuit_lines import circuit_uses

Line = dict[str, Any]


def shared_log(settings: KafkaSettings, *, sends: bool = False) -> Line | None:
    """Where the node keeps the logs of feeds, if not on its machine alone; one that `sends` has copies."""
    if settings.products == "here":
        return None
    shared = settings.model_dump(mode="json", exclude={"products"})
    return {**shared, "role": "sender" if sends else settings.products}


def feeds_job(feeds: Iterable[Feed], heads: Sequence[Head]) -> Line:
    """The whole set of feeds, with what is remembered of their logs."""
    return {"feeds": [_feed(feed, heads) for feed in feeds]}


def opened_heads(answer: Line) -> list[Head]:
    """Where the logs of the feeds stand that were opened."""
    return [Head(feed["feed"], feed["epoch"], feed["head"]) for feed in answer.get("feeds", [])]


def sites_job(
    sites: Iterable[Site],
    credentials: Sequence[Credential],
    subscriptions: Sequence[Subscription],
    resends: Sequence[Resend] = (),
) -> Line:
    """The whole set of sites with what each may show, wants and is owed; feeds it may not take are left out."""
    return {
        "sites": [
            _site(site, credentials, subscriptions)
            | {"resends": [_resend(one) for one in resends if one.site == site.name and site.may_take(one.feed)]}
            for site in sites
        ]
    }


def upstreams_job(upstreams: Iterable[Upstream]) -> Line:
    """The whole set of hubs that this one is a site of."""
    return {
        "upstreams": [
            {"upstream": one.name, "address": one.address, "token": one.token, "feeds": list(one.feeds)}
            for one in upstreams
        ]
    }


def ldm_job(sources: Iterable[LdmSource], accepts: Iterable[LdmAccept], settings: LdmSettings) -> Line:
    """LDMs that are asked for products, and the port for those that ask or push."""
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
    """One plan, as far as the node needs to know it, with how the hub multicasts the feed."""
    own = multicast.of(plan.feed)
    return {"feed": plan.feed, "version": plan.version, "legs": [_leg(leg, own) for leg in plan.legs]}


def ingest_job(path: str, product: Product, *, digest: object, remove: bool) -> Line:
    """One complete file that is to become a product."""
    return {
        "path": path,
        "feed": product.feed,
        "product_id": product.product_id,
        "created_us": None if product.created_at is None else to_us(product.created_at),
        "origin": product.origin,
        "digest": digest,
        "remove": remove,
    }


def acknowledgement(answer: Line) -> Acknowledgement:
    """What became of an ingested file."""
    return Acknowledgement(
        size_bytes=int(answer["size"]),
        digest=str(answer["digest"]),
        sequence=answer.get("sequence"),
        epoch=answer.get("epoch"),
        stored_at=_instant(answer.get("stored_us")),
        created_at=_instant(answer.get("created_us")),
        duplicate_of=answer.get("duplicate_of"),
    )


def session_changed(line: Line) -> SessionChanged:
    """A site came, went or was refused, or a stranger was."""
    return SessionChanged(
        site=line["site"] or "",
        state=line["state"],
        at=from_us(line["at_us"]),
        peer=line["peer"],
        reason=line.get("reason"),
        software=line.get("software"),
        stand_by=line.get("stand_by", False),
        renews=line.get("renews", False),
    )


def upstream_changed(line: Line) -> UpstreamChanged:
    """The connection to an upstream came, went or was refused."""
    return UpstreamChanged(
        upstream=line["upstream"],
        state=line["state"],
        at=from_us(line["at_us"]),
        hub=line.get("hub"),
        reason=line.get("reason"),
    )


def ldm_source_changed(line: Line) -> LdmSourceChanged:
    """The connection to an upstream LDM came, went or was refused."""
    return LdmSourceChanged(
        source=line["source"],
        upstream=line["upstream"],
        state=line["state"],
        at=from_us(line["at_us"]),
        mode=line["mode"],
        reason=line.get("reason"),
    )


def ldm_peer_changed(line: Line) -> LdmPeerChanged:
    """A connection of an LDM to this hub came, went or was refused."""
    return LdmPeerChanged(
        peer=line["peer"],
        state=line["state"],
        at=from_us(line["at_us"]),
        what=line["what"],
        site=line.get("site"),
        reason=line.get("reason"),
    )


def leg_changed(line: Line) -> LegChanged:
    """A site joined or left a leg, or did not hear it."""
    return LegChanged(
        feed=line["feed"],
        leg=line["leg"],
        site=line["site"],
        state=line["state"],
        at=from_us(line["at_us"]),
        after=line.get("after"),
        reason=line.get("reason"),
    )


def traffic_seen(line: Line, transports: Mapping[int, Transport]) -> TrafficSeen:
    """A second of counters; `transports` says how each leg travels."""
    return TrafficSeen(
        from_us=line["from_us"],
        to_us=line["to_us"],
        feeds=tuple(
            FeedTraffic(
                feed["feed"],
                feed["products"],
                feed["bytes"],
                tuple(feed["sizes"]),
                feed["head"],
                feed.get("epoch", ""),
            )
            for feed in line["feeds"]
        ),
        legs=tuple(_leg_traffic(leg, transports) for leg in line["legs"]),
        sessions=tuple(_session_traffic(session) for session in line["sessions"]),
        control_bytes=line["control_bytes"],
        circuits=circuit_uses(line),
        gone=frozenset(line.get("gone", ())),
    )


def _feed(feed: Feed, heads: Sequence[Head]) -> Line:
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
        # Where several sites know a host, the one that was made first decides, as the first line of LDM's file.
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
    return line


def _leg_traffic(leg: Line, transports: Mapping[int, Transport]) -> LegTraffic:
    return LegTraffic(
        leg=leg["leg"],
        feed=leg["feed"],
        egress_bytes=leg["egress_bytes"],
        repair_bytes=leg["repair_bytes"],
        products=leg["products"],
        product_bytes=leg["product_bytes"],
        sites=leg["sites"],
        backlog_bytes=leg["backlog_bytes"],
        transport=transports.get(leg["leg"], Transport.UNICAST),
    )


def _session_traffic(session: Line) -> SessionTraffic:
    return SessionTraffic(
        site=session["site"],
        clock_offset_us=session.get("clock_offset_us"),
        clock_bound_us=session.get("clock_bound_us"),
        round_trip_us=session.get("round_trip_us"),
        feeds=tuple(
            SiteProgress(
                feed["feed"],
                feed["settled_to"],
                feed["pending"],
                Transport(feed["transport"]),
                feed["leg"],
                feed.get("trouble"),
                feed.get("late", 0),
                _action_failed(feed.get("action_failed")),
                feed.get("heartbeat_us"),
                feed.get("heartbeat_waits_us"),
            )
            for feed in session["feeds"]
        ),
        streams=_streams(session),
        path=_path(session.get("path")),
    )


def _action_failed(failed: Line | None) -> ActionFailed | None:
    if failed is None:
        return None
    return ActionFailed(
        rule=failed["rule"],
        exit=failed["exit"],
        last_error=failed["last_error"],
        product=failed["product"],
        sequence=failed["sequence"],
        epoch=failed.get("epoch"),
        count=failed.get("count", 1),
        others=tuple(failed.get("others", ())),
    )


def _path(path: Line | None) -> TcpPath | None:
    if path is None:
        return None
    return TcpPath(
        least_round_trip_us=path["least_round_trip_us"],
        sent_segments=path["sent_segments"],
        resent_segments=path["resent_segments"],
        rate_bps=path["rate_bps"],
        is_lower_bound=path["is_lower_bound"],
        congestion=path["congestion"],
        path_mtu_bytes=path.get("path_mtu_bytes"),
    )


def _streams(session: Line) -> Streams | None:
    if "data_connections" not in session:
        return None
    return Streams(
        open=session["data_connections"],
        planned=session["data_connections_planned"],
        reason=session["data_connections_reason"],
    )


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)
