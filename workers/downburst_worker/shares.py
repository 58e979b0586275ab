"""A hub's nodes from the view of one agent: its own share, and the facts about the others for sites."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.senders import DEAD_S, Assignment, Placement, Pulse, Sender
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst_worker.messages.lines import Line

Ask = Callable[..., Awaitable[Line]]
"""Sends the node a job."""


class Share:
    """One node's share of a hub's feeds, sites and plans, and the facts about the other nodes for sites."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pulse = Pulse(DEAD_S)
        self.placement = Placement()
        """The placement in effect: without senders that are not at work."""
        self._told = Placement()
        """The placement for sites, which accept a version once: its content never depends on time or node."""
        self.leases = frozenset[int]()
        """The circuits that the node holds."""
        self.fenced = False
        """True if no beat of this sender reached the ledger for so long that another may have its multicast legs."""

    async def look(self) -> bool:
        """Reads the placement; True if it changed."""
        version, assigned, senders = await self._ledger.read(_look, patience_s=0)
        alive = self._pulse.alive(senders, time.monotonic())
        self._seen(senders)
        addresses = {sender.name: sender.address for sender in alive}
        kept = tuple(one for one in assigned if one.sender in addresses)
        serving = {one.sender for one in assigned}
        known = {one.name: one.address for one in senders if one.name in serving}
        before, told_before = self.placement, self._told
        self.placement = Placement(version, kept, addresses)
        self._told = Placement(version, assigned, addresses | known)
        closed = self._closed_since(before, time.monotonic())
        return closed or self.placement != before or self._told != told_before

    @property
    def senders(self) -> frozenset[str]:
        """Other nodes with facts about deliveries; none while the hub's own node serves everything."""
        return frozenset()

    def own_feeds(self, feeds: Sequence[Feed]) -> Sequence[Feed]:
        """The feeds with products that this node needs."""
        raise NotImplementedError

    def own_part(self, plan: Plan) -> Plan | None:
        """This node's part of a plan: a group has one sender, the one that serves all of its sites."""
        raise NotImplementedError

    def has(self, leases: Iterable[int]) -> bool:
        """Takes the circuits that the node holds; True if its part of plans changes."""
        self.leases = frozenset(leases)
        return False

    async def certify_others(self, ask: Ask) -> None:
        """Has the hub's authority sign the keys of senders that have no certificate yet."""

    def tell_sites(self, job: Line) -> Line:
        """Adds to each site the nodes that serve it."""
        nodes, others = self._told.nodes_of(), self._told.others
        for line in job["sites"]:
            told = nodes.get(line["site"], others)
            line["nodes"] = [{"address": address, "feeds": feeds} for address, feeds in told]
            line["nodes_version"] = self._told.version
        return job

    def _seen(self, senders: Sequence[Sender]) -> None:
        """All senders of the hub, at work or not."""

    def _closed_since(self, before: Placement, now_s: float) -> bool:
        """True if feeds that this node kept open for a while are closed by now."""
        del before, now_s
        return False

    def _placed(self, plan: Plan) -> list[Assignment]:
        return [one for one in self.placement.assignments if one.feed == plan.feed]


class HubShare(Share):
    """The hub's own node has every feed, and serves the sites that no sender has."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._uncertified: list[Sender] = []

    @property
    def senders(self) -> frozenset[str]:
        """Other nodes with facts about deliveries."""
        return frozenset() if self.placement.is_empty else frozenset(self.placement.addresses or {})

    def own_feeds(self, feeds: Sequence[Feed]) -> Sequence[Feed]:
        """All: products are ingested here."""
        return feeds

    def own_part(self, plan: Plan) -> Plan | None:
        """All while no site of the feed is placed; else the parts over unicast and circuits."""
        return plan if not self._placed(plan) and not self.fenced else _without_groups(plan)

    async def certify_others(self, ask: Ask) -> None:
        """Has the hub's authority sign the keys of senders that have no certificate yet."""
        for sender in self._uncertified:
            try:
                signed = await ask("certify", public_key=sender.public_key)
            except DownburstError as error:
                _LOG.warning("sender %s: %s", sender.name, error.sentence)
                continue
            keep = partial(_certify, sender=sender, signed=signed)
            with suppress(LedgerAway):
                await self._ledger.write(keep, patience_s=0)

    def _seen(self, senders: Sequence[Sender]) -> None:
        self._uncertified = [sender for sender in senders if sender.certificate is None]


