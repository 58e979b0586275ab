"""Publishers of WIS2, and the place that each has reached in its feed."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.bridges import Broker
from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.publishers import Place, Wis2Publisher
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits, rows
from downburst.ledger.tables.bridges import wis2_places, wis2_publishers
from downburst.ledger.tables.feeds import feeds


class Wis2Publishers:
    """Publishers by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Wis2Publisher]:
        """Every publisher, by name."""
        query = select(wis2_publishers).order_by(wis2_publishers.c.name)
        return [_publisher(row) for row in self._connection.execute(query)]

    def centres(self) -> frozenset[str]:
        """The centres that this hub publishes for, or has published for until a publisher was switched off."""
        have_begun = wis2_publishers.c.name.in_(select(wis2_places.c.publisher))
        query = select(wis2_publishers.c.centre).where(wis2_publishers.c.enabled | have_begun)
        return frozenset(self._connection.scalars(query))

    def one(self, name: str) -> Wis2Publisher:
        """The publisher; refuses an unknown name."""
        query = select(wis2_publishers).where(wis2_publishers.c.name == name)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"there is no publisher {name!r}; `downburst publishers list` shows all")
        return _publisher(row)

    def add(self, wanted: Wis2Publisher) -> Wis2Publisher:
        """Adds a publisher; refuses a taken name and an unknown feed."""
        if any(known.name == wanted.name for known in self.all()):
            raise AlreadyThere(
                f"there is a publisher {wanted.name!r} already; remove it first, or choose another name"
            )
        self._check_feed(wanted)
        limits.WIS2_PUBLISHERS.check(self._connection, wis2_publishers, holder="this hub")
        kept = replace(wanted, created_at=self._clock.now())
        self._connection.execute(insert(wis2_publishers).values(_row(kept)))
        self._audit.record(KIND, kept.name, "added", after=kept)
        return kept

    def change(self, wanted: Wis2Publisher) -> Wis2Publisher:
        """Replaces a publisher, but not the time at which it was added. With another feed it begins at its head."""
        before = self.one(wanted.name)
        self._check_feed(wanted)
        kept = replace(wanted, created_at=before.created_at)
        same = wis2_publishers.c.name == kept.name
        self._connection.execute(update(wis2_publishers).where(same).values(_row(kept)))
        if before.feed != kept.feed:
            self._connection.execute(delete(wis2_places).where(wis2_places.c.publisher == kept.name))
        self._audit.record(KIND, kept.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a publisher with its notifications; the products stay, and are served no more."""
        before = self.one(name)
        self._connection.execute(delete(wis2_publishers).where(wis2_publishers.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)

    def place(self, name: str) -> Place | None:
        """The last product that it has looked at; None: it has not begun."""
        query = select(wis2_places.c.epoch, wis2_places.c.sequence).where(wis2_places.c.publisher == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else Place(row.epoch, row.sequence)

    def move(self, name: str, place: Place) -> None:
        """Records the last product that it has looked at."""
        row = {"publisher": name, "epoch": place.epoch, "sequence": place.sequence}
        rows.put_all(self._connection, wis2_places, [row])

    def _check_feed(self, wanted: Wis2Publisher) -> None:
        if self._connection.scalar(select(feeds.c.name).where(feeds.c.name == wanted.feed)) is None:
            raise NotFound(f"there is no feed {wanted.feed!r}; `downburst feeds list` shows all")


def _row(publisher: Wis2Publisher) -> dict[str, Any]:
    dataset = None if publisher.dataset is None else _dataset_row(publisher.dataset)
    return asdict(publisher) | {"broker": asdict(publisher.broker), "dataset": dataset}


def _dataset_row(dataset: Dataset) -> dict[str, Any]:
    lists = {"keywords": list(dataset.keywords), "bounds": None if dataset.bounds is None else list(dataset.bounds)}
    return asdict(dataset) | lists | {"begin": dataset.begin.isoformat()}


def _publisher(row: Row[Any]) -> Wis2Publisher:
    values = dict(row._mapping)
    dataset = None if values["dataset"] is None else _dataset(values["dataset"])
    return Wis2Publisher(**values | {"broker": Broker(**values["broker"]), "dataset": dataset})


def _dataset(values: dict[str, Any]) -> Dataset:
    bounds = None if values["bounds"] is None else tuple(values["bounds"])
    read = {"keywords": tuple(values["keywords"]), "bounds": bounds, "begin": datetime.fromisoformat(values["begin"])}
    return Dataset(**values | read)


KIND = "publisher"
