"""The measurement of a disk: its choice of rows, and runs that become rows with the right goals."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from bench.disk import __main__ as command
from bench.disk import cases, giant, rows
from bench.disk.cases import FULL, Bench
from bench.disk.durable import PRODUCT_BYTES, Durable, planned, raw_s
from bench.disk.giant import Giant, result
from bench.disk.site_cpu import SiteCpu
from bench.disk.writing import Writing
from bench.harness.disk import Written
from bench.harness.memory import Memory
from bench.harness.report import Row
from bench.harness.stamps import Stamps
from bench.product.http_hub import PIECE_BYTES, differences, noise

MIB = 1 << 20


def wrote(api: int, node: int, site: int, device: int | None = None) -> Writing:
    parts = {"api": Written(api, 1_100), "node": Written(node, 900), "site": Written(site, 2_000)}
    return Writing(1_000, parts, device, took_s=0.001)


def test_the_hub_is_the_sum_of_its_processes() -> None:
    one = wrote(1_000, 20, 2_030, 3_100)
    assert (one.at_hub, one.at_site, one.by_device, one.by_calls("node")) == (1.02, 2.03, 3.1, 0.9)


def test_bytes_are_held_to_their_goal_beside_uftp_and_the_device() -> None:
    runs = [wrote(1_000, 20, 2_030, 3_100), wrote(1_000, 0, 2_000, 3_000), wrote(1_000, 40, 2_050, None)]
    peer = [Writing(1_000, {"site": Written(1_010, 1_000)}, None, 1.0)]
    site, hub, device = rows.rows_of_writing("1 MB", runs, peer)
    assert (site.ours, site.against, site.theirs, site.met) == (2.03, rows.UFTP, 1.01, False)
    assert (hub.ours, hub.theirs, hub.met) == (1.02, None, True)
    assert (device.ours, device.theirs, device.met) == (3.05, 3.05, None)


def test_a_disk_without_a_block_device_and_a_missing_peer_leave_their_figures_out() -> None:
    found = rows.rows_of_writing("1 MB", [wrote(0, 1_000, 1_000)], [])
    assert [(row.theirs, row.met) for row in found] == [(None, True), (None, True)]


def test_the_note_has_each_process() -> None:
    note = rows.note_of_writing("1 MB", [wrote(1_000, 20, 2_030)])
    assert "api 1.000 to the disk and 1.100 in write calls; node 0.020 " in note
    assert note.endswith("1 MB/s from upload to file.")


def test_a_sites_cpu_is_judged_by_multicast_alone() -> None:
    runs = [SiteCpu(500_000_000, spent, {"files": 0.2, "store": spent - 0.2}, 8e8) for spent in (0.9, 1.1, 1.3)]
    multicast, unicast = rows.rows_of_site_cpu({rows.MULTICAST: runs, rows.UNICAST: runs})
    assert (multicast.ours, multicast.met, unicast.met) == (2.2, False, None)
    assert rows.note_of_site_cpu("multicast", runs).startswith(
        "Row 2, multicast, s/GB by thread: store 1.80, files 0.40. 800 Mb/s."
    )


def test_a_thread_that_a_run_lacks_counts_as_nothing_there() -> None:
    runs = [SiteCpu(10**9, 1, {"store": 1.0}, 8e8), SiteCpu(10**9, 1, {}, 8e8), SiteCpu(10**9, 1, {}, 8e8)]
    assert "store" not in rows.note_of_site_cpu("multicast", runs)


def memory(growth_mib: int) -> Memory:
    return Memory(10 * MIB, 5 * MIB, (10 + growth_mib) * MIB, 500 * MIB)


def test_a_giant_is_held_to_the_latency_of_warnings_and_to_flat_memory() -> None:
    parts = {"node": memory(64), "site": memory(65)}
    run = Giant(5_000_000_000, 20, 10, 70.0, 40.0, 900, 500, parts, wrote(1_000, 1_000, 3_000))
    travelling, uploading, rate, at_site, at_hub, *of_memory = rows.rows_of_giant([run])
    assert (at_site.ours, at_site.met, at_hub.ours, at_hub.met) == (3, False, 2, False)
    assert (travelling.ours, travelling.met, uploading.ours, uploading.met) == (40, True, 70, None)
    assert (rate.ours, "5 GB" in rate.case) == (500, True)
    assert [(row.ours, row.met) for row in of_memory] == [(64, True), (500, None), (65, False), (500, None)]
    note = rows.note_of_giant([run])
    assert "upload 20.0 s with 45 warnings a second, from there to the file 10.0 s with 50;" in note
    assert "node 69 MiB, site 70 MiB" in note


def warnings_at(*moments_ms: tuple[int, int]) -> Stamps:
    """Warnings by the times at which hub and site stored them."""
    lines = [(0, number, 2_000, 0, hub * 1_000, site * 1_000) for number, (hub, site) in enumerate(moments_ms)]
    return Stamps((giant.WARNINGS,), "", 0, np.array(lines, dtype=np.int64).reshape(-1, 6))


def test_warnings_count_for_the_span_in_which_the_hub_stored_them() -> None:
    stamps = warnings_at((500, 900), (1_500, 1_520), (2_500, 2_503), (3_010, 3_017), (3_500, 4_000))
    found = result([1.0, 2.0, 3.0], stamps, {}, wrote(0, 1, 1))
    assert (found.p99_uploading_ms, found.p99_travelling_ms) == (20, 7)
    assert (found.warnings_uploading, found.warnings_travelling) == (1, 2)
    assert (found.uploaded_s, found.travelled_s, found.size_bytes) == (1, 1, 1_000)


def test_a_giant_without_warnings_beside_it_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="nothing was measured"):
        result([1.0, 2.0, 3.0], warnings_at((1_500, 1_520)), {}, wrote(0, 1, 1))


def test_durable_products_stand_beside_the_disk_alone() -> None:
    [row] = rows.rows_of_durable(64, [Durable(100, 800, 1_000), Durable(100, 900, 1_000), Durable(100, 700, 1_600)])
    assert (row.ours, row.theirs, row.ratio, row.goal) == (800, 1_000, 0.8, None)
    assert row.against == "write + fdatasync of 64"


def test_the_disk_alone_writes_all_products(tmp_path: Path) -> None:
    assert raw_s(tmp_path / "raw", 5, 2) > 0
    assert (tmp_path / "raw").stat().st_size == 5 * PRODUCT_BYTES
    assert len({product.product_id for product in planned(5)}) == 5


def test_noise_has_its_size_and_differs() -> None:
    sizes = (0, 5, PIECE_BYTES, 2 * PIECE_BYTES + 3)
    assert [sum(map(len, noise(1, size))) for size in sizes] == list(sizes)
    first, second = noise(1, 2 * PIECE_BYTES)
    assert first != second
    assert b"".join(noise(1, 2_000)) != b"".join(noise(2, 2_000))


def test_files_are_compared_with_the_uploads() -> None:
    sent = {"a": "1", "b": "2", "c": "3"}
    assert differences(sent, list(sent.items())) == []
    assert differences(sent, [("a", "1"), ("a", "1"), ("b", "9"), ("d", "4")]) == [
        "a is there twice or was not sent",
        "b has other bytes",
        "d is there twice or was not sent",
        "c is missing",
    ]


def test_every_row_has_a_title_and_can_be_chosen() -> None:
    assert set(command.CASES) == set(rows.TITLES)
    assert command._rows("1, 4") == ["1", "4"]
    with pytest.raises(argparse.ArgumentTypeError, match="there is no row 5; there are 1, 2, 3, 4"):
        command._rows("1,5")


def test_amounts_shrink_to_a_minimum() -> None:
    small = FULL.times(0.001)
    assert (small.written_bytes, small.giant_bytes, small.durable_products) == (10_000_000, 50_000_000, 100)
    assert FULL.times(1) == FULL


def test_a_directory_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "file_system", lambda directory: "tmpfs")
    assert command.main(["--directory", str(tmp_path)]) == 2
    assert f"{tmp_path} lies in memory (tmpfs)" in capsys.readouterr().err


def test_a_failed_case_is_noted_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(bench: Bench) -> list[Row]:
        """Row 1."""
        raise RuntimeError("the disk is away")

    def measures(bench: Bench) -> list[Row]:
        return rows.rows_of_durable(1, [Durable(100, 50, 60)])

    monkeypatch.setattr(command, "file_system", lambda directory: "ext4")
    monkeypatch.setattr(command, "CASES", {"1": fails, "4": measures})
    out = tmp_path / "out.json"
    assert command.main(["--directory", str(tmp_path), "--scale", "0.5", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert [row["id"] for row in found["rows"]] == ["4"]
    assert found["notes"][-2:] == ["Amounts were multiplied by 0.5.", "NOT MEASURED, Row 1. the disk is away"]
    assert found["machine"]["file_system"] == "ext4"
    assert list(tmp_path.iterdir()) == [out]
    assert "the disk is away" in capsys.readouterr().out


def test_uftp_is_left_out_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "reasons", lambda: {"bridge": "not root", "veth": ""})
    bench = Bench(tmp_path, 1, FULL)
    assert bench._uftp() == []
    assert bench.notes == ["uftp is left out: not root"]
    assert Bench(tmp_path, 1, FULL, only_ours=True)._uftp() == []
