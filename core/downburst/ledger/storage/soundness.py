"""Checks whether a ledger's file is as it was last written.

SQLite has checksums in its write-ahead log only. So a hub leaves the hash of its ledger beside it when it stops, and
a start compares them. After a crash, a start compares the log with the index that the crash left, and has SQLite
check the pages.
"""

import hashlib
import json
import sqlite3
import struct
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from downburst.foundation.errors import Failure


def examine(ledger: Path, *, is_expected: bool) -> list[str]:
    """Checks a ledger before it is opened: refuses an unusable one, and returns warnings for the operator.

    `is_expected`: a hub worked here before, so a missing ledger is not a new one.
    """
    if not ledger.exists() or ledger.stat().st_size == 0:
        if is_expected:
            missing = "missing" if not ledger.exists() else "empty"
            raise Failure(
                f"the ledger {ledger} is {missing}, but a hub has run here before; {RESTORE}: without it no "
                "sites and no feeds are known"
            )
        return []
    sealed, seal = _read(seal_of(ledger)), None
    if sealed is not None and not _wal(ledger).exists():
        seal = _seal(ledger)
        if seal == sealed:
            return []
    lost = _lost_transactions(ledger)
    _look_through(ledger, EXAMINE_S)
    if seal is not None:
        lost.append(
            f"the ledger {ledger} differs from the state in which the hub stopped ({seal_of(ledger)} has "
            "another hash); "
            f"its pages can be read: a value may have changed; unless the change was deliberate, {RESTORE}"
        )
    return lost


def seal(ledger: Path) -> None:
    """Stores the hash of a ledger that is no longer open."""
    if not ledger.exists() or _wal(ledger).exists() or ledger.stat().st_size > LARGEST_SEALED_BYTES:
        return
    aside = ledger.with_name(f"{seal_of(ledger).name}.tmp")
    with suppress(OSError):
        aside.write_text(json.dumps(_seal(ledger)))
        aside.replace(seal_of(ledger))


def break_seal(ledger: Path) -> None:
    """Removes the hash before the ledger is written to: it would be out of date."""
    with suppress(OSError):
        seal_of(ledger).unlink(missing_ok=True)


def seal_of(ledger: Path) -> Path:
    """The path of the hash."""
    return ledger.with_name(f"{ledger.name}.seal")


def flaw(ledger: Path) -> str | None:
    """The problem that SQLite finds when it checks a ledger in use; None if there is none."""
    try:
        _look_through(ledger, None)
    except Failure as failure:
        return failure.sentence
    return None


def damaged(where: str, reason: str) -> Failure:
    """The error about a ledger with unreadable pages."""
    return Failure(f"{where} is damaged ({reason}); {RESTORE}")


def _seal(ledger: Path) -> dict[str, str]:
    with ledger.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        # Any other content is not the ledger's hash.
        return {}


def _look_through(ledger: Path, seconds: float | None) -> None:
    """Has SQLite check all pages; a check that takes longer than so many seconds is left to the scrub."""
    give_up = None if seconds is None else time.monotonic() + seconds
    with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=rw", uri=True, timeout=5.0)) as connection:
        if give_up is not None:
            connection.set_progress_handler(lambda: int(time.monotonic() > give_up), 100_000)
        try:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.OperationalError:
            # Interrupted, or held by another process: opening it will report that.
            return
        except sqlite3.DatabaseError as error:
            raise damaged(f"the ledger {ledger}", str(error)) from error
    if found != "ok":
        raise damaged(f"the ledger {ledger}", " ".join(str(found).split())[:LONGEST_REASON])


def _lost_transactions(ledger: Path) -> list[str]:
    """Compares the log with the index that a crash left: the index holds the number of committed frames."""
    committed, copied, salt = _committed(ledger.with_name(f"{ledger.name}-shm"))
    wal = _wal(ledger)
    if wal.exists() and wal.stat().st_size >= WAL_HEADER_BYTES:
        with wal.open("rb") as file:
            header = file.read(WAL_HEADER_BYTES)
        if header[16:24] != salt and _is_header(header):
            # From another round than the index: a power cut may leave that.
            return []
    found = _frames(ledger) if committed > copied else committed
    if max(found, copied) >= committed:
        return []
    return [
        f"{committed - max(found, copied)} of {committed} pages in {wal} are lost, and with them what was changed "
        f"in the ledger shortly before the hub ended; see the audit for the missing changes, or {RESTORE}"
    ]


def _committed(index: Path) -> tuple[int, int, bytes]:
    """Committed frames, the number of them copied into the ledger, and the salt of the log.

    The layout is that of SQLite's walformat document: two copies of a header of 48 bytes, then the checkpoint info.
    """
    try:
        with index.open("rb") as file:
            content = file.read(SHM_HEADER_BYTES)
    except OSError:
        return 0, 0, b""
    first, second = content[:48], content[48:96]
    if len(content) < SHM_HEADER_BYTES or first != second or not first[12]:
        return 0, 0, b""
    committed, copied = struct.unpack_from("=I", first, 16)[0], struct.unpack_from("=I", content, 96)[0]
    return committed, copied, first[32:40]


def _is_header(header: bytes) -> bool:
    return header[:4] in (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")


def _frames(ledger: Path) -> int:
    """The frames of the log that SQLite itself accepts as valid; copies them into the ledger."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=rw", uri=True, timeout=5.0)) as connection:
            _, found, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.DatabaseError:
        # The check of the pages will report the reason.
        return 0
    return max(int(found), 0)


def _wal(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}-wal")


RESTORE = "restore the last backup into an empty data directory: downburst restore"
EXAMINE_S = 15.0
"""Limit on this check at a start: enough for some gigabytes."""
LARGEST_SEALED_BYTES = 4 << 30
"""Hashing it takes some seconds, at a stop and at a start."""
LONGEST_REASON = 200
WAL_HEADER_BYTES = 32
SHM_HEADER_BYTES = 136
