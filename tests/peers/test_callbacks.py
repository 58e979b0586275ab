"""A real provider's callbacks: they hurry the life of a circuit."""

from pathlib import Path

import pytest

from downburst_circuits.nsi.order import Standing
from kit.peers.callbacks import listening
from kit.peers.hub import existing, hub, now_us
from kit.peers.peer import REQUESTER, Peer

pytestmark = pytest.mark.peers


async def test_callbacks_arrive_by_mutual_tls_and_are_understood(peer: Peer, tmp_path: Path) -> None:
    own = peer.authority.sign(REQUESTER)
    with listening(own) as listener:
        provider = peer.provider(own, reply_to=listener.url)
        async with hub(provider, tmp_path / "records") as ours:
            listener.attach(ours)
            await ours.wish(peer.criteria(50, end_us=now_us() + 3_600_000_000))
            active_s = await ours.until_standing(Standing.ACTIVE)
            await ours.cancel()
            gone_s = await ours.until_standing(Standing.ENDED)
            await ours.until("callbacks of the end", lambda: listener.heard.count("Confirmed") >= LEAST_CONFIRMED)
        assert await existing(provider) == []
    print(f"FIGURES {peer.name} with callbacks: active {active_s:.1f} s, gone {gone_s:.1f} s; {listener.heard}")
    assert "Reserved" in listener.heard
    assert "DataPlaneChanged" in listener.heard
    assert listener.refused == []


LEAST_CONFIRMED = 3
"""Of commit, provision, release and terminate; the last may be under way when the list lacks the reservation."""
