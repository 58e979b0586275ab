"""No table of the ledger grows without end: each has its bounds, and the documentation shows them."""

from pathlib import Path

import pytest
from sqlalchemy import Table

from downburst.ledger.storage import limits
from downburst.ledger.storage.growth import GROWTH, Kept, Unique
from downburst.ledger.storage.limits import Newest, RowLimit
from downburst.ledger.tables import access as access_tables
from downburst.ledger.tables import alarms as alarm_tables
from downburst.ledger.tables import senders as sender_tables
from downburst.ledger.tables.base import metadata
from downburst.settings.hub import Settings
from kit.rows import ROWS
from unit.tenancy.rows_table import markdown

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "access.md"
LIMITS = {name: it for name, it in vars(limits).items() if isinstance(it, RowLimit | Newest)}


def test_each_table_says_what_bounds_it() -> None:
    assert all(module.metadata is metadata for module in (access_tables, alarm_tables, sender_tables))
    assert set(GROWTH) == set(metadata.tables), "ledger/growth.py has an entry for each table, and for no other"
    assert not [table for table, growth in GROWTH.items() if not growth.bounds or not growth.by]


def test_each_limit_bounds_a_table_and_is_raced() -> None:
    used = [bound for growth in GROWTH.values() for bound in growth.bounds if isinstance(bound, RowLimit | Newest)]
    assert sorted(one.name for one in used) == sorted(one.name for one in LIMITS.values())
    assert set(ROWS) == set(LIMITS), "kit/rows.py says how each limit is reached; a contract test races it"
    assert len({one.name for one in used}) == len(used)
    assert all(one.most > 0 and one.reason for one in used)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_of_rows_of_the_table_that_names_it(name: str) -> None:
    assert LIMITS[name] in GROWTH[ROWS[name].table.name].bounds


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_what_is_said_of_keys_and_settings_holds(table: Table) -> None:
    for bound in GROWTH[table.name].bounds:
        if isinstance(bound, Unique):
            assert set(bound.columns) == {column.name for column in table.primary_key}
        if isinstance(bound, Kept) and bound.setting is not None:
            found: object = Settings
            for part in bound.setting.split("."):
                found = found.model_fields[part].annotation  # type: ignore[attr-defined]
            assert found is float


def test_the_documentation_shows_the_table() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert markdown() in written, "make it anew: cd tests && ../.venv/bin/python -m unit.tenancy.write_rows_table"
