"""The NSI requester over loopback with mutual TLS, beside a small provider that speaks the recorded conversations."""

import asyncio
import gzip
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from downburst.domain.ordering.providers import Certificate, Dialect, Provider
from downburst.foundation.clock import SystemClock, to_us
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.link import sentence
from downburst_circuits.nsi.order import Change, Standing, cancelled, changed, new_order, verdict
from downburst_circuits.nsi.record import Order
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.requester import Requester, World
from downburst_circuits.nsi.transport import Posted, http_exchange
from kit.nsi.provider import ProviderMachine
from kit.nsi.scene import a_provider, some_criteria
from kit.nsi.server import Authority, Served, serving

CLOCK = SystemClock()
IDS = (f"urn:uuid:00000000-0000-4000-8000-{number:012x}" for number in count(1))


@dataclass
class Memory:
    saved: list[Order] = field(default_factory=list)

    async def save(self, order: Order) -> None:
        self.saved.append(order)


@dataclass
class Certificates:
    hub: Certificate
    provider: Certificate
    stranger: Certificate


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory = tmp_path_factory.mktemp("certificates")
    ours, others = Authority(directory, "authority").make(), Authority(directory, "others").make()
    stranger = replace(others.sign("stranger"), authorities=ours.certificate)
    return Certificates(ours.sign("hub"), ours.sign("provider"), stranger)


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> ProviderMachine:
    return ProviderMachine(now_us, kind=getattr(request, "param", "supa"))


def now_us() -> int:
    return to_us(CLOCK.now())


def provider_at(served: Served, files: Certificate, dialect: Dialect = Dialect.P2PS) -> Provider:
    return replace(a_provider(dialect, served.url), certificate=files)


def requester_of(provider: Provider, exchange: object) -> Requester:
    world = World(CLOCK, lambda: next(IDS), lambda: 0.5)
    return Requester(provider, exchange, Memory(), world)  # type: ignore[arg-type]


async def turns(requester: Requester, until: Callable[[], bool]) -> None:
    """Turns at the requester's own pace, but for pauses longer than half a second."""
    give_up_s = time.monotonic() + 60
    while not until():
        assert time.monotonic() < give_up_s, (requester.orders, requester.link)
        await asyncio.sleep(min(await requester.turn(), 0.5))


@pytest.mark.parametrize("machine", ["supa", "opennsa"], indirect=True)
async def test_a_whole_life_over_https(machine: ProviderMachine, certificates: Certificates) -> None:
    async with AsyncExitStack() as stack:
        served = stack.enter_context(serving(machine, certificates.provider))
        provider = provider_at(served, certificates.hub)
        exchange = await stack.enter_async_context(http_exchange(provider))
        requester = requester_of(provider, exchange)
        await requester.add(new_order(1, provider, some_criteria(), "circuit 1", lambda: next(IDS)))
        await turns(requester, lambda: standing(requester) is Standing.ACTIVE)
        if machine.kind == "supa":
            await requester.change(
                1, lambda order: changed(order, Change(20, None), provider, now_us(), lambda: next(IDS))
            )
            await turns(requester, lambda: capacity(requester) == 20)
        await requester.change(1, cancelled)
        await turns(requester, lambda: standing(requester) is Standing.ENDED)
    assert machine.live() == []
    assert served.actions[0] == '"http://schemas.ogf.org/nsi/2013/12/connection/service/reserve"'


async def test_certificates_that_do_not_fit_are_named_and_nothing_is_refused(
    machine: ProviderMachine, certificates: Certificates
) -> None:
    for files, words in (
        (certificates.stranger, "does not accept the hub's certificate"),
        (replace(certificates.hub, authorities=certificates.stranger.certificate), "can't be verified"),
    ):
        with serving(machine, certificates.provider) as served:
            provider = provider_at(served, files)
            async with http_exchange(provider) as exchange:
                requester = requester_of(provider, exchange)
                await requester.add(new_order(1, provider, some_criteria(), "circuit 1", lambda: next(IDS)))
                await turns(requester, partial(is_unreached, requester))
        assert requester.link.problem is not None
        assert requester.link.problem.kind is Kind.CERTIFICATE
        assert words in sentence(requester.link)
        assert standing(requester) is Standing.ASKING
    assert machine.connections == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "can't be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half", "can't be reached"),
        (b"nonsense\r\n\r\n", "can't be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1_100_000, "more than 1000000 bytes"),
    ],
)
async def test_an_answer_that_breaks_off_or_never_ends(
    machine: ProviderMachine, certificates: Certificates, answer: bytes, words: str
) -> None:
    with serving(machine, certificates.provider) as served:
        served.instead.append(answer)
        async with http_exchange(provider_at(served, certificates.hub)) as exchange:
            found = await exchange.post('"x"', b"<a/>")
            assert isinstance(found, Problem)
            assert not isinstance(found, Unsent)
            assert words in found.sentence


async def test_a_redirect_is_not_followed(machine: ProviderMachine, certificates: Certificates) -> None:
    with serving(machine, certificates.provider) as served:
        served.instead.append(b"HTTP/1.1 307 X\r\nLocation: https://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")
        async with http_exchange(provider_at(served, certificates.hub)) as exchange:
            assert await exchange.post('"x"', b"<a/>") == Posted(307, b"")


async def test_a_compressed_answer_is_not_unpacked(machine: ProviderMachine, certificates: Certificates) -> None:
    packed = gzip.compress(b" " * 50_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    with serving(machine, certificates.provider) as served:
        served.instead.append(head.encode() + packed)
        async with http_exchange(provider_at(served, certificates.hub)) as exchange:
            assert await exchange.post('"x"', b"<a/>") == Posted(200, packed)


async def test_no_provider_there(certificates: Certificates, machine: ProviderMachine) -> None:
    with serving(machine, certificates.provider) as served:
        provider = provider_at(served, certificates.hub)
    async with http_exchange(provider) as exchange:
        found = await exchange.post('"x"', b"<a/>")
    assert isinstance(found, Unsent)
    assert found.kind is Kind.UNREACHABLE


async def test_files_that_are_no_certificates_are_refused_in_one_sentence(
    certificates: Certificates, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no PEM")
    provider = replace(a_provider(), url="https://127.0.0.1:9/", certificate=replace(certificates.hub, key=wrong))
    with pytest.raises(BadInput, match="can't be used for TLS"):
        async with http_exchange(provider):
            pass


def is_unreached(requester: Requester) -> bool:
    return requester.link.problem is not None


def standing(requester: Requester) -> Standing:
    return verdict(requester.orders[1], now_us()).standing


def capacity(requester: Requester) -> int:
    granted = verdict(requester.orders[1], now_us()).granted
    return granted.capacity_mbps if granted else 0
