"""Identifiers of arbitrary bytes pass through a hub from LDM to LDM unchanged."""

import os
import random
from pathlib import Path

from kit.ldm.hub import ask, holds, hub_at, serve
from kit.ldm.wire import NGRID, OK, Asked, Product, Serving, connected

SEED = int(os.environ.get("DOWNBURST_SEED", "22"))


def test_finding_22_identifiers_of_any_bytes_reach_ldms_unchanged(tmp_path: Path) -> None:
    upstream, sent = Serving(), _products(random.Random(SEED))
    print(f"seed {SEED}; DOWNBURST_SEED={SEED} replays it")
    upstream.put(*sent)
    with hub_at(tmp_path / "hub") as hub:
        ask(hub, upstream.address)
        holds(hub, len(sent))
        _all_come(serve(hub), sent)
        hub.stop()
        hub.start()
        _all_come(serve(hub), sent)
    upstream.close()


def _all_come(address: str, sent: list[Product]) -> None:
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.feed_me((NGRID, ".*"))[0] == OK
        assert [(one.ident, one.content) for one in asked.take(len(sent))] == [
            (one.ident, one.content) for one in sent
        ]
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.notify_me((NGRID, ".*"))[0] == OK
        assert [one.ident for one in asked.take(len(sent))] == [one.ident for one in sent]


def _products(dice: random.Random) -> list[Product]:
    odd = [
        b"a/../b",
        b"..",
        b"a\\..\\b",
        b"\x00",
        b"line\nbreak",
        b"\xff\xfe",
        b"",
        b"100%",
        b"%2E%2E",
        "W\xe4rme".encode(),
    ]
    odd += [dice.randbytes(dice.randint(1, 255)) for _ in range(200)]
    odd += [bytes(255), b"\xff" * 255]
    small = [Product.of(one.decode(errors="surrogateescape"), dice.randbytes(20)) for one in odd]
    return [*small, Product.of("large/../one\x07", dice.randbytes(300_000))]
