"""Legs' traffic under the plan that caused it, and the tunnels of relays that are due for a record."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from downburst.domain.events import LegTraffic, TrafficSeen
from downburst.domain.feeds import Feed, TrafficMinute
from downburst.domain.plans import LegCounters, Plan, Transport
from downburst.domain.relays.report import RelayReport, Tunnel


class LegAccounts:
    """Maps legs to versions of plans, and turns traffic into counts for the ledger.

    During a change, the leg of the old plan finishes its products; those bytes are booked under the newest version
    that has the leg.
    """

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._current: dict[str, int] = {}
        self._transports: dict[int, Transport] = {}
        self._control_carried_bytes = 0

    @property
    def transports(self) -> Mapping[int, Transport]:
        """The transport of each known leg."""
        return self._transports

    def name_unicast_legs(self, feeds: Iterable[Feed]) -> None:
        """Adds the unicast legs that feeds have under any plan."""
        for feed in feeds:
            if feed.unicast_leg is not None:
                self._transports[feed.unicast_leg] = Transport.UNICAST

    def adopt(self, plan: Plan) -> None:
        """Adds the legs of a plan."""
        if plan.version < self._current.get(plan.feed, 0):
            return
        self._current[plan.feed] = plan.version
        for leg in plan.legs:
            self._versions[leg.leg] = plan.version
            self._transports[leg.leg] = leg.transport

    def count(self, traffic: TrafficSeen) -> tuple[list[LegCounters], list[TrafficMinute]]:
        """This traffic as counts of legs and minutes; control bytes are divided by the sites on each leg."""
        legs = [leg for leg in traffic.legs if leg.egress_bytes or leg.products]
        shares = self._shared_control(traffic.control_bytes, legs)
        counted = [
            replace(self._counters(leg), control_bytes=share, egress_bytes=leg.egress_bytes + share)
            for leg, share in zip(legs, shares, strict=True)
        ]
        minute = traffic.to_us // 60_000_000
        minutes = [
            TrafficMinute(feed.feed, minute, feed.products, feed.bytes, round(feed.bytes / traffic.seconds))
            for feed in traffic.feeds
            if feed.products
        ]
        return counted, minutes

    def _shared_control(self, control_bytes: int, legs: list[LegTraffic]) -> list[int]:
        control_bytes += self._control_carried_bytes
        weights = [max(leg.sites, 1) for leg in legs]
        if not weights:
            # No leg sent anything: the bytes are carried to the next second with traffic, so that none is lost.
            self._control_carried_bytes = control_bytes
            return []
        self._control_carried_bytes = 0
        shares = [control_bytes * weight // sum(weights) for weight in weights]
        shares[0] += control_bytes - sum(shares)
        return shares

    def _counters(self, leg: LegTraffic) -> LegCounters:
        return LegCounters(
            feed=leg.feed,
            version=self._versions.get(leg.leg, self._current.get(leg.feed, 0)),
            leg=leg.leg,
            transport=leg.transport,
            sites=leg.sites,
            products=leg.products,
            product_bytes=leg.product_bytes,
            repair_bytes=leg.repair_bytes,
            unicast_equivalent_bytes=leg.unicast_equivalent_bytes,
        )


class TunnelRecords:
    """The tunnels of relays that go into the ledger: each one at its end, and each hour until then."""

    def __init__(self) -> None:
        self._recorded_s: dict[str, dict[str, float]] = {}
        """By relay and address of the tunnel's peer, its age at the last record."""

    def to_record(self, report: RelayReport) -> list[Tunnel]:
        """The tunnels that are due for a record."""
        before = self._recorded_s.get(report.relay, {})
        due = [one for one in report.tunnels if one.ended or one.seconds - before.get(one.site_side, 0) >= EACH_S]
        now = {one.site_side: before.get(one.site_side, 0) for one in report.tunnels if not one.ended}
        self._recorded_s[report.relay] = now | {one.site_side: one.seconds for one in due if not one.ended}
        return due


EACH_S = 3_600
