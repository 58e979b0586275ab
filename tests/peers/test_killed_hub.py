"""`kill -9` of the hub at each request to a real provider: it goes on from its records, and nothing is orphaned."""

import os
import random
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from kit.patience import wait_for
from kit.peers.hub import Folder, existing, now_us
from kit.peers.killed_hub import Plan
from kit.peers.peer import Peer

pytestmark = pytest.mark.peers

SEED = random.randrange(1 << 32)


@dataclass
class Story:
    """A circuit ordered at 50 Mb/s, changed to 20, and given back; the hub is killed in each part."""

    peer: Peer
    directory: Path
    kills: int = 0

    def plan(self, capacity_mbps: int | None) -> Plan:
        folder = self.directory / "records"
        folder.mkdir(exist_ok=True)
        criteria = self.peer.criteria(50, end_us=now_us() + 3_600_000_000)
        return Plan(self.peer.provider(), folder, criteria, capacity_mbps)

    def live(self, plan: Plan) -> bool:
        """One life of the hub; False if it was killed."""
        file = self.directory / "plan.json"
        file.write_bytes(TypeAdapter(Plan).dump_json(plan))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        argv = [sys.executable, "-m", "kit.peers.killed_hub", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=400, env=environment)
        if done.returncode == -9:
            print(done.stdout.strip())
            self.kills += 1
            return False
        assert done.returncode == 0, done.stderr[-3000:]
        return True

    def part(self, capacity_mbps: int | None, kill_at: int, kill_after_s: float | None) -> None:
        """A part of the life, with a kill at one request; afterwards the hub is started once more."""
        plan = self.plan(capacity_mbps)
        if not self.live(replace(plan, kill_at=kill_at, kill_after_s=kill_after_s)):
            assert self.live(plan)

    def known(self) -> set[str]:
        """Connections that the records believe to exist."""
        (order,) = Folder(self.directory / "records").orders()
        return {one.connection_id for one in order.reservations if one.connection_id and one.life.value != "gone"}


@pytest.mark.parametrize("kill_at", [1, 2, 3])
@pytest.mark.parametrize("moment", ["sent", "answered"])
async def test_a_killed_hub_reserves_once_and_orphans_nothing(
    peer: Peer, kill_at: int, moment: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{SEED} {kill_at} {moment}")
    print(f"seed {SEED}")
    story = Story(peer, tmp_path)
    for capacity_mbps in (50, 20, None):
        after_s = chance.uniform(0, 0.08) if moment == "sent" else None
        story.part(capacity_mbps, kill_at, after_s)
        there = await existing(peer.provider())
        assert {one.connection_id for one in there} == story.known()
        assert len(there) == (capacity_mbps is not None)
        wait_for("only paths of what exists", partial(has_paths, peer, len(there)), 30)
    assert story.kills >= LEAST_KILLS[kill_at]
    print(f"FIGURES {peer.name}: {story.kills} kills")


def has_paths(peer: Peer, count: int) -> bool:
    return len(peer.plane.paths()) == count


LEAST_KILLS = {1: 3, 2: 3, 3: 1}
"""Each part has a first and a second request: reserve and commit, the same for the change, release and terminate."""
