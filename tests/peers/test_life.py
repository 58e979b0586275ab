"""The life of a circuit at a real provider, from the order to its end, with traffic through it."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst_circuits.nsi.order import Standing
from downburst_circuits.nsi.refusals import Kind
from kit.patience import wait_for
from kit.peers.hub import Hub, existing, hub, now_us
from kit.peers.peer import Peer
from kit.peers.plane import Access

pytestmark = pytest.mark.peers

HOUR_US = 3_600_000_000


async def test_a_circuit_carries_traffic_at_its_rate_is_changed_and_is_gone(peer: Peer, tmp_path: Path) -> None:
    provider = peer.provider()
    async with hub(provider, tmp_path / "records") as ours:
        await ours.wish(peer.criteria(50, end_us=now_us() + HOUR_US))
        active_s = await ours.until_standing(Standing.ACTIVE)
        with access_of(peer, ours) as access:
            assert_carries(access, 50)
        changed_s = await changed(peer, ours, 20)
        assert [one.connection_id for one in await existing(provider)] == list(ours.known())
        with access_of(peer, ours) as access:
            assert_carries(access, 20)
            gone_s = await given_back(peer, ours)
            assert not access.answers()
    took = {name: f"{min(times):.0f}-{max(times):.0f}" for name, times in ours.way.took_ms.items()}
    print(f"FIGURES {peer.name}: active {active_s:.1f} s, changed {changed_s:.1f} s, gone {gone_s:.1f} s; ms: {took}")


async def test_a_circuit_without_begin_and_end_stays_until_it_is_given_back(peer: Peer, tmp_path: Path) -> None:
    async with hub(peer.provider(), tmp_path / "records") as ours:
        await ours.wish(peer.criteria(10))
        await ours.until_standing(Standing.ACTIVE)
        granted = ours.verdict().granted
        assert granted is not None
        assert granted.end_us is None
        await given_back(peer, ours)


async def test_a_circuit_ordered_ahead_is_provisioned_at_once_and_active_at_its_begin(
    peer: Peer, tmp_path: Path
) -> None:
    begin_us = now_us() + 15_000_000
    async with hub(peer.provider(), tmp_path / "records") as ours:
        await ours.wish(peer.criteria(10, begin_us=begin_us, end_us=begin_us + HOUR_US))
        await ours.until_standing(Standing.ORDERED)
        assert peer.plane.paths() == []
        await ours.until_standing(Standing.ACTIVE)
        assert now_us() >= begin_us
        await given_back(peer, ours)


async def test_a_path_that_dies_behind_the_provider(peer: Peer, tmp_path: Path) -> None:
    """Some providers end the reservation; others report it active for ever, and only probes tell."""
    async with hub(peer.provider(), tmp_path / "records") as ours:
        await ours.wish(peer.criteria(10, end_us=now_us() + HOUR_US))
        await ours.until_standing(Standing.ACTIVE)
        with access_of(peer, ours) as access:
            wait_for("answer through the circuit", access.answers, 20)
            (path,) = peer.plane.paths()
            peer.plane.cut(path)
            assert not access.answers()
        if peer.known.notices_a_cut:
            await ours.until_standing(Standing.FAILED)
            problem = ours.verdict().problem
            assert problem is not None
            assert problem.kind is Kind.ENDED
    async with hub(peer.provider(), tmp_path / "records") as restarted:
        await restarted.requester.turn()
        assert restarted.is_(Standing.FAILED if peer.known.notices_a_cut else Standing.ACTIVE)
        await restarted.cancel()
        await restarted.until("end of the reservation", lambda: not restarted.known())
    assert await existing(peer.provider()) == []


async def changed(peer: Peer, ours: Hub, capacity_mbps: int) -> float:
    """Changes the rate, if need be by a second reservation; returns the seconds until only the new one exists."""
    await ours.change(capacity_mbps)
    replaces = peer.known.dialect is Dialect.NONE
    took_s = 0.0
    if replaces:
        took_s += await ours.until_standing(Standing.REPLACED)
        assert len(peer.plane.paths()) == 2
        await ours.switch()

    def is_done() -> bool:
        found = ours.verdict()
        has_rate = found.granted is not None and found.granted.capacity_mbps == capacity_mbps
        return found.standing is Standing.ACTIVE and has_rate and len(ours.known()) == 1

    return took_s + await ours.until("changed rate", is_done)


async def given_back(peer: Peer, ours: Hub) -> float:
    await ours.cancel()
    took_s = await ours.until_standing(Standing.ENDED)
    assert await existing(ours.provider) == []
    wait_for("end of the path", lambda: peer.plane.paths() == [], 30)
    return took_s


def access_of(peer: Peer, ours: Hub) -> AbstractContextManager[Access]:
    granted = ours.verdict().granted
    assert granted is not None
    assert granted.source.first_vlan is not None
    assert granted.dest.first_vlan is not None
    return peer.plane.access(granted.source.first_vlan, granted.dest.first_vlan)


def assert_carries(access: Access, capacity_mbps: int) -> None:
    wait_for("answer through the circuit", access.answers, 20)
    assert 0.75 * capacity_mbps < access.tcp_mbps() < 1.05 * capacity_mbps
