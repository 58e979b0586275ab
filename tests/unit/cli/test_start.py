"""The start of the command line: its help loads no library that only a running command needs, and lists them all."""

import json
import subprocess
import sys
from importlib.metadata import version
from typing import Any, get_args

import pytest
import typer.main

from downburst_app.cli import COMMANDS, analyze, app, main
from downburst_app.cli.feeds.generate import PROFILES
from downburst_app.play.profiles import profiles
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.repair import Repair

OF_HELP = {"typer", "rich", "annotated_doc", "shellingham", "pygments", "markdown_it", "mdurl", "attr"}
"""Typer, and those that it loads to print help."""
OWN = {"downburst", "downburst_app", "downburst_worker", "downburst_measurements"}
LOADED = """
import json, sys
before = set(sys.modules)
import typer.main
from downburst_app.cli import app, main

def help_of(*path):
    sys.stdout = open("/dev/null", "w")
    try:
        main([*path, "--help"])
    except SystemExit as end:
        assert not end.code, path
    loaded[" ".join(path)] = sorted(set(sys.modules) - before)
    before.update(sys.modules)

def below(command, *path):
    help_of(*path)
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        below(command.get_command(None, name), *path, name)

loaded = {}
below(typer.main.get_command(app))
sys.__stdout__.write(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Modules that the help of each command loaded, after those of the commands before it."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_help_loads_no_library_that_only_a_running_command_needs(loaded: dict[str, list[str]]) -> None:
    known = OF_HELP | OWN | set(sys.stdlib_module_names)
    others = {name: {module.partition(".")[0] for module in modules} - known for name, modules in loaded.items()}
    assert {name: modules for name, modules in others.items() if modules} == {}


@pytest.mark.parametrize("room", ["downburst.ledger", "downburst.settings.hub", "downburst_app.wiring"])
def test_help_loads_no_heavy_room(loaded: dict[str, list[str]], room: str) -> None:
    assert [name for name, modules in loaded.items() if room in modules] == []


def test_the_list_of_commands_loads_none_of_them(loaded: dict[str, list[str]]) -> None:
    assert [module for module in loaded[""] if module.startswith("downburst_app.cli.")] == []


def test_every_command_is_listed_with_the_begin_of_its_own_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert ended("--help") == 0
    listed = capsys.readouterr().out
    group: Any = typer.main.get_command(app)
    for name, (_, line) in COMMANDS.items():
        assert any(name in row.split() and line in row for row in listed.splitlines()), name
        whole = " ".join(group.get_command(None, name).help.split())
        assert whole.startswith(line.removesuffix(".")), name


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(option) == 0
    assert capsys.readouterr().out == f"downburst {version('downburst')}\n"


def test_an_unknown_command_and_none_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("feed") == 2
    assert "No such command 'feed'" in capsys.readouterr().err
    assert ended() == 2


def test_choices_that_are_written_out_are_those_of_the_models() -> None:
    assert tuple(profiles()) == PROFILES
    assert get_args(get_args(analyze.ServingOrder)[0]) == tuple(Order)
    assert get_args(get_args(analyze.LossRepair)[0]) == tuple(Repair)


def ended(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    return int(end.value.code or 0)
