"""Health is the result of the last round of probes; a probe that hangs is neither awaited nor begun twice."""

import asyncio
from pathlib import Path

import httpx
import pytest

from downburst.foundation.errors import DiskFull, Failure, NotWritable
from downburst.settings.alarms import AlarmSettings
from downburst.supervision import probes
from downburst.supervision.disk import Reserve, prove_room
from downburst.supervision.outside import DeadMan
from downburst.supervision.probes import Probes


async def well() -> None:
    return


async def test_finding_14_probes_that_fail_are_named_with_their_sentence() -> None:
    async def refused() -> None:
        raise Failure("the ledger is locked")

    async def unknown() -> None:
        raise KeyError("x")

    seen = Probes({"node": well, "ledger": refused, "store": unknown})
    assert [one.name for one in seen.failing()] == ["event-loop"]
    await seen.look()
    assert {one.name: one.fault for one in seen.failing()} == {
        "ledger": "the ledger is locked",
        "store": "KeyError: 'x'",
    }
    assert [one.name for one in seen.failing("node", "store")] == ["store"]


async def test_finding_14_a_probe_that_hangs_is_begun_once_and_fails_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "LIMIT_S", 0.01)
    go, begun = asyncio.Event(), 0

    async def hangs() -> None:
        nonlocal begun
        begun += 1
        await go.wait()

    now_s = [0.0]
    seen = Probes({"node": hangs, "ledger": well}, now_s=lambda: now_s[0])
    for _ in range(3):
        await seen.look()
        now_s[0] += 5
    assert (begun, [one.fault for one in seen.failing("node")]) == (1, ["no answer within 0.01 s"])
    assert seen.failing_s("node") == 15
    go.set()
    await asyncio.sleep(0)
    await seen.look()
    assert seen.failing() == []
    assert seen.failing_s("node") == 0


async def test_rounds_side_by_side_share_the_probes_at_work() -> None:
    begun = 0

    async def looks() -> None:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0)

    seen = Probes({"node": looks})
    await asyncio.gather(seen.look(), seen.look())
    assert (begun, seen.failing()) == (1, [])
    await seen.look()
    assert (begun, seen.failing()) == (2, [])


async def test_rounds_that_do_not_end_and_a_loop_that_stands_are_failures() -> None:
    now_s = [0.0]
    seen = Probes({"node": well}, now_s=lambda: now_s[0])
    await seen.look()
    now_s[0] += 60
    assert [one.name for one in seen.failing("node")] == ["rounds"]
    await seen.look()
    assert [one.name for one in seen.failing("node")] == ["event-loop"]


async def test_the_outside_is_told_only_while_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return httpx.Response(500 if len(asked) == 1 else 200)

    signal = DeadMan("https://outside.example/x", 60, httpx.MockTransport(answer))
    for now_s in (0.0, 5.0, 10.0, 64.9, 65.1):
        await signal.tell(now_s)
    assert asked == ["POST"] * 3
    await DeadMan("", 60, httpx.MockTransport(answer)).tell(0.0)
    assert len(asked) == 3


def test_a_dead_mans_address_that_can_not_be_used_is_refused() -> None:
    with pytest.raises(ValueError, match="it is not a URL"):
        AlarmSettings(dead_man_url="http://[")


def test_a_disk_that_takes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prove_room(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotWritable, match="nothing can be stored"):
        prove_room(tmp_path / "missing")

    def full(_descriptor: int, _offset: int, _bytes: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(DiskFull):
        prove_room(tmp_path)


def test_a_disk_with_too_little_room_for_a_product_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 3_000_000})()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    with pytest.raises(DiskFull, match="3,000,000 bytes are left; free some space"):
        prove_room(tmp_path)


def test_a_reserve_is_held_with_plenty_of_room_and_given_up_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {})()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    reserve, file = Reserve(tmp_path, 8_192), tmp_path / "reserve"
    for bytes_free, held in ((10_000_000, True), (5_000_000, True)):
        usage.free = bytes_free
        assert not reserve.give_up_if_full()
        reserve.hold()
        assert file.exists() == held, bytes_free
    usage.free = 3_000_000
    assert reserve.give_up_if_full()
    assert not file.exists()
    Reserve(tmp_path, 0).hold()
    assert not file.exists()
