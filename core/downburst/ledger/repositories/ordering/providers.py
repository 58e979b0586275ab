"""Records of NSI providers, and the reservations there."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from downburst.domain.ordering.providers import Certificate, Dialect, Provider
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.circuits import circuits
from downburst.ledger.tables.ordering import circuit_offers, circuit_providers, nsi_orders


class Providers:
    """Providers by name; whoever writes them checks URL, names and files before."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Provider]:
        """Every provider, by name."""
        query = select(circuit_providers).order_by(circuit_providers.c.name)
        return [_provider(row) for row in self._connection.execute(query)]

    def find(self, name: str) -> Provider | None:
        """The provider, if there is one."""
        query = select(circuit_providers).where(circuit_providers.c.name == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _provider(row)

    def one(self, name: str) -> Provider:
        """The provider; refuses an unknown name."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no provider {name!r}; `downburst circuits providers list` shows all")
        return found

    def put(self, wanted: Provider) -> Provider:
        """Adds a provider, or gives it exactly these values."""
        if wanted.name in RESERVED:
            raise BadInput(f"a provider can't be named {wanted.name!r}, which stands for the hub's own nodes")
        before = self.find(wanted.name)
        if before == wanted:
            return wanted
        if before is None:
            limits.CIRCUIT_PROVIDERS.check(self._connection, circuit_providers, holder="this hub")
        put(self._connection, circuit_providers, _row(wanted) | {"created_at": self._clock.now()})
        self._audit.record(KIND, wanted.name, "added" if before is None else "changed", before=before, after=wanted)
        return wanted

    def remove(self, name: str) -> None:
        """Removes a provider; refused while an offer or an unfinished circuit needs it."""
        before = self.one(name)
        offer = self._connection.scalar(select(circuit_offers.c.name).where(circuit_offers.c.provider == name))
        if offer is not None:
            raise AlreadyThere(f"provider {name!r} is needed by offer {offer!r}; remove that first")
        unfinished = circuits.c.provider == name, circuits.c.state.not_in(("ended", "cancelled"))
        circuit = self._connection.scalar(select(circuits.c.number).where(*unfinished))
        if circuit is not None:
            raise AlreadyThere(f"provider {name!r} is needed by circuit {circuit}; cancel that first")
        self._connection.execute(delete(circuit_providers).where(circuit_providers.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)


class NsiOrders:
    """The requester's records, one for each circuit, as `downburst_circuits.nsi.record` writes them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_provider(self, provider: str) -> list[dict[str, Any]]:
        """The records of a provider, by circuit."""
        query = select(nsi_orders.c.record).where(nsi_orders.c.provider == provider).order_by(nsi_orders.c.circuit)
        return [dict(record) for record in self._connection.scalars(query)]

    def put(self, circuit: int, provider: str, record: dict[str, Any]) -> None:
        """Stores a record in place of the former one of its circuit."""
        put(self._connection, nsi_orders, {"circuit": circuit, "provider": provider, "record": record})

    def remove(self, circuit: int) -> None:
        """Removes the record of a circuit whose reservations are gone."""
        self._connection.execute(delete(nsi_orders).where(nsi_orders.c.circuit == circuit))


def _row(provider: Provider) -> dict[str, Any]:
    row = asdict(provider)
    files = row.pop("certificate") or {"certificate": None, "key": None, "authorities": None}
    paths = {name: None if path is None else str(path) for name, path in files.items()}
    return row | paths | {"dialect": provider.dialect.value}


def _provider(row: Row[Any]) -> Provider:
    values = dict(row._mapping)
    del values["created_at"]
    files = [values.pop(name) for name in ("certificate", "key", "authorities")]
    certificate = Certificate(*(Path(path) for path in files)) if all(files) else None
    return Provider(**values | {"dialect": Dialect(values["dialect"])}, certificate=certificate)


KIND = "circuit provider"
RESERVED = ("linux", "declared")
