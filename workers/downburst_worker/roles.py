"""The role of a node among the nodes of its hub; the wiring of each process chooses it."""

from dataclasses import replace
from typing import Protocol

from downburst.domain.events import Event, NodeChanged, TrafficSeen
from downburst.ledger import Ledger
from downburst_worker.node import Line
from downburst_worker.shares import Ask, HubShare, SenderShare, Share


class Role(Protocol):
    """The behaviour of a node's agent that depends on the node's role."""

    sender: str
    """The node's name among the senders of the hub; empty for the hub's own."""
    has_neighbours: bool
    """True if other nodes may serve sites of this hub."""
    takes_in: bool
    """True if this node ingests: it assigns numbers, connects to upstreams and serves LDMs."""

    @property
    def share(self) -> Share:
        """The node's share of feeds and sites."""

    async def joined(self, ask: Ask, data_dir: str) -> Line:
        """Additional fields of the start job; waits until the node may join the others."""

    def told(self, traffic: TrafficSeen) -> TrafficSeen:
        """The part of its traffic that is published to the rest of the hub."""

    def publishes(self, event: Event) -> bool:
        """True if an event is published to the rest of the hub."""


class HubRole:
    """The hub's own node: it ingests products, and serves every site that no sender has."""

    sender = ""
    takes_in = True

    def __init__(self, ledger: Ledger, *, has_neighbours: bool = False) -> None:
        self.share = HubShare(ledger)
        self.has_neighbours = has_neighbours

    async def joined(self, ask: Ask, data_dir: str) -> Line:
        """Nothing: it is the authority that the others wait for."""
        del ask, data_dir
        return {}

    def told(self, traffic: TrafficSeen) -> TrafficSeen:
        """All of it."""
        return traffic

    def publishes(self, event: Event) -> bool:
        """Always."""
        del event
        return True


class SenderRole:
    """A node that sends for a hub: it serves what the ledger places on it, from its copies of the feeds."""

    takes_in = False
    has_neighbours = True

    def __init__(self, ledger: Ledger, *, name: str, address: str) -> None:
        self.sender = name
        self.share = SenderShare(ledger, name, address)

    async def joined(self, ask: Ask, data_dir: str) -> Line:
        """Its address and certificate."""
        return {"sender": await self.share.certified(ask, data_dir)}

    def told(self, traffic: TrafficSeen) -> TrafficSeen:
        """Without arrivals: they are counted where they arrive, and numbers where they are assigned."""
        return replace(traffic, feeds=(), sender=self.sender)

    def publishes(self, event: Event) -> bool:
        """All but the state of its node: beats report that, and on the bus it would count as the hub's own."""
        return not isinstance(event, NodeChanged)
