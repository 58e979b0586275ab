"""`downburst analyze`: tables, one JSON document, and one sentence about a bad trace."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from downburst.cli.analyze import analyze

APP = typer.Typer()
APP.command()(analyze)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A hundred kilobytes each half second for a minute and a half."""
    path = tmp_path / "steady.txt"
    path.write_text("".join(f"100000 201506150000{n // 2 % 60:02d}.{n % 2 * 5}00\n" for n in range(120)))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(APP, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def test_tables_end_in_the_sentence(trace: Path) -> None:
    code, out, _ = run(trace, "--sites", 5)
    assert code == 0
    assert "products, volume, span" in out
    assert "multicast: 5 sites would cost" in out
    assert "this version of Downburst drives no circuits" in out.splitlines()[-1]


def test_json_holds_the_statistics_candidates_and_the_decision(trace: Path) -> None:
    code, out, _ = run(trace, "--sites", 5, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["transport"] == "multicast"
    assert document["reason"].startswith("multicast: 5 sites")
    assert document["traffic"]["products"] == 120
    assert [one["feasible"] for one in document["candidates"]] == [True, True, False, False]


@pytest.mark.parametrize(
    ("options", "transport"),
    [
        (["--sites", 1], "unicast"),
        (["--sites", 2], "unicast"),
        (["--sites", 30, "--capacity-mbps", 10], "multicast"),
        (["--sites", 5, "--multicast-rate-mbps", 1], "unicast"),
        (["--sites", 0], "unicast"),
    ],
)
def test_what_if(trace: Path, options: list[object], transport: str) -> None:
    assert json.loads(run(trace, "--json", *options)[1])["transport"] == transport


def test_the_objective_is_judged(trace: Path) -> None:
    assert "over the 1 ms objective" in run(trace, "--objective-ms", 1)[1]


def test_a_bad_line_is_one_sentence_with_its_number(trace: Path) -> None:
    trace.write_text(trace.read_text() + "oops\n")
    code, out, err = run(trace)
    assert (code, out) == (2, "")
    assert err.startswith("steady.txt, line 121: 'oops' is no arrival")
    assert err.count("\n") == 1


def test_an_empty_trace_has_no_traffic(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    code, out, _ = run(empty)
    assert code == 0
    assert "no traffic measured yet" in out


def test_a_missing_trace_is_said(tmp_path: Path) -> None:
    code, _, err = run(tmp_path / "none.txt")
    assert code == 2
    assert "can't be read" in err
