"""An LDM server that follows a script of golden messages: it shares no code with the node's."""

import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden" / "ldm6" / "messages.json"


def golden(name: str) -> bytes:
    """A message as it is on the wire."""
    messages = json.loads(GOLDEN.read_text())["messages"]
    return bytes.fromhex(next(one["bytes"] for one in messages if one["name"] == name))


def answering(message: bytes, xid: int) -> bytes:
    """An answer or call of the golden file under another transaction number."""
    return message[:4] + struct.pack(">I", xid) + message[8:]


@dataclass
class LdmPeer:
    """Serves one connection after the other; each gets ``answers`` by procedure, and then ``calls``."""

    answers: dict[int, str]
    """Procedure to the golden message that answers it; a procedure that is not here ends the connection."""
    calls: Sequence[str] = ()
    """Golden messages that follow the answer to FEEDME or NOTIFYME; `half of` one ends the connection in it."""
    heard: list[tuple[int, int]] = field(default_factory=list)
    """Version and procedure of each call, and (0, xid) for each answer to what this peer called."""
    requests: list[bytes] = field(default_factory=list)
    """The records of FEEDME and NOTIFYME."""
    address: str = ""

    def serve(self, listener: socket.socket) -> None:
        """Takes connections until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                try:
                    self._talk(connection)
                except OSError:
                    continue

    def _talk(self, connection: socket.socket) -> None:
        while record := _record(connection):
            xid, kind = struct.unpack(">II", record[:8])
            if kind == 1:
                self.heard.append((0, xid))
                continue
            version, procedure = struct.unpack(">II", record[16:24])
            self.heard.append((version, procedure))
            name = self.answers.get(procedure)
            if name is None or (name.startswith("5:") and version != 5):
                if name is None:
                    return
                connection.sendall(answering(golden("program-mismatch"), xid))
                continue
            connection.sendall(answering(golden(name.removeprefix("5:")), xid))
            if procedure in (FEEDME, NOTIFYME):
                self.requests.append(record)
                for call in self.calls:
                    if call.startswith("half of "):
                        message = golden(call.removeprefix("half of "))
                        connection.sendall(message[: len(message) // 2])
                        return
                    # A single byte, so that the other side has to reassemble records.
                    message = golden(call)
                    connection.sendall(message[:1])
                    connection.sendall(message[1:])


@contextmanager
def ldm_peer(answers: dict[int, str], calls: Sequence[str] = ()) -> Iterator[LdmPeer]:
    """A peer on the loopback interface; its address is known from the beginning."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        peer = LdmPeer(answers, calls, address=f"{host}:{port}")
        thread = threading.Thread(target=peer.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)


def _record(connection: socket.socket) -> bytes:
    """The next record, of any fragments; empty at the end of the connection."""
    record, is_last = b"", False
    while not is_last:
        mark = _exactly(connection, 4)
        if not mark:
            return b""
        (word,) = struct.unpack(">I", mark)
        is_last = bool(word >> 31)
        record += _exactly(connection, word & 0x7FFF_FFFF)
    return record


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        part = connection.recv(length - len(content))
        if not part:
            return b""
        content += part
    return content


NULLPROC, FEEDME, NOTIFYME = 0, 4, 9
