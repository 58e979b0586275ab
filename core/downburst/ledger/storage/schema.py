"""The ledger's schema: one chain of revisions for both databases, and the position of a database in it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from downburst.foundation.errors import Failure
from downburst.ledger.storage.databases import speaks_postgresql
from downburst.ledger.storage.partitions import Partitions


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of a database in the chain."""

    found: str | None
    """The revision of its schema; None: it has none."""
    wanted: str
    """The revision that this release reads and writes."""
    pending: tuple[str, ...]
    """The revisions that a migration would run, in order."""

    @classmethod
    def nowhere(cls) -> "Standing":
        """The position of a database that does not exist yet."""
        known = known_revisions()
        return cls(None, known[-1], known)


def migrate(engine: Engine, to: str = "head") -> Standing:
    """Migrates the schema to a revision of the chain, by default the newest; returns the position before.

    All of it happens in one transaction, behind a lock: of two simultaneous starts the second finds the work done.
    """
    with engine.begin() as connection:
        if speaks_postgresql(connection):
            _check_server(connection)
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        before = standing(connection)
        if before.pending:
            config = _config(MIGRATIONS)
            config.attributes["connection"] = connection
            command.upgrade(config, to)
        if speaks_postgresql(connection):
            Partitions(connection).spread()
    return before


def standing(connection: Connection) -> Standing:
    """The position of the database; refuses a schema unknown to this release."""
    known = known_revisions()
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in known:
        raise Failure(
            f"the ledger has schema {found}, and this release supports none above {known[-1]}: "
            "a newer release wrote it; use that one, or restore an earlier backup"
        )
    return Standing(found, known[-1], known[known.index(found) + 1 :] if found else known)


def check_current(connection: Connection) -> None:
    """Refuses a schema other than this release's."""
    found = standing(connection)
    if found.pending:
        raise Failure(
            f"the ledger has schema {found.found or 'none'}, and this release reads {found.wanted}; "
            "start the hub of this release on it once to upgrade it, or use the release that wrote it"
        )


def known_revisions() -> tuple[str, ...]:
    """The revisions of the chain, oldest first; reads all their scripts the first time."""
    return _revisions_in(MIGRATIONS)


@cache
def _revisions_in(scripts: Path) -> tuple[str, ...]:
    directory = ScriptDirectory.from_config(_config(scripts))
    return tuple(script.revision for script in directory.walk_revisions())[::-1]


def _check_server(connection: Connection) -> None:
    number = connection.scalar(text("SELECT current_setting('server_version_num')::int"))
    if number is not None and number < OLDEST_SERVER:
        raise Failure(
            f"the ledger's server is PostgreSQL {number // 10_000}, and partitions as used here need "
            f"{OLDEST_SERVER // 10_000} or later; upgrade it"
        )


def _config(scripts: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("recursive_version_locations", "true")
    return config


MIGRATIONS = Path(__file__).parent.parent / "migrations"
MIGRATION_LOCK = 7_370_001
"""Advisory locks are numbers shared by all programs of a database."""
OLDEST_SERVER = 130_000
