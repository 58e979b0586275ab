"""Transports that are not there: the reason is the one of this host."""

from pathlib import Path

import pytest

from downburst.host.absent_transports import absent_transports


def reasons(root: Path) -> dict[str, str]:
    return {one.name: one.reason for one in absent_transports(root)}


def kept(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_host_without_any_of_them_is_described_so(tmp_path: Path) -> None:
    found = reasons(tmp_path)
    assert "no RDMA device" in found["rdma"]
    assert found["100g"] == "no network card of this host reports its speed"
    assert "has no MPTCP" in found["mptcp"]


def test_devices_that_are_there_are_named_and_not_used(tmp_path: Path) -> None:
    for device in ("mlx5_1", "mlx5_0"):
        (tmp_path / "sys/class/infiniband" / device).mkdir(parents=True)
    kept(tmp_path, "sys/class/net/eth0/speed", "10000\n")
    kept(tmp_path, "sys/class/net/eth1/speed", "100000\n")
    kept(tmp_path, "proc/sys/net/mptcp/enabled", "1\n")
    found = reasons(tmp_path)
    assert found["rdma"].startswith("this host has mlx5_0, mlx5_1, but")
    assert found["100g"].startswith("eth1 of this host has 100 Gb/s")
    assert "has MPTCP (net.mptcp.enabled=1), and the product has no use for it" in found["mptcp"]


@pytest.mark.parametrize(
    ("speeds", "expected"), [(["-1", "x"], "no network card"), (["1000", "25000"], "eth1 with 25")]
)
def test_speeds_that_are_none_do_not_count(tmp_path: Path, speeds: list[str], expected: str) -> None:
    for number, speed in enumerate(speeds):
        kept(tmp_path, f"sys/class/net/eth{number}/speed", speed)
    kept(tmp_path, "proc/sys/net/mptcp/enabled", "0\n")
    found = reasons(tmp_path)
    assert expected in found["100g"]
    assert "but it is off (net.mptcp.enabled=0)" in found["mptcp"]


def test_this_host_has_a_reason_for_each() -> None:
    found = absent_transports()
    assert [one.name for one in found] == ["rdma", "100g", "mptcp"]
    assert all(one.reason and "\n" not in one.reason for one in found)
