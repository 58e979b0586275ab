"""Bad input to `downburst demo` and `downburst play`: one sentence, before anything is started."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from downburst.foundation.errors import BadInput, BadName, Failure
from downburst_app.cli import app


def run(*arguments: str) -> BaseException | None:
    return CliRunner().invoke(app, list(arguments)).exception


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("demo", "--data", "x", "--trace", "y"), "exclude each other"),
        (("demo", "--minutes", "1"), "give --trace"),
        (("demo", "--data", "/nonexistent/x"), "not a directory"),
        (("demo", "--trace", "/nonexistent/x"), "can't be read"),
        (("demo", "--exit", "--report", "/proc/nothing/report.json"), "can't be written"),
        (("play", "/nonexistent/x", "--feed", "NGRID"), "can't be read"),
        (("play",), "play either a trace"),
        (("play", "/nonexistent/x"), "play either a trace"),
        (("play", "/nonexistent/x", "--feed", "NGRID", "--mix", "idd-2024"), "play either a trace"),
        (("play", "/nonexistent/x", "--feed", "NGRID", "--rate", "2"), "play either a trace"),
        (("play", "--mix", "idd-2024", "--speed", "2"), "play either a trace"),
    ],
)
def test_what_can_not_be_used_is_said(arguments: tuple[str, ...], part: str) -> None:
    error = run(*arguments)
    assert isinstance(error, BadInput)
    assert part in error.sentence


def test_a_feed_name_with_blanks_is_refused_before_the_trace_is_read() -> None:
    error = run("play", "/nonexistent/x", "--feed", "NO BLANKS")
    assert isinstance(error, BadName)


def test_a_hub_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text("10 20150615000000.009\n")

    async def refused(_host: str, _port: int) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr("asyncio.open_connection", refused)
    monkeypatch.setattr(sys.modules["downburst_app.cli.feeds.play"], "PATIENCE_S", 0.0)
    error = run("play", str(trace), "--feed", "NGRID", "--hub", "http://127.0.0.1:1")
    assert isinstance(error, Failure)
    assert "http://127.0.0.1:1 does not answer" in error.sentence


def test_a_directory_with_something_in_it_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    error = run("demo", "--seconds", "1", "--exit", "--keep", str(tmp_path))
    assert isinstance(error, BadInput)
    assert "is not empty" in error.sentence
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_disk_that_is_too_small_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downburst_app.demo.stage.SPARE_BYTES", 10**18)
    error = run("demo", "--seconds", "1", "--exit", "--keep", str(tmp_path / "demo"))
    assert isinstance(error, Failure)
    assert "fewer --sites" in error.sentence
    assert list((tmp_path / "demo").iterdir()) == []
