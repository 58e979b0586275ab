"""Receivers over real sockets: the addresses of a name are checked once, and the checked address is connected to."""

import asyncio
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind
from downburst.foundation.errors import DownburstError
from downburst.network.pinned import PublicTransport, Resolve
from downburst.settings.alarms import AlarmSettings
from downburst_alarms.notices import NetworkTeller


async def test_finding_11_a_name_is_resolved_once_and_that_address_is_connected_to() -> None:
    """A name server with a different second answer is not queried a second time."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    seen: list[tuple[str, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((writer.get_extra_info("sockname")[0], await reader.readuntil(b"\r\n\r\n")))
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2/\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "0.0.0.0", 0) as server:
        port = server.sockets[0].getsockname()[1]
        transport = PublicTransport(lambda _host, _port: next(answers), lambda address: address == "127.0.0.1")
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.post(f"http://rebinds.example:{port}/hook", json={})
    assert answer.status_code == 302
    ((address, head),) = seen
    assert address == "127.0.0.1"
    assert f"Host: rebinds.example:{port}".encode() in head


async def test_what_can_not_be_resolved_or_reached_is_an_error_of_httpx() -> None:
    def unknown(_host: str, _port: int) -> list[str]:
        raise OSError("Name or service not known")

    def way_to(*found: str) -> Resolve:
        return lambda _host, _port: found

    for way in (unknown, way_to(), way_to("127.0.0.1")):
        async with httpx.AsyncClient(transport=PublicTransport(way, lambda _address: True)) as client:
            with pytest.raises(httpx.TransportError):
                await client.post("http://nowhere.example:1/")


async def test_tls_is_checked_against_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    made += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=hook.example"]
    made += ["-addext", "subjectAltName=DNS:hook.example"]
    subprocess.run(made, check=True, capture_output=True)  # noqa: ASYNC221
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _socket, name, _context: names.append(name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        transport = PublicTransport(lambda _host, _port: ["127.0.0.1"], lambda _address: True)
        async with httpx.AsyncClient(transport=transport) as client:
            assert (await client.post(f"https://hook.example:{port}/")).status_code == 204
            with pytest.raises(httpx.TransportError):
                await client.post(f"https://other.example:{port}/")
    assert names[:2] == ["hook.example", "other.example"]


async def test_an_answer_without_end_is_not_read() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 65536)
        writer.close()

    async with await asyncio.start_server(endless, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        alarm = _alarm()
        teller = NetworkTeller("hub", AlarmSettings())
        await teller.tell(Receiver("x", ReceiverKind.WEBHOOK, f"http://127.0.0.1:{port}/"), alarm, alarm.since)


async def test_finding_11_a_receiver_of_a_site_that_is_not_public_is_not_asked() -> None:
    asked: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0) as server:
        port, alarm = server.sockets[0].getsockname()[1], _alarm()
        for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"):
            receiver = Receiver("x", ReceiverKind.WEBHOOK, f"http://{host}:{port}/", owner="unl.edu")
            with pytest.raises(DownburstError, match=r"is not public|address family|Name or service|not known"):
                await NetworkTeller("hub", AlarmSettings()).tell(receiver, alarm, alarm.since)
    assert asked == []


def _alarm() -> Alarm:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return Alarm(7, "k", AlarmKind.SITE_DOWN, None, "unl.edu", "", "unl.edu is away", "look there", since)