class SenderShare(Share):
    """A sender has the feeds and sites that are placed on it."""

    def __init__(self, ledger: Ledger, name: str, address: str) -> None:
        super().__init__(ledger)
        self._name = name
        self._address = address
        self._left: dict[str, float] = {}
        """Feeds that left this sender, with the time until which they stay open for the last receipts."""

    def own_feeds(self, feeds: Sequence[Feed]) -> Sequence[Feed]:
        """The feeds that it serves, and for a while those that it served."""
        open_here = self.placement.feeds_of(self._name) | self._left.keys()
        return [feed for feed in feeds if feed.name in open_here]

    def own_part(self, plan: Plan) -> Plan | None:
        """The part of its own sites and circuits; groups only if all sites of the feed are its own.

        Sites on circuits that begin elsewhere take the routed path until the next plan.
        """
        placed = self._placed(plan)
        mine = {one.site for one in placed if one.sender == self._name}
        if not mine:
            return None
        legs = (_on_circuits(leg, self.leases) for leg in plan.legs)
        own = replace(plan, legs=tuple(leg for leg in legs if leg is not None))
        return own if len(mine) == len(placed) and not self.fenced else _without_groups(own)

    def has(self, leases: Iterable[int]) -> bool:
        """Takes the circuits that the node holds; True if its part of plans changes."""
        before, self.leases = self.leases, frozenset(leases)
        return self.leases != before

    async def certified(self, ask: Ask, data_dir: str) -> Line:
        """The sender's fields of the start job: its own key's certificate, once the hub's authority has signed it."""
        key = str((await ask("sender-key", data_dir=data_dir))["public_key"])
        name, address = self._name, self._address
        register = partial(_register, name=name, address=address, public_key=key)
        sender, said = await self._ledger.write(register), False
        while sender is None or sender.certificate is None or sender.public_key != key:
            if not said:
                _LOG.info("waits until the hub has signed the key of sender %s; the hub must run for that", name)
            said = True
            await asyncio.sleep(SIGNED_S)
            sender = await self._ledger.read(lambda tx: tx.fleet.senders.find(name))
        return {"address": address, "certificate": sender.certificate, "authority": sender.authority}

    def _closed_since(self, before: Placement, now_s: float) -> bool:
        """Keeps feeds that moved elsewhere open for a while; True if the time of one is over."""
        served = self.placement.feeds_of(self._name)
        self._left |= dict.fromkeys(before.feeds_of(self._name) - served, now_s + LEFT_S)
        over = [feed for feed, until_s in self._left.items() if feed in served or until_s <= now_s]
        for feed in over:
            del self._left[feed]
        return bool(over)


def _on_circuits(leg: Leg, leases: frozenset[int]) -> Leg | None:
    """The part of a leg on these circuits; a leg without circuits is whole, and a group has one circuit or none."""
    circuits = tuple((site, number) for site, number in leg.circuits if number in leases)
    if circuits == leg.circuits:
        return leg
    if not circuits or leg.transport is Transport.MULTICAST:
        return None
    return replace(leg, sites=tuple(site for site, _ in circuits), circuits=circuits)


def _without_groups(plan: Plan) -> Plan:
    return replace(plan, legs=tuple(leg for leg in plan.legs if leg.transport is not Transport.MULTICAST))


def _look(tx: Transaction) -> tuple[int, tuple[Assignment, ...], list[Sender]]:
    # Senders last: every sender with an assignment has sent its beat by then.
    return tx.fleet.assignments.version(), tuple(tx.fleet.assignments.all()), tx.fleet.senders.all()


def _register(tx: Transaction, *, name: str, address: str, public_key: str) -> Sender | None:
    return tx.fleet.senders.register(name, address=address, public_key=public_key)


def _certify(tx: Transaction, *, sender: Sender, signed: Line) -> None:
    tx.fleet.senders.certify(
        sender.name, sender.public_key, certificate=signed["certificate"], authority=signed["authority"]
    )


_LOG = logging.getLogger("downburst.agent")
SIGNED_S = 0.3
LEFT_S = 15.0
