"""A listener for a provider's callbacks, which admits only clients with a certificate of the authority."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from downburst.domain.ordering.providers import Certificate
from downburst.foundation.errors import Failure
from downburst_circuits.nsi.callbacks import incoming
from kit.peers.hub import Hub


@dataclass
class Listener:
    """The address for callbacks, and what came in there."""

    url: str
    heard: list[str] = field(default_factory=list)
    """The kinds of the messages."""
    refused: list[str] = field(default_factory=list)
    hub: Hub | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def attach(self, hub: Hub) -> None:
        """From the hub's own loop: messages reach the requester there."""
        self.hub, self.loop = hub, asyncio.get_running_loop()

    def take(self, data: bytes) -> bytes | None:
        """The answer to a callback; None: it was refused."""
        assert self.hub is not None
        assert self.loop is not None
        try:
            message, answer = incoming(data, self.hub.provider)
        except Failure as error:
            self.refused.append(error.sentence)
            return None
        self.heard.append(type(message.body).__name__)
        asyncio.run_coroutine_threadsafe(self.hub.requester.heard(message), self.loop).result(timeout=30)
        return answer


@contextmanager
def listening(files: Certificate) -> Iterator[Listener]:
    """A listener over HTTPS, in threads."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authorities)
    context.verify_mode = ssl.CERT_REQUIRED
    listener = Listener("")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(listener)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        listener.url = f"https://127.0.0.1:{server.server_address[1]}/callbacks"
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()


def _handler(listener: Listener) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer = listener.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(500 if answer is None else 200)
            self.send_header("Content-Type", "text/xml; charset=utf-8")
            self.send_header("Content-Length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, *_: object) -> None:
            """Tests print what they need."""

    return Handler
