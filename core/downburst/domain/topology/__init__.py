"""The network between the hub and its sites as operators declare it."""

from downburst.domain.topology.elements import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange
from downburst.domain.topology.topology import Topology

__all__ = ["Domain", "Host", "Link", "Maintenance", "Switch", "TagKind", "TagRange", "Topology"]
