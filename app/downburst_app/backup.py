"""Backups in one file: the ledger, the hub's certificate authority, epochs and sequences.

These can't be recreated. The file is a gzipped tar: `manifest.json` first, then `ledger/TABLE.jsonl`, then `node/...`
as in the data directory. It has no product bytes; sites fetch missing products from the hub's log while that exists.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from downburst.foundation.clock import Clock
from downburst.foundation.errors import BadInput, Failure, NotWritable
from downburst.ledger.storage.dump import Dump, check_revision, fill, look
from downburst.settings.hub import Settings


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup."""

    hub: str
    made_at: str
    software: str
    revision: str
    """Schema of the ledger."""
    rows: dict[str, int]
    """Rows by table, in an order in which each table follows those that it refers to."""
    counters: dict[str, int]
    feeds: list[str]
    """Feeds with their epoch and sequences in the backup, by the names of their directories."""
    sha256: dict[str, str]
    """SHA-256 of every other file in the backup."""
    format: int = 1


def back_up(settings: Settings, target: Path, clock: Clock) -> Manifest:
    """Writes a backup of a hub, running or not; the file gets its name when it is complete."""
    if not (settings.node_dir / "tls" / "ca.key").is_file():
        raise BadInput(f"there is no hub in {settings.data_dir}; name its directory with --data-dir")
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with _private(aside) as file:
            manifest = _write(file, settings, clock.now())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
    except OSError as error:
        raise NotWritable(f"the backup {target} can't be written: {error.strerror}; choose another place") from error
    finally:
        aside.unlink(missing_ok=True)
    return manifest


def inspect(source: Path) -> Manifest:
    """Contents of a backup, after a check of every byte."""
    with _open(source) as archive:
        manifest = _manifest(archive, source)
        for _ in _members(archive, manifest, source):
            pass
    check_revision(manifest.revision)
    return manifest


