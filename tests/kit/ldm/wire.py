"""LDM-6 of an independent peer, from its specification: XDR, records, both roles. It shares no code with ours."""

import hashlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Self

PROGRAM = 300_029
NULLPROC, HEREIS, FEEDME, HIYA, NOTIFICATION, NOTIFYME, COMINGSOON, BLKDATA, IS_ALIVE = 0, 1, 4, 5, 8, 9, 12, 13, 14
OK, BADPATTERN, DONT_SEND, RECLASS = 0, 2, 3, 7
ANY, IDS, NGRID, EXP = 0xFFFF_FFFF, 0x8, 1 << 23, 1 << 30
PRIMARY, ALTERNATE = 0xFFFF_FFFF, 0


@dataclass(frozen=True)
class Product:
    """A product as LDM describes it, with its bytes if they are known."""

    ident: str
    """Bytes that are no UTF-8 are in it as Python has them in names of files."""
    content: bytes | None = None
    feed: int = NGRID
    created_us: int = 0
    origin: str = "source.test"
    sequence: int = 0
    size: int = -1
    signature: bytes = b""

    @classmethod
    def of(cls, ident: str, content: bytes, **fields: int | str | bytes) -> Self:
        """A product created now, whose signature is the MD5 of its bytes."""
        values: dict[str, object] = {
            "created_us": time.time_ns() // 1000,
            "size": len(content),
            "signature": hashlib.md5(content, usedforsecurity=False).digest(),
        }
        return cls(ident, content, **{**values, **fields})  # type: ignore[arg-type]

    def encoded(self) -> bytes:
        """Its description in XDR."""
        stamp = struct.pack(">ii", *divmod(self.created_us, 1_000_000))
        rest = struct.pack(">II", self.feed, self.sequence)
        return stamp + self.signature + _text(self.origin) + rest + _text(self.ident) + struct.pack(">I", self.size)


def decoded(body: bytes) -> tuple[Product, bytes]:
    """A description, and the bytes behind it."""
    seconds, micros = struct.unpack(">ii", body[:8])
    signature, body = body[8:24], body[24:]
    origin, body = _take_text(body)
    feed, sequence = struct.unpack(">II", body[:8])
    ident, body = _take_text(body[8:])
    (size,) = struct.unpack(">I", body[:4])
    created_us = seconds * 1_000_000 + micros
    return Product(
        ident.decode(errors="surrogateescape"), None, feed, created_us, origin.decode(), sequence, size, signature
    ), body[4:]


def klass(specs: Sequence[tuple[int, str]], *, from_s: int = 0, resume: bytes | None = None) -> bytes:
    """A class of products."""
    all_specs = [*specs, *([(0, f"SIG={resume.hex()}")] if resume else [])]
    body = struct.pack(">iiiiI", from_s, 0, 2**31 - 1, 999_999, len(all_specs))
    return body + b"".join(struct.pack(">I", feed) + _text(pattern) for feed, pattern in all_specs)


def take_class(body: bytes) -> tuple[list[tuple[int, str]], bytes | None, bytes]:
    """The specs of a class, the signature from which it resumes, and the bytes behind it."""
    (count,) = struct.unpack(">I", body[16:20])
    body = body[20:]
    specs: list[tuple[int, str]] = []
    resume = None
    for _ in range(count):
        (feed,) = struct.unpack(">I", body[:4])
        pattern, body = _take_text(body[4:])
        if feed == 0 and pattern.startswith(b"SIG="):
            resume = bytes.fromhex(pattern[4:].decode())
        else:
            specs.append((feed, pattern.decode()))
    return specs, resume, body


