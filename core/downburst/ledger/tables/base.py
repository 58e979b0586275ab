"""Shared definitions of all tables. Types are those that SQLite and PostgreSQL have in common."""

from datetime import date, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Dialect,
    Integer,
    MetaData,
    TypeDecorator,
)

from downburst.foundation.clock import from_us, to_us


class Instant(TypeDecorator[datetime]):
    """An aware instant, stored as microseconds since 1970 so that both databases keep full precision."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """To the database."""
        del dialect
        return None if value is None else to_us(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        del dialect
        return None if value is None else from_us(value)


class Day(TypeDecorator[date]):
    """A day, stored as the days since 1970: the databases' own types of dates differ, and backups have neither."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> int | None:
        """To the database."""
        del dialect
        return None if value is None else (value - FIRST_DAY).days

    def process_result_value(self, value: int | None, dialect: Dialect) -> date | None:
        """From the database."""
        del dialect
        return None if value is None else FIRST_DAY + timedelta(days=value)


FIRST_DAY = date(1970, 1, 1)
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


# SQLite numbers rows by itself only for a plain INTEGER key.
NUMBER = BigInteger().with_variant(Integer(), "sqlite")