def rows(source: Path, tables: Container[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Table and values of each row of a backup, or of some of its tables; every byte is checked while reading."""
    with _open(source) as archive:
        manifest = _manifest(archive, source)
        for name, content in _members(archive, manifest, source):
            folder, table = PurePosixPath(name).parts[0], PurePosixPath(name).stem
            if folder == "ledger" and (tables is None or table in tables):
                yield from ((table, row) for row in _rows(content))


def restore(settings: Settings, source: Path, *, migrated: bool = True) -> Manifest:
    """Creates a hub from a backup in an empty place: same authority and credentials, sequences above all assigned.

    Without `migrated` the ledger keeps the backup's schema until a hub starts on it.
    """
    manifest = inspect(source)
    if settings.data_dir.exists() and any(settings.data_dir.iterdir()):
        raise BadInput(
            f"the data directory {settings.data_dir} is not empty; a restore never writes over a hub: move it away, "
            "or name another directory with --data-dir"
        )
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _open(source) as archive:
            _manifest(archive, source)
            _restore(settings, manifest, _members(archive, manifest, source), migrated=migrated)
    except OSError as error:
        raise NotWritable(f"{settings.data_dir} can't be written: {error.strerror}; correct its rights") from error
    return manifest


def _write(file: IO[bytes], settings: Settings, made_at: datetime) -> Manifest:
    engine, connection = look(settings.url_of_ledger)
    try:
        with ExitStack() as stack:
            dump = Dump(connection)
            parts: dict[str, IO[bytes]] = {}
            rows = {}
            for table in dump.tables:
                content = stack.enter_context(SpooledTemporaryFile(SPOOL_BYTES))
                rows[table] = _write_rows(content, dump.rows(table))
                parts[f"ledger/{table}.jsonl"] = content
            # After the ledger: the sequences of each feed in it are here.
            for path in _node_files(settings.node_dir):
                parts[f"node/{path.relative_to(settings.node_dir).as_posix()}"] = io.BytesIO(path.read_bytes())
            manifest = Manifest(
                hub=settings.name,
                made_at=made_at.isoformat(),
                software=version("downburst"),
                revision=dump.revision,
                rows=rows,
                counters=dump.counters(),
                feeds=sorted(path.parent.name for path in settings.node_dir.glob("log/*/identity")),
                sha256={name: _sha256(content) for name, content in parts.items()},
            )
            head = io.BytesIO(json.dumps(asdict(manifest), indent=1).encode())
            _pack(file, {"manifest.json": head, **parts}, made_at)
            return manifest
    finally:
        connection.close()
        engine.dispose()


def _write_rows(content: IO[bytes], rows: Iterator[Mapping[str, Any]]) -> int:
    count = 0
    for row in rows:
        count += 1
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_bytes_as_json)
        content.write(text.encode() + b"\n")
    return count


def _bytes_as_json(value: object) -> object:
    if isinstance(value, bytes | memoryview):
        return {BYTES_KEY: base64.b64encode(value).decode()}
    raise TypeError(f"the ledger holds a {type(value).__name__}, which a backup can't keep")


def _sha256(content: IO[bytes]) -> str:
    content.seek(0)
    hashed = hashlib.sha256()
    while chunk := content.read(CHUNK_BYTES):
        hashed.update(chunk)
    return hashed.hexdigest()


def _node_files(node: Path) -> Iterator[Path]:
    """The files of the node's directory that must survive; logs and receipts are excluded."""
    for pattern in NODE_FILES:
        yield from (path for path in sorted(node.glob(pattern)) if path.is_file())


def _pack(file: IO[bytes], parts: Mapping[str, IO[bytes]], made_at: datetime) -> None:
    with (
        gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = content.seek(0, os.SEEK_END)
            entry.mode, entry.mtime = 0o600, int(made_at.timestamp())
            content.seek(0)
            archive.addfile(entry, content)


def _private(path: Path) -> IO[bytes]:
    """Readable only by its owner: it has the authority's key and the credentials' hashes."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _open(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, mode="r:gz")
    except (OSError, tarfile.TarError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a backup"
        raise BadInput(f"{source} can't be read: {reason}; name a file that `downburst backup` wrote") from error


def _manifest(archive: tarfile.TarFile, source: Path) -> Manifest:
    try:
        entry = archive.next()
        content = archive.extractfile(entry) if entry is not None and entry.name == "manifest.json" else None
        if content is None:
            raise BadInput(f"{source} is not the backup of a hub; name a file that `downburst backup` wrote")
        values = json.loads(content.read())
        if values["format"] != 1:
            raise BadInput(f"{source} was written by a newer Downburst (format {values['format']}); use that version")
        return Manifest(**values)
    except (ValueError, KeyError, TypeError, tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(source, "its list of contents") from error


def _members(archive: tarfile.TarFile, manifest: Manifest, source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Every file but the manifest, checked against it; each is closed when the next is requested."""
    seen = set()
    try:
        while entry := archive.next():
            with SpooledTemporaryFile(SPOOL_BYTES) as found:
                shutil.copyfileobj(archive.extractfile(entry) or io.BytesIO(), found)
                if manifest.sha256.get(entry.name) != _sha256(found) or not _is_inside(entry.name):
                    raise _damaged(source, entry.name)
                found.seek(0)
                seen.add(entry.name)
                yield entry.name, found
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(source, "its end") from error
    if missing := sorted(set(manifest.sha256) - seen):
        raise _damaged(source, missing[0])


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return parts[:1] in {("ledger",), ("node",)} and ".." not in parts


def _damaged(source: Path, what: str) -> Failure:
    return Failure(f"the backup {source} is damaged: {what} is not as it was written; make another backup")


def _restore(
    settings: Settings, manifest: Manifest, members: Iterator[tuple[str, IO[bytes]]], *, migrated: bool
) -> None:
    """Tables first, in the order of the archive, then the node's files."""
    counted = len(manifest.rows)
    tables = ((PurePosixPath(name).stem, _rows(content)) for name, content in islice(members, counted))
    fill(settings.url_of_ledger, manifest.revision, tables, manifest.counters, migrated=migrated)
    for name, content in members:
        path = settings.node_dir / PurePosixPath(name).relative_to("node")
        path.parent.mkdir(parents=True, exist_ok=True)
        with _private(path) as file:
            shutil.copyfileobj(content, file)
    for feed in manifest.feeds:
        # The log continues far above any sequence that it can have assigned since the backup was made.
        (settings.node_dir / "log" / feed / "restored").touch()


def _rows(content: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in content:
        row = json.loads(line)
        yield {name: _value(value) for name, value in row.items()}


def _value(value: object) -> object:
    if isinstance(value, dict) and value.keys() == {BYTES_KEY}:
        return base64.b64decode(value[BYTES_KEY])
    return value


NODE_FILES = (
    "tls/*",
    "log/*/identity",
    "log/*/sequence",
    "upstreams/**/identity.json",
    "upstreams/**/positions/*",
)
BYTES_KEY = "base64"
SPOOL_BYTES = 16 << 20
CHUNK_BYTES = 1 << 20
