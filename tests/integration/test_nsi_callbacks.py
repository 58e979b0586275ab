"""The address for callbacks of NSI providers: clients with a certificate, and one line for each refused one."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from downburst.domain.circuits import CircuitState
from downburst.domain.events import FaultSeen
from downburst.domain.ordering.providers import Certificate
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadSettings, Refused
from downburst.ledger import Ledger
from downburst.settings.circuits import CallbackSettings
from downburst.supervision import FAULTS, keep, start, tasks
from downburst_circuits.providers import listener
from downburst_circuits.providers.listener import CallbackListener
from kit.nsi import words
from kit.nsi.server import Authority
from unit.circuits.nsi.hub import NsiHub

FOREIGN = words.envelope(words.confirmed("provision", "c"), provider_nsa="urn:ogf:network:south:nsa")


@dataclass
class Certificates:
    hub: Certificate
    provider: Certificate
    stranger: Certificate


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory = tmp_path_factory.mktemp("certificates")
    ours, others = Authority(directory, "authority").make(), Authority(directory, "others").make()
    return Certificates(ours.sign("hub"), ours.sign("provider"), others.sign("stranger"))


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[NsiHub]:
    clock = FakeClock()
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", clock)
    yield await NsiHub(ledger, clock).open()
    ledger.close()


@asynccontextmanager
async def listening(hub: NsiHub, files: Certificate) -> AsyncIterator[str]:
    """The listener on a port of its own, and its URL."""
    settings = CallbackSettings(
        listen="127.0.0.1:0", certificate=files.certificate, key=files.key, authorities=files.authorities
    )
    heard = CallbackListener(settings, hub.stage.agents.heard, hub.stage.register.fault)
    task = start("test.listener", heard.serve())
    try:
        await until(lambda: heard.address[1] > 0 or task.done())
        if task.done():
            await task
        yield f"https://127.0.0.1:{heard.address[1]}/nsi/callback"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def client(files: Certificate | None, authorities: Path) -> httpx.AsyncClient:
    context = ssl.create_default_context(cafile=str(authorities))
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    return httpx.AsyncClient(verify=context, trust_env=False, timeout=10)


async def test_callbacks_carry_a_circuit_early_late_and_doubled(hub: NsiHub, certificates: Certificates) -> None:
    """Each callback is posted twice, while the answer to its request is under way, and all of them again later."""
    again: list[bytes] = []
    async with (
        listening(hub, certificates.hub) as url,
        client(certificates.provider, certificates.hub.authorities) as provider,
    ):
        post = hub.line.post

        async def with_callbacks(action: str, body: bytes) -> object:
            answer = await post(action, body)
            while hub.machine.callbacks:
                callback = hub.machine.callbacks.pop(0)
                again.append(callback)
                for _ in range(2):
                    assert (await provider.post(url, content=callback)).status_code == 200
            return answer

        hub.line.post = with_callbacks  # type: ignore[method-assign,assignment]
        circuit = await hub.active(hours=10)
        assert "queryResultSync" not in hub.machine.requests
        for callback in reversed(again):
            assert (await provider.post(url, content=callback)).status_code == 200
        await hub.after(60)
        assert hub.state(circuit) is CircuitState.ACTIVE
        await hub.stage.service.cancel(circuit.number, by="op")
        for callback in again[:]:
            await provider.post(url, content=callback)
        await hub.until(lambda: hub.state(circuit) is CircuitState.CANCELLED)
    assert hub.machine.live() == []
    assert hub.machine.requests.count("reserve") == 1


async def test_a_callback_in_chunks_is_answered_with_an_acknowledgment(
    hub: NsiHub, certificates: Certificates
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        body = words.envelope(words.confirmed("provision", "conn-9"))
        for first in range(0, len(body), 100):
            yield body[first : first + 100]

    await hub.after(1)
    async with (
        listening(hub, certificates.hub) as url,
        client(certificates.provider, certificates.hub.authorities) as provider,
    ):
        answer = await provider.post(url, content=pieces())
    assert answer.status_code == 200
    assert b"acknowledgment" in answer.content


async def test_clients_without_a_certificate_of_ours_cost_a_line_each(
    hub: NsiHub, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    async with listening(hub, certificates.hub) as url:
        for files in (None, certificates.stranger):
            async with client(files, certificates.hub.authorities) as stranger:
                with pytest.raises(httpx.TransportError):
                    await stranger.post(url, content=b"<a/>")
        await until(lambda: len(refusals(caplog)) == 2)
    assert len(refusals(caplog)) == 2
    assert all("a callback from 127.0.0.1 is refused:" in line for line in refusals(caplog))


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"no XML", 400, "is not XML"),
        (FOREIGN, 403, "names no provider"),
        (words.acknowledgment(), 400, "not a callback"),
        (b"x" * 1_000_001, 400, "longer than 1000000 bytes"),
    ],
)
async def test_useless_messages_change_nothing_and_cost_a_line(
    hub: NsiHub, certificates: Certificates, caplog: pytest.LogCaptureFixture, body: bytes, status: int, why: str
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    await hub.after(1)
    async with listening(hub, certificates.hub) as url:
        async with client(certificates.provider, certificates.hub.authorities) as provider:
            try:
                assert (await provider.post(url, content=body)).status_code == status
            except httpx.TransportError:
                assert len(body) > 1_000_000
        await until(lambda: bool(refusals(caplog)))
    assert len(refusals(caplog)) == 1
    assert why in refusals(caplog)[0]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no POST"),
        (b"POST / HTTP/1.1\r\n\r\n", "missing or no number"),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "missing or no number"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", "longer than"),
        (b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf", "4 bytes"),
        (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 3 + b"x" * 20_000, "a line of more than"),
        (b"POST / HTTP/1.1\r\n" + b"".join(b"h%d: 1\r\n" % n for n in range(80)), "more than 64 headers"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "missing or no number"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", "longer than"),
        (b"", "0 bytes"),
    ],
)
async def test_requests_that_break_http_are_bounded(
    hub: NsiHub, certificates: Certificates, caplog: pytest.LogCaptureFixture, sent: bytes, why: str
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    async with listening(hub, certificates.hub) as url:
        context = ssl.create_default_context(cafile=str(certificates.hub.authorities))
        context.load_cert_chain(certificates.provider.certificate, certificates.provider.key)
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port, ssl=context)
        writer.write(sent)
        # A connection over TLS can't be half closed: a request that breaks off ends with its connection.
        if b"half" in sent or not sent:
            writer.close()
        await until(lambda: bool(refusals(caplog)))
        writer.transport.abort()
        del reader
    assert len(refusals(caplog)) == 1
    assert why in refusals(caplog)[0]


async def test_slow_clients_and_too_many_of_them_are_cut_off(
    hub: NsiHub,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    monkeypatch.setattr(listener, "CLIENT_S", 0.3)
    monkeypatch.setattr(listener, "CLIENTS_MAX", 1)
    async with listening(hub, certificates.hub) as url:
        slow = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)
        other = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)
        assert await other[0].read() == b""
        assert await slow[0].read() == b""
        await until(lambda: len(refusals(caplog)) == 2)
        for _, writer in (slow, other):
            writer.close()
    assert "1 clients are connected" in refusals(caplog)[0]
    assert "took longer" in refusals(caplog)[1]


async def test_files_or_addresses_that_can_not_be_used_are_one_sentence(
    hub: NsiHub, certificates: Certificates, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no PEM")
    with pytest.raises(BadSettings, match=r"circuits\.callbacks can't be used for TLS"):
        async with listening(hub, Certificate(wrong, wrong, wrong)):
            pass
    files = certificates.hub
    taken = CallbackSettings(
        listen="203.0.113.1:9", certificate=files.certificate, key=files.key, authorities=files.authorities
    )
    with pytest.raises(BadSettings, match=r"can't listen on 203\.0\.113\.1:9 for callbacks"):
        await CallbackListener(taken, hub.stage.agents.heard, hub.stage.register.fault).serve()


async def test_files_that_are_wrong_are_reported_once_and_used_when_they_are_right(
    hub: NsiHub, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "AGAIN_S", 0.02)
    files, key = certificates.hub, tmp_path / "hub.key"
    settings = CallbackSettings(
        listen="127.0.0.1:0", certificate=files.certificate, key=key, authorities=files.authorities
    )
    faults = hub.stage.bus.subscribe(FaultSeen)
    tries: list[CallbackSettings] = []
    used = listener._tls

    def counted(wanted: CallbackSettings, setting: str) -> ssl.SSLContext:
        tries.append(wanted)
        return used(wanted, setting)

    monkeypatch.setattr(listener, "_tls", counted)
    heard = CallbackListener(settings, hub.stage.agents.heard, hub.stage.register.fault)
    task = start("test.listener", heard.run())
    await until(lambda: len(tries) >= 4)
    key.write_bytes(files.key.read_bytes())
    await until(lambda: heard.address[1] > 0)
    assert isinstance(await faults.next(), FaultSeen)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await faults.next()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_hub_without_records_refuses_every_callback(hub: NsiHub) -> None:
    await hub.after(1)
    with hub.ledger.transaction() as tx:
        tx.planning.providers.remove("north")
    await hub.after(1)
    with pytest.raises(Refused, match="names no provider"):
        await hub.stage.agents.heard(words.envelope(words.confirmed("provision", "conn-1")))


async def test_an_unknown_error_at_one_callback_is_counted_and_the_next_one_is_heard(
    hub: NsiHub, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hub.after(1)
    body = words.envelope(words.confirmed("provision", "conn-9"))
    async with (
        listening(hub, certificates.hub) as url,
        client(certificates.provider, certificates.hub.authorities) as provider,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(listener, "_message", _planted)
            with pytest.raises(httpx.TransportError):
                await provider.post(url, content=body)
        assert {fault.handler for fault in FAULTS.all()} == {"circuits.callback"}
        assert (await provider.post(url, content=body)).status_code == 200


async def test_an_unknown_error_of_the_listener_is_counted_and_it_listens_again(
    hub: NsiHub, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    opened = listener._listening
    monkeypatch.setattr(listener, "_listening", _planted)
    files = certificates.hub
    settings = CallbackSettings(
        listen="127.0.0.1:0", certificate=files.certificate, key=files.key, authorities=files.authorities
    )
    heard = CallbackListener(settings, hub.stage.agents.heard, hub.stage.register.fault)
    task = start("test.listener", keep("circuits.callbacks", heard.run))
    await until(lambda: bool(FAULTS.all()))
    monkeypatch.setattr(listener, "_listening", opened)
    await until(lambda: heard.address[1] > 0)
    assert {fault.handler for fault in FAULTS.all()} == {"circuits.callbacks"}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _planted(*_: object) -> None:
    raise KeyError("planted")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "is refused" in record.getMessage()]
