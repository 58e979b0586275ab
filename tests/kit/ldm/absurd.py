"""Messages of LDM-6 in valid XDR with impossible content, from a generator of random numbers."""

import hashlib
import random
import struct
import time

from kit.ldm.wire import (
    BLKDATA,
    COMINGSOON,
    FEEDME,
    HEREIS,
    HIYA,
    IDS,
    IS_ALIVE,
    NGRID,
    NOTIFICATION,
    NOTIFYME,
    NULLPROC,
    PROGRAM,
)

EXTREMES = (0, 1, 999_999, 1_000_000, 2**31 - 1, 2**31, 2**32 - 1)
TEXTS = (b"", b"\0", b"\xff", b"/../", b"\x1b[31m", b"%s%n", b"a" * 255, b"rtstats-x", b"b" * 300)


def message(rng: random.Random) -> bytes:
    """A call of any kind, without its record's mark."""
    procedure = rng.choice(
        (HEREIS, HEREIS, COMINGSOON, BLKDATA, NOTIFICATION, HIYA, FEEDME, NOTIFYME, IS_ALIVE, NULLPROC, 77)
    )
    version = rng.choice((6, 6, 6, 5, 7, 2**32 - 1))
    head = struct.pack(">10I", word(rng), 0, 2, PROGRAM, version, procedure, 0, 0, 0, 0)
    if procedure in (HEREIS, COMINGSOON, NOTIFICATION):
        return head + described(rng) + bytes(rng.randrange(3_000))
    if procedure == BLKDATA:
        return head + bytes(16) + struct.pack(">II", word(rng), word(rng)) + bytes(rng.randrange(3_000))
    if procedure in (HIYA, FEEDME, NOTIFYME):
        return head + klass(rng) + struct.pack(">I", word(rng))
    return head + struct.pack(">I", word(rng))


def described(rng: random.Random) -> bytes:
    """The description of a product; half of its values are valid."""
    sound = rng.random() < 0.5
    return description(
        seconds=int(time.time()) if sound else signed(rng),
        micros=5 if sound else signed(rng),
        origin=rng.choice(TEXTS)[:80],
        feed=rng.choice((NGRID, IDS, word(rng))),
        sequence=word(rng),
        ident=rng.choice(TEXTS),
        size=rng.choice((0, 64, word(rng))),
    )


def description(
    *,
    seconds: int | None = None,
    micros: int = 0,
    origin: bytes = b"host",
    feed: int = NGRID,
    sequence: int = 1,
    ident: bytes = b"id",
    size: int = 64,
) -> bytes:
    """A description in XDR; its creation time is the current one unless given."""
    stamp = struct.pack(">ii", int(time.time()) if seconds is None else seconds, micros)
    rest = text(origin) + struct.pack(">II", feed, sequence) + text(ident) + struct.pack(">I", size)
    return stamp + hashlib.md5(stamp + rest, usedforsecurity=False).digest() + rest


def klass(rng: random.Random) -> bytes:
    """A class with up to 36 specs, four more than the protocol has."""
    specs = rng.randrange(37)
    begin = struct.pack(">iiiiI", signed(rng), signed(rng), signed(rng), signed(rng), specs)
    return begin + b"".join(struct.pack(">I", word(rng)) + text(rng.choice(TEXTS)) for _ in range(specs))


def word(rng: random.Random) -> int:
    """32 bits."""
    return rng.choice(EXTREMES) if rng.random() < 0.75 else rng.getrandbits(32)


def signed(rng: random.Random) -> int:
    """32 bits with a sign."""
    value = word(rng)
    return value - 2**32 if value >= 2**31 else value


def text(content: bytes) -> bytes:
    """A string of XDR."""
    return struct.pack(">I", len(content)) + content + bytes(-len(content) % 4)
