"""The topology, which is read and replaced as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from downburst.domain.topology import Domain, Host, Link, Maintenance, Switch, TagKind, TagRange, Topology
from downburst.domain.topology.topology import WORDS
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import AlreadyThere, BadInput
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.circuits import Ports
from downburst.ledger.storage import limits
from downburst.ledger.tables.topology import topology_elements

Values = dict[str, Any]


class Topologies:
    """The one topology of a hub."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._ports = Ports(connection, clock)
        self._audit = Audit(connection, clock)

    def get(self) -> Topology:
        """The present topology; empty at first."""
        found: dict[str, list[Any]] = {kind: [] for kind in WORDS}
        query = select(topology_elements).order_by(topology_elements.c.kind, topology_elements.c.name)
        for row in self._connection.execute(query):
            found[row.kind].append(READERS[row.kind]({"name": row.name} | row.properties))
        return Topology(**{kind: tuple(elements) for kind, elements in found.items()})

    def check_free(self, port: str) -> None:
        """Refuses if an element names a port of circuits."""
        users = self.get().users(port)
        if users:
            raise AlreadyThere(f"port {port} is needed by {users[0]} of the topology; change the topology first")

    def check_ports(self) -> None:
        """Refuses a change of ports in this transaction that no longer fits to the topology."""
        self.put(self.get())

    def put(self, wanted: Topology) -> Topology:
        """Replaces the topology; refuses one that doesn't fit together or to the ports."""
        try:
            wanted.check({port.name: port for port in self._ports.all()})
        except ValueError as error:
            raise BadInput(f"the topology can't be used: {error}") from None
        before = self.get()
        self._connection.execute(delete(topology_elements))
        rows = _rows(wanted)
        if rows:
            limits.TOPOLOGY_ELEMENTS.check_count(len(rows) - 1, holder="the wanted topology")
            self._connection.execute(insert(topology_elements), rows)
        kept = self.get()
        if kept != before:
            changes = {"changes": before.difference(kept)}
            self._audit.record("topology", "topology", "changed", after=changes)
        return kept


def _rows(topology: Topology) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "name": element.name, "properties": _properties(element)}
        for kind in WORDS
        for element in getattr(topology, kind)
    ]


def _properties(element: Any) -> dict[str, Any]:
    values = asdict(element)
    del values["name"]
    return {name: to_us(value) if name in ("begin", "end") else value for name, value in values.items()}


def _domain(values: Values) -> Domain:
    # Earlier releases stored none.
    return Domain(**values | {"ports": tuple(values.get("ports", ()))})


def _switch(values: Values) -> Switch:
    return Switch(**values | {"ports": tuple(values["ports"])})


def _link(values: Values) -> Link:
    tags = values["tags"]
    read = None if tags is None else TagRange(TagKind(tags["kind"]), tags["first"], tags["last"])
    return Link(**values | {"tags": read})


def _host(values: Values) -> Host:
    return Host(**values | {"ports": tuple(values["ports"])})


def _maintenance(values: Values) -> Maintenance:
    window = {"begin": from_us(values["begin"]), "end": from_us(values["end"]), "of": tuple(values["of"])}
    return Maintenance(**values | window)


READERS: Mapping[str, Callable[[Values], Any]] = {
    "domains": _domain,
    "switches": _switch,
    "links": _link,
    "hosts": _host,
    "maintenance": _maintenance,
}
