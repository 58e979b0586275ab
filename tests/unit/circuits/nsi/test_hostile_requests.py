"""Requests of a hostile requester: each is answered, and none stops the provider agent or leaves it half changed."""

import os
import random
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.supervision import FAULTS
from downburst_circuits.nsi.soap.asked import read_request
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import envelope
from downburst_circuits.nsi.words import Operation, Request
from kit.nsi.scene import a_provider
from unit.circuits.nsi.lender import Lender, between

CONNECTION = "00000000-0000-4000-8000-0000000000cc"
IDS = (f"urn:uuid:00000000-0000-4000-8000-{number:012x}" for number in count(1))
RESERVE = envelope(
    Request(
        Operation.RESERVE, next(IDS), version=1, criteria=between("hub-eth0", "unl.edu-eth1"), description="words"
    ),
    a_provider(),
)


def requests() -> list[bytes]:
    """One of each kind, with correlation ids of their own."""
    asked = between("hub-eth0", "unl.edu-eth1")
    change = Request(Operation.RESERVE, next(IDS), CONNECTION, version=2, criteria=asked)
    operations = [one for one in Operation if one is not Operation.RESERVE]
    return [
        envelope(Request(Operation.RESERVE, next(IDS), version=1, criteria=asked), a_provider()),
        *(envelope(change, a_provider(dialect)) for dialect in (Dialect.CAPACITY, Dialect.P2PS)),
        *(envelope(Request(one, next(IDS), CONNECTION), a_provider()) for one in operations),
    ]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (b":reserve", b":reserveConfirmed", "no request that this provider answers"),
        (b":nsiHeader", b":other", "lacks nsiHeader"),
        (b"cs.v2.provider", b"cs.v1.provider", "the protocol version is"),
        (b"urn:uuid:0", b"urn:uuid:x", "not a urn:uuid:"),
        (b"https://hub.example/nsi", b"http://hub.example/nsi", "callbacks go to https://HOST/PATH"),
        (b"https://hub.example/nsi", b"https://a:b@hub.example/", "callbacks go to https://HOST/PATH"),
        (b"https://hub.example/nsi", b"https://hub.example:99999/", "not an address"),
        (b">50<", b">fifty<", "not a whole number"),
        (b"?vlan=100-119", b"?vlan=0-119", "sourceSTP"),
        (b"<criteria version", b"<other version", "lacks criteria"),
        (b"services/point2point", b"services/other", "of another service than point to point"),
    ],
)
def test_a_bad_request_is_refused_in_one_sentence(old: bytes, new: bytes, part: str) -> None:
    body = RESERVE.replace(old, new).replace(b"</criteria>", b"</other>" if b"<other v" in new else b"</criteria>")
    with pytest.raises(Unreadable) as refusal:
        read_request(body)
    assert part in refusal.value.sentence
    assert "\n" not in refusal.value.sentence


async def test_damaged_requests_are_answered_and_change_nothing_by_halves(ledger: Ledger, clock: FakeClock) -> None:
    first = int(os.environ.get("DOWNBURST_SEED", "1"))
    print(f"replay: DOWNBURST_SEED={first} pytest tests/unit/circuits/nsi/test_hostile_requests.py")
    chance, lender = random.Random(first), await Lender(ledger, clock).open()
    connection_id = (await lender.in_service()).encode()
    for round_number in range(40):
        for body in requests():
            data = bytearray(body.replace(CONNECTION.encode(), connection_id))
            for _ in range(chance.randint(0, 2)):
                _damage(data, chance)
            answered = await lender.post(bytes(data))
            assert answered is not None
            read(answered[1])
        if round_number % 8 == 0:
            await lender.after(1)
    await lender.after(31)
    assert FAULTS.all() == []
    assert all(not one.pending or one.states.lifecycle == "Terminating" for one in lender.live())
    assert len(lender.circuits()) <= len(lender.live())


@given(st.text(max_size=60))
def test_any_value_is_read_or_refused(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").encode("utf-8", "surrogatepass")
    for old in (b">50<", b">Bidirectional<", b">words<", b">https://hub.example/nsi<"):
        assert old in RESERVE
        try:
            read_request(RESERVE.replace(old, b">" + escaped + b"<"))
        except Unreadable as error:
            assert len(error.sentence) < 700  # noqa: PT017


def _damage(data: bytearray, chance: random.Random) -> None:
    at, length = chance.randrange(len(data)), chance.randint(1, 30)
    match chance.randrange(3):
        case 0:
            data[at] = chance.randrange(256)
        case 1:
            del data[at : min(at + length, len(data) - 1)]
        case _:
            data[at:at] = data[at : at + length]
