"""An export of transfers that others may see: no addresses and no names, only a keyed hash of each peer.

The same peer has the same hash under one key, so sessions can still be formed. Without the key no reader can find a
name by hashing candidates (HMAC-SHA256, RFC 2104).
"""

import csv
import hmac
import math
import secrets
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Transfer
from downburst_analyze.transfers.conditions import COLUMNS, Conditions


def hashed(peer: str, key: bytes) -> str:
    """Sixteen digits that stand for a peer."""
    return hmac.digest(key, peer.encode(), "sha256").hex()[:HASH_DIGITS]


def key_of(path: Path | None) -> bytes:
    """The key in a file, or a random one for this export alone."""
    if path is None:
        return secrets.token_bytes(LEAST_KEY_BYTES)
    try:
        with path.open("rb") as file:
            key = file.read(MOST_KEY_BYTES)
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); check the file and its rights") from error
    if len(key.strip()) < LEAST_KEY_BYTES:
        raise BadInput(f"{path} has a key of under {LEAST_KEY_BYTES} bytes, which can be guessed; give a longer one")
    return key.strip()


def exported(transfers: Iterable[Transfer], known: Conditions, key: bytes) -> Iterator[str]:
    """The lines of a CSV log of transfers, header first, which `downburst analyze` reads."""
    columns = [(column, known[name]) for column, name in COLUMNS.items() if name in known]
    yield _line(["start_us", "duration_us", "size_bytes", "peer", *(column for column, _ in columns)])
    for place, one in enumerate(transfers):
        conditions = ("" if math.isnan(values[place]) else f"{values[place]:g}" for _, values in columns)
        yield _line([one.start_us, round(one.duration_s * 1e6), one.size_bytes, hashed(one.peer, key), *conditions])


def _line(cells: Iterable[object]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


HASH_DIGITS = 16
LEAST_KEY_BYTES, MOST_KEY_BYTES = 32, 4_096
