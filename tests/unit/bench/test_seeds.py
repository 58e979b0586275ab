"""The published figures: numbered, modelled by the live code, and on the page as the data module has them."""

import json
from argparse import Namespace
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bench import spacing
from bench.harness.counters import LinkBytes
from bench.harness.delivery import Delivery
from bench.harness.report import Goal, Row
from bench.peers.peer_to_peer import part_of
from bench.probes.rows import MEASURES
from bench.seeds import feeds
from bench.seeds.__main__ import Run, change, measure, needed
from bench.seeds.figures import FIGURES, Published
from bench.seeds.figures.published import SOURCES, UVA
from bench.seeds.measures import GROUPS, Group, Wanted
from bench.seeds.measures.fan_out import last_site_s
from bench.seeds.models import MODELS, agrees, vcmtp_rate
from bench.seeds.page import NAMES, page, row_cells, row_of
from bench.seeds.rows import BY_ID, MEASURED, Studied, Verdict, by_id, studied

from downburst_scheduler.models import rates

PAGE = Path(__file__).parents[3] / "docs" / "studies.md"
ROW = Row("D3", "a case", "Mb/s", 3_500, "model", 3_467, 1, Goal("ratio", "1 +-", 0.1))


def test_each_figure_has_a_number_and_a_source() -> None:
    assert not [name for name, count in Counter(one.id for one in FIGURES).items() if count > 1]
    assert not [one.id for one in FIGURES if not (one.figure and one.published)]
    assert {one.source for one in FIGURES} == set(SOURCES)
    assert {f"W{number}" for number in range(1, 21)} <= BY_ID.keys(), "all worked examples are rows"
    assert set(MODELS) <= BY_ID.keys()


def test_each_row_is_measured_or_modelled_or_names_the_missing_device() -> None:
    assert len(MEASURED) >= 30
    assert not [one.id for one in FIGURES if one.id not in MEASURED and not one.missing and one.id not in MODELS]
    assert not [one.id for one in FIGURES if one.id in MEASURED and one.missing]
    listed = [name for group in GROUPS.values() for name in group.rows]
    assert set(listed) <= BY_ID.keys()
    compared = [name for name, model in MODELS.items() if model.within is not None]
    assert not [name for name in compared if BY_ID[name].value is None]


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.within is not None])
def test_a_model_gives_the_published_figure(name: str) -> None:
    found = MODELS[name].of()
    assert agrees(BY_ID[name], found, MODELS[name].within), f"{found}, published {BY_ID[name].value}"


def test_the_best_rate_of_vcmtp_turns_between_three_and_four_receivers() -> None:
    assert [vcmtp_rate(receivers) for receivers in (1, 3, 4, 7)] == [800, 800, 600, 600]


@pytest.mark.parametrize(
    ("constant", "value", "rows"),
    [
        ("downburst_scheduler.models.rates.RELAYED_SHARE", 0.5, ("R1", "R2", "W16")),
        ("downburst_analyze.sessions.TIMES_THE_SETUP", 5, ("W10", "W11")),
    ],
)
def test_a_changed_constant_of_a_model_turns_rows_red(
    monkeypatch: pytest.MonkeyPatch, constant: str, value: float, rows: tuple[str, ...]
) -> None:
    monkeypatch.setattr(constant, _value_of(constant))
    measured = by_id(replace(ROW, id=name) for name in rows)
    assert {row.verdict for row in studied(rows, measured)} == {Verdict.HOLDS}
    change(constant, value)
    assert {row.verdict for row in studied(rows, measured)} == {Verdict.DIFFERS}


def test_a_changed_constant_lasts_for_a_test_only() -> None:
    assert rates.RELAYED_SHARE == 0.85


def test_the_verdict_is_the_worst_of_model_and_measurements() -> None:
    assert _verdict("D3") is Verdict.NOT_MEASURED
    assert _verdict("D3", ROW) is Verdict.HOLDS
    assert _verdict("D3", ROW, replace(ROW, ours=2_000)) is Verdict.DIFFERS
    assert _verdict("B14") is Verdict.MISSING
    assert _verdict("W1") is Verdict.HOLDS
    unlike = Studied(Published("X", "figure", "1", UVA, 1.0), 2.0, 0.01, model_agrees=False)
    assert unlike.verdict is Verdict.DIFFERS


def test_a_failed_measurement_is_repeated_once_and_noted() -> None:
    tries = []

    def failing(directory: Path, _wanted: Wanted) -> list[Row]:
        tries.append(directory)
        if len(tries) == 1:
            raise RuntimeError("a site did not come")
        return [ROW]

    wanted = Wanted(1, quick=True)
    assert measure("fan", Group(("D3",), failing), wanted) == [ROW]
    assert wanted.notes == ["failed and was repeated: fan: a site did not come"]


def test_a_measurement_that_skips_twice_is_left_out_by_name() -> None:
    def lagging(_directory: Path, _wanted: Wanted) -> list[Row]:
        raise pytest.skip.Exception("the wire lagged")

    wanted = Wanted(1, quick=True)
    assert measure("knee", Group(("U9",), lagging), wanted) == []
    assert wanted.notes[-1] == "NOT MEASURED, knee: the wire lagged"


