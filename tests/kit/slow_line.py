"""A line to a server with a limited rate in bytes per second for all its connections together."""

import socket
import threading
from contextlib import suppress
from typing import Self


class SlowLine:
    """Relays bytes in both directions; the server's bytes travel at the line's rate. Use it as a context manager."""

    def __init__(self, server: str, *, bytes_per_s: float) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.bytes_per_s = bytes_per_s
        """The rate of the server's bytes; may be changed at any time."""
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket()
                # Bytes in a kernel's buffer do not wait for the line, so a small buffer is set before connecting.
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
                server.connect(self._server)
                self._open += [client, server]
                for work in (self._up, self._down):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(BUFFER_BYTES):
                server.sendall(data)
        _close(client, server)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(PIECE_BYTES):
                with self._turn:
                    self._ended.wait(len(data) / self.bytes_per_s)
                client.sendall(data)
        _close(client, server)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


BUFFER_BYTES = 65_536
PIECE_BYTES = 8_192
