"""A TCP proxy before a server that cuts a connection at a word of the client, once and on request."""

import socket
import threading
from contextlib import suppress
from typing import Self


class CuttingProxy:
    """Relays bytes in both directions; use it as a context manager."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        self._word: bytes | None = None
        self._after = False
        self._open: list[socket.socket] = []

    def cut_at(self, word: bytes, *, after_passing_it: bool) -> None:
        """Cuts the next connection that sends the word: before the server receives it, or after its answer."""
        self._after, self._word = after_passing_it, word

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                self._open += [client, server]
                answered = threading.Event()
                cutting = threading.Event()
                for work in (self._ask, self._answer):
                    threading.Thread(target=work, args=(client, server, cutting, answered), daemon=True).start()

    def _ask(
        self, client: socket.socket, server: socket.socket, cutting: threading.Event, answered: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if self._word is not None and self._word in data:
                    self._word = None
                    self.cuts += 1
                    cutting.set()
                    if self._after:
                        server.sendall(data)
                        answered.wait(30)
                    break
                server.sendall(data)
        _close(client, server)

    def _answer(
        self, client: socket.socket, server: socket.socket, cutting: threading.Event, answered: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if cutting.is_set():
                    answered.set()
                    return
                client.sendall(data)
        answered.set()
        _close(client, server)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
