"""The hub as an NSI provider over HTTPS: our own requester reserves from it, with callbacks and with lists alone."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.ordering.providers import Certificate, Dialect, Provider
from downburst.foundation.clock import to_us
from downburst.ledger import Ledger
from downburst.ledger.repositories.ordering.connections import StoredReply
from downburst.settings.circuits import CallbackSettings, CircuitSettings
from downburst.supervision import FAULTS, keep, start, tasks
from downburst_circuits.nsi.order import Change, Standing, cancelled, changed, new_order, verdict
from downburst_circuits.nsi.record import Order
from downburst_circuits.nsi.refusals import Kind
from downburst_circuits.nsi.requester import Requester, World
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import acknowledgment, envelope
from downburst_circuits.nsi.transport import Posted, http_exchange
from downburst_circuits.nsi.words import Operation, Request
from downburst_circuits.provider_agent import delivery
from downburst_circuits.provider_agent.book import Book
from downburst_circuits.provider_agent.delivery import Delivery
from downburst_circuits.provider_agent.https import RequestListener
from downburst_circuits.provider_agent.parts import runs_of_provider
from downburst_circuits.providers import listener
from downburst_circuits.providers.listener import CallbackListener
from kit.nsi.scene import a_provider
from kit.nsi.server import Authority
from unit.circuits.nsi.lender import between
from unit.circuits.nsi.lending import CLOCK, Lending, lending, until

IDS = (f"urn:uuid:00000000-0000-4000-8000-{number:012x}" for number in count(1))


@dataclass
class Certificates:
    hub: Certificate
    lender: Certificate
    unlisted: Certificate
    stranger: Certificate


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory = tmp_path_factory.mktemp("certificates")
    ours, others = Authority(directory, "authority").make(), Authority(directory, "others").make()
    stranger = replace(others.sign("hub"), authorities=ours.certificate)
    return Certificates(ours.sign("hub"), ours.sign("lender"), ours.sign("unlisted"), stranger)


@pytest.fixture
async def hub(tmp_path: Path, certificates: Certificates) -> AsyncIterator[Lending]:
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", CLOCK)
    async with lending(ledger, certificates.lender) as opened:
        yield opened
    ledger.close()


class Memory:
    async def save(self, order: Order) -> None:
        """A requester's records are tested elsewhere."""


def requester_of(provider: Provider, exchange: Any) -> Requester:
    return Requester(provider, exchange, Memory(), World(CLOCK, lambda: next(IDS), lambda: 0.5))


