"""Numbers of commands: each option has two limits, and refuses what is beyond them before it asks a hub."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from downburst_app.cli import app, main

Path = tuple[str, ...]
IMPOSSIBLE = ("nan", "inf", "-inf", "1e400", "many")
CLEARABLE = ("--price", "--circuit-hours-a-day", "--orders-a-day")
"""Options of an offer that take a number or a word."""


def real_numbers(command: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every option and argument with such a number, below a command."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from real_numbers(command.get_command(None, name), (*path, name))
    for parameter in command.params:
        if parameter.type_descriptor.annotation is float:
            yield path, parameter


NUMBERS = list(real_numbers(get_command(app)))


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The message of a command that refuses its arguments."""
    with pytest.raises(SystemExit) as end:
        main(list(argv))
    told = capsys.readouterr().err
    assert end.value.code == 2, told
    assert "Traceback" not in told
    return " ".join(told.replace("│", " ").split())


def test_the_walk_finds_them() -> None:
    found = {(*path, parameter.opts[0]) for path, parameter in NUMBERS}
    assert {("circuits", "add", "--shaped-share"), ("play", "--rate"), ("log", "advise", "--outage")} <= found


@pytest.mark.parametrize(
    ("path", "parameter"), [pytest.param(*one, id=" ".join((*one[0], one[1].opts[0]))) for one in NUMBERS]
)
def test_an_impossible_number_is_one_sentence(path: Path, parameter: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert parameter.min is not None, "nan and inf pass a single limit"
    assert parameter.max is not None
    beyond = (str(parameter.min - 1), str(parameter.max * 2 + 1))
    for value in (*IMPOSSIBLE, *beyond):
        given = (parameter.opts[-1], value) if parameter.param_type_name == "option" else ("NGRID", "--", value)
        told = refused(capsys, *path, *given)
        assert told.count("Invalid value for ") == 1, told
        assert "Input should be" in told


@pytest.mark.parametrize("option", CLEARABLE)
@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_an_offer_takes_no_impossible_number(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "circuits", "offers", "set", "campus", option, value)
    assert told.startswith("downburst: ")
    assert "not a number" in told
