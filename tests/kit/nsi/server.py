"""The provider's machine behind HTTPS that demands a client certificate, and the certificates of both sides."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from downburst_circuits.nsi.provider import Certificate
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

    def sign(self, name: str, *, days: int = 2) -> Certificate:
        """A certificate of this name for 127.0.0.1, its key, and this authority."""
        certificate, key, asked = (self.directory / f"{name}-{self.name}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.directory / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
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


@asynccontextmanager
async def serving(machine: ProviderMachine, files: Certificate) -> AsyncIterator[Served]:
    """The machine behind HTTPS on a port of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authorities)
    context.verify_mode = ssl.CERT_REQUIRED
    served = Served("", [], [])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await _one(reader, writer, machine, served)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        served.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/soap/connection/provider"
        yield served


async def _one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, machine: ProviderMachine, served: Served
) -> None:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = await reader.readexactly(int(headers["content-length"]))
    served.actions.append(headers["soapaction"])
    if served.instead:
        writer.write(served.instead.pop(0))
        await writer.drain()
        raise ConnectionResetError
    status, answer = machine.post(body)
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/xml\r\nContent-Length: {len(answer)}\r\n\r\n"
    writer.write(head.encode() + answer)
    await writer.drain()


def _openssl(*argv: str | Path) -> None:
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