async def turns(requester: Requester, holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up_s, (requester.orders, requester.link)
        await asyncio.sleep(min(await requester.turn(), 0.2))


@pytest.mark.all
async def test_a_request_that_comes_before_the_connections_are_read_is_answered(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, may_load, load = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", CLOCK), asyncio.Event(), Book.load

    async def late(book: Book) -> list[StoredReply]:
        await may_load.wait()
        return await load(book)

    monkeypatch.setattr(Book, "load", late)
    async with lending(ledger, certificates.lender) as opened:
        provider = replace(a_provider(Dialect.CAPACITY, opened.url), certificate=certificates.hub, reply_to=None)
        async with http_exchange(provider) as exchange:
            requester = requester_of(provider, exchange)
            await requester.add(new_order(1, provider, between("hub-eth0", "unl.edu-eth1"), "c 1", lambda: next(IDS)))
            asking = asyncio.create_task(requester.turn())
            done, _ = await asyncio.wait([asking], timeout=0.5)
            assert not done
            may_load.set()
            await asking
            await turns(requester, lambda: standing(requester) is Standing.ACTIVE)
    ledger.close()


@pytest.mark.parametrize("dialect", [pytest.param(Dialect.CAPACITY, marks=pytest.mark.all), Dialect.P2PS])
async def test_our_own_requester_orders_changes_and_gives_back(
    hub: Lending, certificates: Certificates, dialect: Dialect
) -> None:
    provider = replace(a_provider(dialect, hub.url), certificate=certificates.hub, reply_to=None)
    async with http_exchange(provider) as exchange:
        requester = requester_of(provider, exchange)
        await requester.add(new_order(1, provider, between("hub-eth0", "unl.edu-eth1"), "c 1", lambda: next(IDS)))
        await turns(requester, lambda: standing(requester) is Standing.ACTIVE)
        (circuit,) = hub.register.open.values()
        assert (circuit.rate_out_bps, circuit.request.description) == (50_000_000, "c 1")
        await requester.change(
            1, lambda order: changed(order, Change(20, None), provider, now_us(), lambda: next(IDS))
        )
        await turns(requester, lambda: granted_mbps(requester) == 20)
        await requester.change(1, cancelled)
        await turns(requester, lambda: standing(requester) is Standing.ENDED)
    assert (hub.register.open, hub.node.held) == ({}, {})
    assert FAULTS.all() == []


async def test_callbacks_reach_a_requester_that_listens(hub: Lending, certificates: Certificates) -> None:
    heard: list[str] = []

    async def hear(body: bytes) -> bytes:
        message = read(body)
        assert message.header is not None
        heard.append(type(message.body).__name__)
        await requester.heard(message)
        return acknowledgment(message.header)

    files = certificates.hub
    settings = CallbackSettings(
        listen="127.0.0.1:0", certificate=files.certificate, key=files.key, authorities=files.authorities
    )
    ears = CallbackListener(settings, hear, hub.register.fault)
    async with AsyncExitStack() as stack:
        task = start("test.ears", ears.serve())
        stack.callback(task.cancel)
        await until(lambda: ears.address[1] > 0)
        reply_to = f"https://127.0.0.1:{ears.address[1]}/callback"
        provider = replace(a_provider(Dialect.CAPACITY, hub.url), certificate=files, reply_to=reply_to)
        exchange = await stack.enter_async_context(http_exchange(provider))
        requester = requester_of(provider, exchange)
        await requester.add(new_order(1, provider, between("hub-eth0", "unl.edu-eth1"), "c", lambda: next(IDS)))
        await turns(requester, lambda: standing(requester) is Standing.ACTIVE)
        await requester.change(1, cancelled)
        await turns(requester, lambda: standing(requester) is Standing.ENDED)
        await until(lambda: heard.count("Confirmed") >= 3 and heard.count("DataPlaneChanged") == 2)
    assert heard[:3] == ["Reserved", "Confirmed", "Confirmed"]
    assert hub.agent.delivery.tick() > 0
    assert len(hub.agent.delivery) == 0


async def test_a_reply_that_nobody_takes_is_repeated_then_given_up_and_can_be_queried(
    hub: Lending, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(delivery, "TRIES_MAX", 3)
    provider = replace(a_provider(Dialect.CAPACITY, hub.url), reply_to="https://127.0.0.1:1/nobody")
    asked = between("hub-eth0", "unl.edu-eth1")
    request = Request(Operation.RESERVE, next(IDS), version=1, criteria=asked)
    async with client(certificates.hub, certificates.hub.authorities) as requester:
        answer = await requester.post(hub.url, content=envelope(request, provider))
        assert answer.status_code == 200
        await until(lambda: bool(hub.agent.book.open()) and len(hub.agent.delivery) > 0)
        await until(lambda: len(hub.agent.delivery) == 0)
        connection_id = hub.agent.book.open()[0].connection_id
        results = Request(Operation.RESULTS, next(IDS), connection_id)
        found = await requester.post(hub.url, content=envelope(results, provider))
    assert b"reserveConfirmed" in found.content


async def test_certificates_decide_who_may_ask(
    hub: Lending, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    request = envelope(Request(Operation.SUMMARY, next(IDS)), a_provider())
    async with client(certificates.unlisted, certificates.hub.authorities) as unlisted:
        answer = await unlisted.post(hub.url, content=request)
    assert (answer.status_code, "'CN=unlisted' may not reserve here" in answer.text) == (403, True)
    for files in (None, certificates.stranger):
        async with client(files, certificates.hub.authorities) as nobody:
            with pytest.raises(httpx.TransportError):
                await nobody.post(hub.url, content=request)
    await until(lambda: len(caplog.records) == 3)
    assert all("a request from 127.0.0.1 is refused" in record.getMessage() for record in caplog.records)


async def test_the_requester_names_a_refused_certificate_as_such(hub: Lending, certificates: Certificates) -> None:
    provider = replace(a_provider(Dialect.CAPACITY, hub.url), certificate=certificates.unlisted)
    async with http_exchange(provider) as exchange:
        requester = requester_of(provider, exchange)
        await requester.add(new_order(1, provider, between("hub-eth0", "unl.edu-eth1"), "c", lambda: next(IDS)))
        await turns(requester, lambda: requester.link.problem is not None)
        assert requester.link.problem is not None
        assert requester.link.problem.kind is Kind.CERTIFICATE


async def test_one_host_has_a_bounded_share_of_the_connections(
    hub: Lending, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "downburst.circuits")
    monkeypatch.setattr(listener, "CLIENTS_OF_HOST_MAX", 1)
    port = hub.listener.address[1]
    slow = await asyncio.open_connection("127.0.0.1", port)
    other = await asyncio.open_connection("127.0.0.1", port)
    assert await other[0].read() == b""
    assert "it has 1 connections" in caplog.records[0].getMessage()
    for _, writer in (slow, other):
        writer.close()


async def test_an_unknown_error_in_one_request_is_counted_and_the_next_is_answered(
    hub: Lending, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = envelope(Request(Operation.SUMMARY, next(IDS)), a_provider())
    async with client(certificates.hub, certificates.hub.authorities) as requester:
        with monkeypatch.context() as patch:
            patch.setattr(listener, "_message", _planted)
            with pytest.raises(httpx.TransportError):
                await requester.post(hub.url, content=request)
        assert {fault.handler for fault in FAULTS.all()} == {"circuits.nsi-request"}
        assert (await requester.post(hub.url, content=request)).status_code == 200


async def test_unknown_errors_of_the_parts_are_counted_and_they_go_on(
    hub: Lending, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's other listener stays as it is: these parts are a second set of them."""
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    for kind, name in ((Book, "load"), (Delivery, "tick"), (RequestListener, "serve")):
        monkeypatch.setattr(kind, name, _once(getattr(kind, name)))
    lent = runs_of_provider(
        hub.service, hub.register, CircuitSettings(provider=hub.settings), ledger=hub.ledger, clock=CLOCK
    )
    kept = [start("test.lending", keep(name, run)) for name, run in lent]
    await until(lambda: len(FAULTS.all()) == 3 and all(fault.count == 1 for fault in FAULTS.all()))
    assert {fault.handler for fault in FAULTS.all()} == {
        "circuits.nsi-connections",
        "circuits.nsi-replies",
        "circuits.nsi-requests",
    }
    request = envelope(Request(Operation.SUMMARY, next(IDS)), a_provider())
    async with client(certificates.hub, certificates.hub.authorities) as requester:
        assert (await requester.post(hub.url, content=request)).status_code == 200
    assert not any(task.done() for task in kept)
    for task in kept:
        task.cancel()
    await asyncio.gather(*kept, return_exceptions=True)


async def test_a_big_message_and_a_slow_one_are_refused(hub: Lending, certificates: Certificates) -> None:
    async with http_exchange(
        replace(a_provider(Dialect.CAPACITY, hub.url), certificate=certificates.hub)
    ) as exchange:
        found = await exchange.post('"x"', b"x" * 2_000_000)
        assert not isinstance(found, Posted) or found.status == 400
        assert isinstance(await exchange.post('"x"', b"<a/>"), Posted)


def client(files: Certificate | None, authorities: Path) -> httpx.AsyncClient:
    context = ssl.create_default_context(cafile=str(authorities))
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    return httpx.AsyncClient(verify=context, trust_env=False, timeout=10)


def _once(work: Callable[..., Any]) -> Callable[..., Any]:
    """Fails the first time."""
    calls = count()

    def failing(*given: Any) -> Any:
        if next(calls) == 0:
            raise KeyError("planted")
        return work(*given)

    return failing


def _planted(*_: object) -> None:
    raise KeyError("planted")


def now_us() -> int:
    return to_us(CLOCK.now())


def granted_mbps(requester: Requester) -> int:
    granted = verdict(requester.orders[1], now_us()).granted
    return granted.capacity_mbps if granted else 0


def standing(requester: Requester) -> Standing:
    return verdict(requester.orders[1], now_us()).standing
