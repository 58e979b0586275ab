"""Compares a restored hub with its backup: every row of the ledger, every file of the node.

The restored hub is backed up once more, and the two backups are compared by their rows, whatever their order: one may
come from PostgreSQL and the other from SQLite.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downburst_app.backup import Manifest, rows
from downburst_app.drill.report import Finding


@dataclass(slots=True)
class _Sum:
    """Count of a table's rows, and a digest that does not depend on their order."""

    count: int = 0
    digest: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Counts a row."""
        # One database has booleans, the other 0 and 1.
        plain = {name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
        text = json.dumps(plain, sort_keys=True, default=_hex)
        self.count += 1
        self.digest = (self.digest + int.from_bytes(hashlib.sha256(text.encode()).digest())) % (1 << 256)


def compare(backup: Path, manifest: Manifest, again: Path, restored: Manifest) -> Iterator[Finding]:
    """Compares the backup with the restored hub, through its own backup `again`."""
    wanted, found = _sums(backup), _sums(again)
    rest = set(manifest.rows)
    for about, tables in NOUNS.items():
        rest -= set(tables)
        yield _tables(about, tables, manifest, wanted, found)
    yield _tables("rest of the ledger", sorted(rest), manifest, wanted, found)
    yield _same("counters of the ledger", manifest.counters, restored.counters)
    for about, folder in FILES.items():
        of_backup, of_copy = (_below(one.sha256, folder) for one in (manifest, restored))
        yield _same(about, of_backup, of_copy)


def _sums(backup: Path) -> Mapping[str, _Sum]:
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for table, row in rows(backup):
        sums[table].add(row)
    return sums


def _tables(
    about: str,
    tables: "list[str] | tuple[str, ...]",
    manifest: Manifest,
    wanted: Mapping[str, _Sum],
    found: Mapping[str, _Sum],
) -> Finding:
    tables = [table for table in tables if table in manifest.rows]
    for table in tables:
        there, here = wanted.get(table, _Sum()), found.get(table, _Sum())
        if manifest.rows[table] != there.count or there.count != here.count:
            counted = f"{manifest.rows[table]} by its list of contents, {there.count} in it, {here.count} restored"
            return Finding(about, good=False, sentence=f"{table}: the backup has {counted} rows")
        if there.digest != here.digest:
            return Finding(
                about, good=False, sentence=f"{table}: {here.count} rows, and not all are as in the backup"
            )
    counted = ", ".join(f"{found.get(table, _Sum()).count} {table}" for table in tables)
    return Finding(about, good=True, sentence=f"equal to the backup: {counted or 'no such table'}")


def _same(about: str, wanted: Mapping[str, object], found: Mapping[str, object]) -> Finding:
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if differing:
        return Finding(about, good=False, sentence=f"{differing[0]} is not as in the backup")
    return Finding(about, good=True, sentence=f"equal to the backup: {len(wanted)}")


def _below(files: Mapping[str, str], folder: str) -> Mapping[str, str]:
    return {name: digest for name, digest in files.items() if name.startswith(folder)}


def _hex(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"a backup holds a {type(value).__name__}, which can't be compared")


NOUNS = {
    "users": ("users", "access_tokens", "access_requests"),
    "sites": ("sites", "subscriptions"),
    "credentials": ("credentials", "tokens"),
    "feeds": ("feeds", "objectives", "heads", "settled"),
    "plans": ("plans", "pins", "legs", "leg_counters"),
    "latency history": ("latency_minutes", "latency_sheets"),
}
FILES = {
    "certificate authority": "node/tls/",
    "epochs and sequences": "node/log/",
    "positions at other hubs": "node/upstreams/",
}
