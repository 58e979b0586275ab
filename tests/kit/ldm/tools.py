"""LDM's own `notifyme` and `feedme` (6.14.5), as a server sees them.

Both speak version 5 alone. `notifyme` answers each NOTIFICATION with OK and then, under the same number, with
PROC_UNAVAIL. `feedme` knows HIYA, COMINGSOON and BLKDATA; it answers everything else, HEREIS too, with PROC_UNAVAIL.
"""

import struct
from dataclasses import dataclass, field, replace

from kit.ldm.wire import (
    BLKDATA,
    COMINGSOON,
    FEEDME,
    HIYA,
    NOTIFICATION,
    NOTIFYME,
    NULLPROC,
    OK,
    Product,
    Wire,
    decoded,
    klass,
)


@dataclass
class OldTool:
    """One of the two tools, and its received data."""

    wire: Wire
    got: list[Product] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    """Procedures that were called and that the tool does not know."""
    _coming: Product | None = None
    _content: bytearray = field(default_factory=bytearray)

    def notify_me(self, *specs: tuple[int, str], from_s: int = 0) -> int:
        """Requests descriptions; returns the code of the answer."""
        return self._ask(NOTIFYME, klass(specs, from_s=from_s))

    def feed_me(self, *specs: tuple[int, str], from_s: int = 0) -> int:
        """Requests products; returns the code of the answer."""
        return self._ask(FEEDME, klass(specs, from_s=from_s))

    def take(self, count: int) -> list[Product]:
        """Runs until it has `count` products or descriptions, or the connection ends."""
        while len(self.got) < count and (record := self.wire.record()):
            xid, (version, procedure) = struct.unpack(">I", record[:4])[0], struct.unpack(">II", record[16:24])
            assert version == VERSION, f"the tool is called in version {version}"
            self._called(xid, procedure, record[40:])
        return self.got

    def _ask(self, procedure: int, body: bytes) -> int:
        answer = self.wire.reply(self.wire.call(procedure, body, version=VERSION))
        return int(struct.unpack(">I", answer[:4])[0])

    def _called(self, xid: int, procedure: int, body: bytes) -> None:
        raise NotImplementedError

    def _done(self, xid: int) -> None:
        self.wire.answer(xid, struct.pack(">I", OK))

    def _unavailable(self, xid: int) -> None:
        self.wire.send(struct.pack(">6I", xid, 1, 0, 0, 0, PROC_UNAVAIL))


class Notifyme(OldTool):
    """`notifyme`."""

    def _called(self, xid: int, procedure: int, body: bytes) -> None:
        if procedure == NULLPROC:
            self.wire.answer(xid)
            return
        if procedure == NOTIFICATION:
            self.got.append(decoded(body)[0])
            self._done(xid)
        else:
            self.unknown.append(procedure)
        self._unavailable(xid)


class Feedme(OldTool):
    """`feedme`."""

    def _called(self, xid: int, procedure: int, body: bytes) -> None:
        if procedure == NULLPROC:
            self.wire.answer(xid)
        elif procedure == HIYA:
            self._done(xid)
        elif procedure == COMINGSOON:
            self._coming, self._content = decoded(body)[0], bytearray()
            self._done(xid)
        elif procedure == BLKDATA:
            self._block(body)
            self._done(xid)
        else:
            self.unknown.append(procedure)
            self._unavailable(xid)

    def _block(self, body: bytes) -> None:
        coming = self._coming
        assert coming is not None, "a block of nothing"
        assert body[:16] == coming.signature, "a block of another product"
        (length,) = struct.unpack(">I", body[20:24])
        assert length <= BLOCK_BYTES
        self._content += body[24 : 24 + length]
        if len(self._content) == coming.size:
            self.got.append(replace(coming, content=bytes(self._content)))


VERSION = 5
PROC_UNAVAIL = 3
BLOCK_BYTES = 16_384
