"""Impossible orders, wrong certificates and silence: one sentence each, and nothing left at the provider."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from downburst_circuits.nsi.link import sentence
from downburst_circuits.nsi.order import Standing
from downburst_circuits.nsi.refusals import Kind
from downburst_circuits.nsi.words import Criteria
from kit.nsi.server import Authority
from kit.peers.hub import POLL_S, Hub, existing, hub, now_us
from kit.peers.peer import STRANGER, Peer

pytestmark = pytest.mark.peers


def other_network(peer: Peer, criteria: Criteria) -> Criteria:
    return replace(criteria, dest=replace(criteria.dest, urn="urn:ogf:network:other.example:2026:topology:unl"))


IMPOSSIBLE: dict[str, Callable[[Peer, Criteria], Criteria]] = {
    "capacity": lambda peer, criteria: replace(criteria, capacity_mbps=5_000),
    "port": lambda peer, criteria: replace(criteria, dest=peer.stp("nowhere", "120-139")),
    "network": other_network,
    "vlan": lambda peer, criteria: replace(criteria, dest=peer.stp("unl", "2000-2010")),
    "past": lambda peer, criteria: replace(criteria, end_us=now_us() - 60_000_000),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
async def test_an_impossible_order_is_one_sentence_and_leaves_nothing(peer: Peer, name: str, tmp_path: Path) -> None:
    expected = peer.known.refuses[name]
    async with hub(peer.provider(), tmp_path / "records") as ours:
        await ours.wish(IMPOSSIBLE[name](peer, peer.criteria(50, end_us=now_us() + 3_600_000_000)))
        if expected is None:
            await ours.until_standing(Standing.ACTIVE)
            await ours.cancel()
            await ours.until_standing(Standing.ENDED)
        else:
            await ours.until_standing(Standing.FAILED)
            problem = ours.verdict().problem
            assert problem is not None
            print(f"SENTENCE {peer.name} {name}: {problem.sentence}")
            assert problem.kind is expected, problem
            assert problem.sentence.startswith(f"provider {peer.name} ")
            await until_gone(ours)
    assert await existing(peer.provider()) == []


@pytest.mark.parametrize("whose", ["foreign authority", "stranger"])
async def test_a_wrong_certificate_orders_nothing_and_is_no_refusal(peer: Peer, whose: str, tmp_path: Path) -> None:
    right, known = peer.provider(), peer.known
    assert right.certificate is not None
    if whose == "stranger":
        expected, certificate = known.stranger, peer.authority.sign(STRANGER)
    else:
        own = Authority(tmp_path, "elsewhere").make().sign("downburst-hub")
        expected, certificate = known.foreign_certificate, replace(own, authorities=right.certificate.authorities)
    async with hub(replace(right, certificate=certificate), tmp_path / "records") as ours:
        await ours.wish(peer.criteria(50, end_us=now_us() + 3_600_000_000))
        await ours.until("problem of the way", lambda: ours.requester.link.problem is not None)
        problem = ours.requester.link.problem
        assert problem is not None
        print(f"SENTENCE {peer.name} {whose}: {sentence(ours.requester.link)}")
        assert problem.kind in expected, problem
        assert "neither granted nor refused" in sentence(ours.requester.link)
        assert ours.is_(Standing.ASKING)
    assert await existing(right) == []


async def test_a_provider_that_is_away_has_refused_nothing(peer: Peer, tmp_path: Path) -> None:
    provider = replace(peer.provider(), url="https://127.0.0.1:7/nsi")
    async with hub(provider, tmp_path / "records") as ours:
        await ours.wish(peer.criteria(50))
        await ours.until("problem of the way", lambda: ours.requester.link.problem is not None)
        problem = ours.requester.link.problem
        assert problem is not None
        assert problem.kind is Kind.UNREACHABLE
        assert ours.is_(Standing.ASKING)
    async with hub(peer.provider(), tmp_path / "records") as ours:
        await ours.until_standing(Standing.ACTIVE)
        await ours.cancel()
        await ours.until_standing(Standing.ENDED)
    assert await existing(peer.provider()) == []


async def until_gone(ours: Hub) -> None:
    """Also what was refused may exist at the provider until the hub removes it: OpenNSA lists some of it."""
    deadline_s = time.monotonic() + 120
    while there := await existing(ours.provider):
        assert time.monotonic() < deadline_s, there
        await asyncio.sleep(min(await ours.requester.turn(), POLL_S))