def test_a_resumed_run_measures_the_rows_that_it_lacks_or_that_are_named(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    document = {"rows": [row.as_json() for row in studied(["C2", "B5"], by_id([replace(ROW, id="C2")]))]}
    out.write_text(json.dumps(document | {"notes": ["NOT MEASURED, set-up: no vxlan", "NOT MEASURED, soak: busy"]}))
    rest, again = (_resumed(out, only) for only in (None, ["C2"]))
    assert (set(BY_ID) - {"C2"}, len(rest.ids)) == (set(rest.to_measure), len(BY_ID))
    assert (again.to_measure, again.ids) == (["C2"], ["C2", "B5"])
    assert list(needed(again.to_measure)) == ["set-up"]
    assert again.wanted.notes == ["NOT MEASURED, soak: busy"]


def test_traffic_is_measured_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNBURST_DATA", str(tmp_path))
    feeds.hour.cache_clear()
    wanted = Wanted(1, quick=True)
    names = ("sessions", "releases", "heavy", "variance")
    rows = [row for name in names for row in GROUPS[name].measure(tmp_path, wanted)]
    feeds.hour.cache_clear()
    assert [row.id for row in rows if not row.met] == []
    assert len(wanted.notes) == 1, "the recorded hour is missing, and a made-up one stands in, by name"
    assert "made-up NGRID hour" in rows[0].case


def test_rows_of_other_measurements_get_the_numbers_of_published_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manners = [spacing.Run(manner, 0, share, 4.0, 1.0) for manner, share in (("blocking", 0.2), ("adaptive", 0.7))]
    polling = spacing.Run("polling", 0, 1.0, 3.0, 1.0)
    monkeypatch.setattr(spacing, "measured", lambda _seconds, *, debug: [*manners, polling])
    monkeypatch.setitem(MEASURES, "soak", lambda *_: [replace(ROW, id="9"), replace(ROW, id="10"), ROW])
    wanted = Wanted(1, quick=True)
    of_spacing, of_soak = (GROUPS[name].measure(tmp_path, wanted) for name in ("spacing", "soak"))
    assert [(row.id, row.met) for row in of_spacing] == [("U1", True), ("U2", True), ("U3", True)]
    assert [row.id for row in of_soak] == ["U11", "U12"]


def test_a_delivery_without_all_sites_is_no_result() -> None:
    links = dict.fromkeys(("hub", "one", "two"), LinkBytes(0, 0))
    assert last_site_s(Delivery(1, {"one": 1.0, "two": 3.0}, 0.0, links)) == 3.0
    with pytest.raises(RuntimeError, match="1 of 2 sites stayed incomplete"):
        last_site_s(Delivery(1, {"one": 1.0}, 0.0, links))


@pytest.mark.parametrize("size", [0, 1, 6, 7, 1_000_003])
def test_the_parts_of_peers_cover_a_file_once(size: int) -> None:
    parts = [part_of(size, number, 7) for number in range(7)]
    assert (parts[0][0], parts[-1][1]) == (0, size)
    assert all(end == begin for (_, end), (begin, _) in pairwise(parts))


def test_a_page_shows_each_row_of_its_document() -> None:
    rows = studied(["D3", "B14", "W9"], by_id([ROW, replace(ROW, case="another", ours=1_000)]))
    shown = [line for line in page(_document(rows)).splitlines() if line.startswith(("| D", "| B", "| W"))]
    assert [row_cells(line)[0] for line in shown] == ["D3", "B14", "W9"]
    assert "another: 1000 Mb/s, model 3467 Mb/s, ratio 0.288 (ratio 1 +- 0.1: **not met**)" in shown[0]
    assert row_cells(shown[1])[5:] == ["missing: a network card with RDMA", "missing"]
    assert row_cells(shown[2])[4] == "unicast"
    assert "3 rows, 1 of them measured: 1 hold, 1 differ, 1 missing." in " ".join(page(_document(rows)).split())
    noted = page(_document(rows) | {"notes": ["NOT MEASURED, knee: " + "a long reason " * 20]})
    assert max(len(line) for line in noted.splitlines() if not line.startswith("|")) <= 120


def test_the_page_in_the_docs_agrees_with_the_data_module_and_the_models() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and " --- " not in line]
    on_page = {cells[0]: cells for line in lines if (cells := row_cells(line)) != NAMES}
    assert list(on_page) == [one.id for one in FIGURES]
    for row in studied(BY_ID, {}):
        written = row_cells(row_of(row.as_json()))
        assert on_page[row.published.id][:5] == written[:5]
    verdicts = Counter(cells[6] for cells in on_page.values())
    assert sum(verdicts.values()) == len(FIGURES)
    assert set(verdicts) <= set(Verdict)


def _resumed(out: Path, only: list[str] | None) -> Run:
    options = Namespace(only=only, resume=True, out=out, docs=None, changed=[], models=False)
    return Run(options, Wanted(1, quick=True))


def _verdict(name: str, *rows: Row) -> Verdict:
    (row,) = studied([name], by_id(rows))
    return row.verdict


def _value_of(constant: str) -> Any:
    module, _, name = constant.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def _document(rows: list[Studied]) -> dict[str, Any]:
    machine = {"cores": 2, "memory_bytes": 2**33, "kernel": "6.1.0", "load_1min": 0.1, "load_1min_after": 1.0}
    described = {"date": "2026-01-31", "extent": "1 run of each, quick", "machine": machine, "notes": []}
    return described | {"rows": [row.as_json() for row in rows]}
