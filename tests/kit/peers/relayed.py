"""The agent's address in a host: agents listen in the tests' own network namespace alone."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from socketserver import BaseRequestHandler, ThreadingTCPServer

from kit.namespaces import Lab


@contextmanager
def relayed(lab: Lab, host: str, port: int) -> Iterator[None]:
    """Connections to 127.0.0.1 in the host end at the same port of the calling thread's namespace."""
    with lab.inside(host):
        server = ThreadingTCPServer(("127.0.0.1", port), _Relay)
    with server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.05))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Relay(BaseRequestHandler):
    def handle(self) -> None:
        host, port = self.request.getsockname()
        with socket.create_connection((host, port)) as agent:
            back = threading.Thread(target=_pass_on, args=(agent, self.request))
            back.start()
            _pass_on(self.request, agent)
            back.join()


def _pass_on(source: socket.socket, to: socket.socket) -> None:
    """Until one side ends; then the other one is told."""
    with suppress(OSError):
        while piece := source.recv(65_536):
            to.sendall(piece)
    for end in (source, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
