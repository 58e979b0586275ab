"""What a node is for among the nodes of its hub: the wiring of each process chooses."""

from dataclasses import replace
from typing import Protocol

from downburst.domain.events import Event, NodeChanged, TrafficSeen
from downburst.ledger import Ledger
from downburst_worker.node import Line
from downburst_worker.shares import Ask, HubShare, SenderShare, Share


class Role(Protocol):
    """What the agent of a node does in its own way by the node's role."""

    sender: str
    """The node's name among the senders of the hub; empty for the hub's own."""
    has_neighbours: bool
    """Whether other nodes may serve sites of this hub."""
    takes_in: bool
    """Whether products come in at this node: it assigns numbers, connects to upstreams and serves LDMs."""

    @property
    def share(self) -> Share:
        """What it serves."""

    async def joined(self, ask: Ask, data_dir: str) -> Line:
        """What is added to the job that starts the node; waits until the node may join the others."""

    def told(self, traffic: TrafficSeen) -> TrafficSeen:
        """What of its traffic the rest of the hub is told."""

    def publishes(self, event: Event) -> bool:
        """Whether the rest of the hub is told of an event."""


class HubRole:
    """The hub's own node: products come in here, circuits begin here, and it serves every site that no sender has."""

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
        """Whether its node runs is told by its beats; by the bus it would be the hub's own."""
        return not isinstance(event, NodeChanged)
