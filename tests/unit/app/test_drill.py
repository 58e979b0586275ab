"""Findings of a backup drill without a hub: differing rows and files, damage, and data that a copy must not keep."""

import asyncio
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput, Failure
from downburst.ledger.storage import dump
from downburst.ledger.tables.base import metadata
from downburst.settings.hub import Settings, load_settings
from downburst_app.backup import back_up, inspect, restore
from downburst_app.drill.comparing import NOUNS, compare
from downburst_app.drill.drill import drill
from downburst_app.drill.report import Finding, Report
from unit.app.test_backup import hub  # noqa: F401 - a fixture


@pytest.fixture
def backup(hub: Settings, tmp_path: Path, clock: FakeClock) -> Path:  # noqa: F811
    back_up(hub, tmp_path / "hub.dbb", clock)
    return tmp_path / "hub.dbb"


@pytest.fixture
def copy(backup: Path, tmp_path: Path) -> Settings:
    """A hub that was restored."""
    copy = load_settings(None, data_dir=tmp_path / "copy")
    restore(copy, backup, migrated=False)
    return copy


def compared(backup: Path, copy: Settings, clock: FakeClock) -> dict[str, Finding]:
    again = copy.data_dir.with_suffix(".dbb")
    restored = back_up(copy, again, clock)
    return {finding.about: finding for finding in compare(backup, inspect(backup), again, restored)}


def test_a_restored_hub_is_equal_to_its_backup(backup: Path, copy: Settings, clock: FakeClock) -> None:
    before = hashlib.sha256(backup.read_bytes()).digest()
    found = compared(backup, copy, clock)
    assert all(finding.good for finding in found.values())
    assert list(NOUNS) == list(found)[: len(NOUNS)]
    assert found["sites"].sentence == "equal to the backup: 1 sites, 2 subscriptions"
    assert found["epochs and sequences"].sentence == "equal to the backup: 2"
    assert hashlib.sha256(backup.read_bytes()).digest() == before


@pytest.mark.all
def test_what_differs_is_found_and_named(backup: Path, copy: Settings, clock: FakeClock) -> None:
    for number, (damage, about, sentence) in enumerate(DAMAGES):
        shutil.copytree(copy.data_dir, place := copy.data_dir.with_name(f"damaged-{number}"))
        damaged = load_settings(None, data_dir=place)
        if damage.startswith("file "):
            (place / damage.split()[1]).write_text("otherwise")
        else:
            run(damaged, damage)
        found = compared(backup, damaged, clock)
        assert [name for name, finding in found.items() if not finding.good] == [about], damage
        assert sentence in found[about].sentence


def test_a_list_of_contents_that_counts_other_rows_is_found(backup: Path, copy: Settings, clock: FakeClock) -> None:
    again = back_up(copy, copy.data_dir.with_suffix(".dbb"), clock)
    more = replace(inspect(backup), rows=again.rows | {"users": 1})
    found = {finding.about: finding for finding in compare(backup, more, copy.data_dir.with_suffix(".dbb"), again)}
    assert "1 by its list of contents, 0 in it, 0 restored" in found["users"].sentence


def test_a_damaged_backup_ends_the_drill_with_a_sentence(backup: Path, tmp_path: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[len(content) // 2] ^= 1
    backup.write_bytes(content)
    with pytest.raises(Failure, match=r"is damaged: .* is not as it was written; make another backup"):
        asyncio.run(drill(backup, node=tmp_path / "no-node"))


def test_a_drill_writes_into_no_directory_with_something_in_it(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    with pytest.raises(BadInput, match="is not empty; give --keep a directory that is empty"):
        asyncio.run(drill(backup, node=tmp_path / "no-node", keep=tmp_path / "kept"))


def test_every_table_is_known_to_reach_out_or_not(copy: Settings) -> None:
    tables = dump.REACHING_OUT | dump.NOT_KEPT | INWARD
    assert metadata.tables.keys() | {"alembic_version"} == tables, "does the new table make a hub call somebody?"
    run(copy, "INSERT INTO upstreams VALUES ('a', 'b:1', 'c', '[]', 0)")
    dump.silence_receivers(copy.url_of_ledger)
    with create_engine(copy.url_of_ledger).connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM upstreams")) == 0
        assert connection.scalar(text("SELECT count(*) FROM sites")) == 1


def run(chosen: Settings, statement: str) -> None:
    with create_engine(chosen.url_of_ledger).begin() as connection:
        connection.execute(text(statement))


def test_a_report_without_findings_is_not_good() -> None:
    empty = Report("b", "hub", "now", 0.0, ())
    assert not empty.good
    assert json.loads(json.dumps(empty.as_json()))["good"] is False
    assert replace(empty, findings=(Finding("a", good=True, sentence="s"),)).good


DAMAGES = [
    ("DELETE FROM subscriptions WHERE id = 1", "sites", "2 in it, 1 restored"),
    ("UPDATE sites SET organisation = 'other'", "sites", "1 rows, and not all are as in the backup"),
    ("DELETE FROM credentials", "credentials", "1 in it, 0 restored"),
    ("DELETE FROM latency_minutes", "latency history", "1 in it, 0 restored"),
    ("UPDATE plans SET version = version + 1", "plans", "1 rows, and not all are as in the backup"),
    ("UPDATE resends SET site = 'x'", "rest of the ledger", "not all are as in the backup"),
    ("file node/tls/ca.key", "certificate authority", "node/tls/ca.key is not as in the backup"),
    ("file node/log/NGRID/sequence", "epochs and sequences", "node/log/NGRID/sequence is not as in the backup"),
]
INWARD = {
    *("wis2_days", "wis2_holes", "wis2_notices", "wis2_outgoing", "wis2_places"),
    *("access_requests", "access_tokens", "alarms", "answers", "audit", "batches", "circuit_ports", "credentials"),
    *(
        "exceptions",
        "faults",
        "feed_seconds",
        "feeds",
        "latency_minutes",
        "latency_sheets",
        "leg_counters",
        "legs",
        "heads",
    ),
    *("login_links", "login_sessions", "objectives", "pins", "plans", "resends", "settled", "silences", "sites"),
    *("measurements", "probe_ceilings", "probe_seconds", "probes", "test_points", "topology_elements"),
    *("relay_log", "relay_sites", "relays", "sibling_exchanges", "sibling_savings", "site_ways"),
    *("egress_quarters", "subscriptions", "tcp_profiles", "tokens", "traffic_hours", "traffic_minutes", "users"),
}
"""Tables of the hub's knowledge that cause no outgoing calls."""