class Wire:
    """Records and calls over a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.xid = 100

    def call(self, procedure: int, body: bytes = b"", *, version: int = 6, program: int = PROGRAM) -> int:
        """Sends a call; returns its number."""
        self.xid += 1
        self.send(struct.pack(">10I", self.xid, 0, 2, program, version, procedure, 0, 0, 0, 0) + body)
        return self.xid

    def answer(self, xid: int, body: bytes = b"") -> None:
        """Answers a call."""
        self.send(struct.pack(">6I", xid, 1, 0, 0, 0, 0) + body)

    def send(self, record: bytes) -> None:
        """Sends a record of one fragment."""
        self.connection.sendall(struct.pack(">I", 0x8000_0000 | len(record)) + record)

    def record(self) -> bytes:
        """The next record, of any fragments; empty at the end of the connection."""
        record, is_last = b"", False
        while not is_last:
            mark = self._exactly(4)
            if not mark:
                return b""
            (word,) = struct.unpack(">I", mark)
            is_last = bool(word >> 31)
            record += self._exactly(word & 0x7FFF_FFFF)
        return record

    def reply(self, xid: int) -> bytes:
        """The body of the answer to a call, behind its head; any refusal of the call itself fails."""
        record = self.record()
        head = struct.unpack(">6I", record[:24])
        assert head == (xid, 1, 0, 0, 0, 0), head
        return record[24:]

    def is_quiet(self, seconds: float) -> bool:
        """True if nothing arrives for this time."""
        return not select.select([self.connection], [], [], seconds)[0]

    def _exactly(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = self.connection.recv(min(length - len(parts), 1 << 20))
            if not part:
                return b""
            parts += part
        return bytes(parts)


@contextmanager
def connected(address: str) -> Iterator[Wire]:
    """A connection to `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=30) as connection:
        yield Wire(connection)


@dataclass
class Asked:
    """An LDM downstream of one connection, and its received data."""

    wire: Wire
    got: list[Product] = field(default_factory=list)
    nulls: int = 0

    def feed_me(
        self, *specs: tuple[int, str], mode: int = PRIMARY, resume: bytes | None = None, from_s: int = 0
    ) -> tuple[int, bytes]:
        """Requests products; returns the code and the bytes behind it."""
        return self._ask(FEEDME, klass(specs, from_s=from_s, resume=resume) + struct.pack(">I", mode))

    def notify_me(self, *specs: tuple[int, str]) -> tuple[int, bytes]:
        """Requests descriptions."""
        return self._ask(NOTIFYME, klass(specs))

    def _ask(self, procedure: int, body: bytes) -> tuple[int, bytes]:
        answer = self.wire.reply(self.wire.call(procedure, body))
        return struct.unpack(">I", answer[:4])[0], answer[4:]

    def take(self, count: int, wants: Callable[[Product], bool] = lambda _: True) -> list[Product]:
        """Runs until it has `count` products or descriptions, or the connection ends."""
        offered: Product | None = None
        while len(self.got) < count:
            record = self.wire.record()
            if not record:
                break
            (xid,), (procedure,) = struct.unpack(">I", record[:4]), struct.unpack(">I", record[20:24])
            body = record[40:]
            if procedure == NULLPROC:
                self.nulls += 1
                self.wire.answer(xid)
            elif procedure == HEREIS:
                described, content = decoded(body)
                self._got(described, content)
            elif procedure == NOTIFICATION:
                self.got.append(decoded(body)[0])
            elif procedure == COMINGSOON:
                offered, _ = decoded(body)
                self.wire.answer(xid, struct.pack(">I", OK if wants(offered) else DONT_SEND))
            elif procedure == BLKDATA:
                assert offered is not None
                assert body[:16] == offered.signature
                assert struct.unpack(">II", body[16:24]) == (0, offered.size)
                self._got(offered, body[24:])
            else:
                raise AssertionError(f"the server calls procedure {procedure}")
        return self.got

    def _got(self, described: Product, content: bytes) -> None:
        padding = -described.size % 4
        assert len(content) == described.size + padding, "as long as it was described"
        self.got.append(replace(described, content=content[: described.size]))


class Serving:
    """An LDM upstream with a queue of products; each connection begins behind its SIG=, or at the beginning."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.queue: list[Product] = []
        self.requests: list[tuple[list[tuple[int, str]], bytes | None, int]] = []
        """Per connection: the requested specs, the signature from which it resumes, and the mode."""
        self.declined = 0
        self.reply: Callable[[Wire, int, bytes], bool] | None = None
        """Answers a FEEDME in another way; True if the connection goes on as usual."""
        self._connections: list[socket.socket] = []
        self._changed = threading.Condition()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        port = self._listener.getsockname()[1]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def put(self, *products: Product) -> None:
        """Adds products to the queue."""
        with self._changed:
            self.queue.extend(products)
            self._changed.notify_all()

    def cut(self) -> None:
        """Ends every connection; those that come later are served."""
        while self._connections:
            _shut(self._connections.pop())

    def close(self) -> None:
        """Ends everything; the address no longer answers."""
        _shut(self._listener)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._talk(Wire(connection))

    def _talk(self, wire: Wire) -> None:
        record = wire.record()
        if not record:
            return
        (xid,), (procedure,) = struct.unpack(">I", record[:4]), struct.unpack(">I", record[20:24])
        if procedure != FEEDME:
            return
        specs, resume, rest = take_class(record[40:])
        (mode,) = struct.unpack(">I", rest)
        self.requests.append((specs, resume, mode))
        if self.reply is not None and not self.reply(wire, xid, record[40:]):
            return
        if self.reply is None:
            wire.answer(xid, struct.pack(">II", OK, 4711))
        self._send(wire, resume, mode)

    def _send(self, wire: Wire, resume: bytes | None, mode: int) -> None:
        behind = [at + 1 for at, product in enumerate(self.queue) if product.signature == resume]
        at = behind[-1] if behind else 0
        while True:
            with self._changed:
                if at >= len(self.queue):
                    self._changed.wait(0.2)
                fresh = self.queue[at:]
            if wire.connection.fileno() < 0 or _is_closed(wire.connection):
                return
            for product in fresh:
                self._give(wire, product, mode)
                at += 1

    def _give(self, wire: Wire, product: Product, mode: int) -> None:
        content = product.content or b""
        padded = content + bytes(-len(content) % 4)
        if mode == PRIMARY:
            wire.call(HEREIS, product.encoded() + padded)
            return
        answer = wire.reply(wire.call(COMINGSOON, product.encoded() + struct.pack(">I", product.size)))
        if answer == struct.pack(">I", OK):
            wire.call(BLKDATA, product.signature + struct.pack(">II", 0, product.size) + padded)
        else:
            self.declined += 1


def _is_closed(connection: socket.socket) -> bool:
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _text(text: str) -> bytes:
    encoded = text.encode(errors="surrogateescape")
    return struct.pack(">I", len(encoded)) + encoded + bytes(-len(encoded) % 4)


def _take_text(body: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack(">I", body[:4])
    return body[4 : 4 + length], body[4 + length + -length % 4 :]
