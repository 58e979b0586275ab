"""Counters that a node recorded of its host: two files as one series."""

from pathlib import Path

import pytest

from downburst.foundation.errors import BadInput
from downburst_analyze.counters import counters
from downburst_app.cli.analysis.own_days import OwnDays, _hub_counters

HEADER = "time_us,host,cpu_busy,cpu_iowait,disk_busy,net_in_bytes_total,net_out_bytes_total,load\n"
SECOND_US = 1_000_000


def rows(seconds: range, host: str = "hub") -> str:
    return "".join(f"{at * SECOND_US},{host},0.5000,0.0100,0.2000,{at * 100},{at * 200},1.25\n" for at in seconds)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The counters of a hub's node below its data directory."""
    made = tmp_path / "node" / "counters"
    made.mkdir(parents=True)
    (made / "former.csv").write_text(HEADER + rows(range(10)))
    (made / "newest.csv").write_text(HEADER + rows(range(10, 15)))
    return made


def seconds(directory: Path) -> list[int]:
    return [at // SECOND_US for at in counters(directory)["hub"].at_us.tolist()]


def asked(data_dir: Path | None, address: str = "http://127.0.0.1:7371") -> OwnDays:
    return OwnDays(address, "NGRID", 1, transfers=True, newest=1, data_dir=data_dir)


def test_both_files_are_one_series_with_rates_in_place_of_totals(directory: Path) -> None:
    (found,) = counters(directory).values()
    assert seconds(directory) == list(range(15))
    assert set(found.columns) == {"cpu_busy", "cpu_iowait", "disk_busy", "net_in_bytes", "net_out_bytes", "load"}
    assert set(found.columns["net_out_bytes"].tolist()) == {200.0}
    (directory / "former.csv").unlink()
    assert seconds(directory) == list(range(10, 15))


def test_a_row_that_is_being_written_waits(directory: Path) -> None:
    with (directory / "newest.csv").open("a") as file:
        file.write("15000000,hub,0.5")
    assert seconds(directory)[-1] == 14


def test_former_rows_of_other_columns_and_of_a_clock_that_was_set_back_are_left_out(directory: Path) -> None:
    (directory / "newest.csv").write_text(HEADER + rows(range(5, 8)))
    assert seconds(directory) == list(range(8))
    (directory / "newest.csv").write_text(HEADER.replace("disk_busy", "disk") + rows(range(20, 22)))
    assert seconds(directory) == [20, 21]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "counters/newest.csv, line 1: no column"),
        (HEADER, "counters need at least 2 rows; there are 0"),
        (HEADER + rows(range(1)).replace("0.5", "x"), "'x000' is not a number"),
        (HEADER + rows(range(2)).replace("1000000,hub", "x,hub"), "counters/newest.csv, line 3"),
        (HEADER + rows(range(2)).replace("1000000,hub", f"{'9' * 5_000},hub"), "counters/newest.csv, line 3"),
    ],
)
def test_damaged_rows_are_one_sentence(directory: Path, content: str, says: str) -> None:
    (directory / "former.csv").unlink()
    (directory / "newest.csv").write_text(content)
    with pytest.raises(BadInput) as refused:
        counters(directory)
    assert says in refused.value.sentence
    assert "\n" not in refused.value.sentence


def test_a_hub_on_this_machine_has_its_counters_and_others_have_none(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = directory.parents[1]
    (directory / "newest.csv").write_text(HEADER + rows(range(10, 15)) + rows(range(10, 15), "sender:7370"))
    assert set(_hub_counters(asked(home))) == {"hub"}
    monkeypatch.setenv("DOWNBURST_DATA_DIR", str(home))
    assert set(_hub_counters(asked(None))) == {"hub"}
    assert _hub_counters(asked(None, "http://hub.example.edu:7371")) == {}
    assert _hub_counters(asked(home / "elsewhere")) == {}
    assert capsys.readouterr().err == ""
    (directory / "newest.csv").write_text("damaged")
    assert _hub_counters(asked(home)) == {}
    assert capsys.readouterr().err.startswith("note: the hub's own counters are left out: ")
