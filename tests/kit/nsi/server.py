"""The provider's machine behind HTTPS that demands a client certificate, and the certificates of both sides."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from downburst.domain.ordering.providers import Certificate
from kit.nsi.provider import ProviderMachine


@dataclass(frozen=True)
class Authority:
    """An authority and the certificates that it has signed."""

    directory: Path
    name: str

    @property
    def certificate(self) -> Path:
        return self.directory / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        return self.directory / f"{self.name}.key"

    def make(self) -> "Authority":
        _openssl(
            "req",
            "-x509",
            *_KEY,
            "-days",
            "2",
            "-keyout",
            self.key,
            "-out",
            self.certificate,
            "-subj",
            f"/CN={self.name}",
        )
        return self

    def sign(self, name: str, *, days: int = 2, address: str = "127.0.0.1") -> Certificate:
        """A certificate of this name for an address, its key, and this authority."""
        certificate, key, asked = (self.directory / f"{name}-{self.name}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.directory / "extensions"
        extensions.write_text(f"subjectAltName=IP:{address}\n")
        _openssl("req", *_KEY, "-keyout", key, "-out", asked, "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", asked, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                 "-days", str(days), "-extfile", extensions, "-out", certificate)  # fmt: skip
        return Certificate(certificate, key, self.certificate)


@dataclass
class Served:
    """What came in, by SOAPAction, and answers that replace the machine's, each once."""

    url: str
    actions: list[str]
    instead: list[bytes]


@contextmanager
def serving(machine: ProviderMachine, files: Certificate) -> Iterator[Served]:
    """The machine behind HTTPS on a port of its own, in threads: asyncio's servers send no alerts of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authorities)
    context.verify_mode = ssl.CERT_REQUIRED
    served = Served("", [], [])
    with _Server(("127.0.0.1", 0), _handler(machine, served)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        served.url = f"https://127.0.0.1:{server.server_address[1]}/soap/connection/provider"
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that leaves is part of the tests."""


def _handler(machine: ProviderMachine, served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            served.actions.append(self.headers["SOAPAction"])
            if served.instead:
                self.wfile.write(served.instead.pop(0))
                self.close_connection = True
                return
            status, answer = machine.post(body)
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Tests print what they need."""

    return Handler


def _openssl(*argv: str | Path) -> None:
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
