"""The page of symptoms: each kind of alarm has its row, and its sentences, commands and options exist."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import typer.main

from downburst.domain.alarms import AlarmKind
from downburst_app.cli import app
from unit.documentation.commands_pages import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()


def rows() -> Iterator[list[str]]:
    """The cells of each row that has a symptom."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("alarm", "symptom"):
            yield cells


def commands() -> Iterator[str]:
    yield from re.findall(r"`(downburst [^`]+)`", PAGE)
    yield from re.findall(r"^(downburst [^#\n]+)", PAGE, re.MULTILINE)


def test_each_kind_of_alarm_has_one_row() -> None:
    of_alarms = PAGE.partition("## Alarms")[2].partition("## The hub does not start")[0]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", of_alarms, re.MULTILINE)) == sorted(AlarmKind)


def test_each_row_has_a_cause_a_command_and_a_remedy() -> None:
    assert len(list(rows())) > 50
    assert [cells for cells in rows() if len(cells) != 4 or not all(cells)] == []


def test_each_quoted_sentence_is_one_of_the_product() -> None:
    known = (ROOT / "tests" / "golden" / "sentences.txt").read_text().replace("{…}", "…")
    quoted = [text for cells in rows() for text in re.findall(r"`([^`]+)`", cells[0]) if text.count(" ") > 3]
    assert len(quoted) > 15
    assert [text for text in quoted if text not in known] == []


def test_each_command_exists_with_its_options() -> None:
    wrong = []
    for command in set(commands()):
        words = shlex.split(command)[1:]
        found: Any = typer.main.get_command(app)
        while words and hasattr(found, "list_commands"):
            found = found.get_command(None, words.pop(0))
        known = {name for one in getattr(found, "params", ()) for name in (*one.opts, *one.secondary_opts)}
        if found is None or not {word for word in words if word.startswith("-")} <= known or too_many(words, found):
            wrong.append(command)
    assert len(set(commands())) > 25
    assert wrong == []


def too_many(words: list[str], command: Any) -> bool:
    """True for more arguments than the command has; an option takes the next word."""
    given = [one for before, one in pairwise(["", *words]) if not one.startswith("-") and not before.startswith("-")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    return len(given) > len(arguments) and all(one.nargs == 1 for one in arguments)


def test_each_command_of_the_node_exists() -> None:
    named = set(re.findall(r"`(downburst-node [a-z -]+)`", PAGE))
    assert len(named) > 2
    assert named <= set(re.findall(r"^## `(.*)`$", (ROOT / "docs/reference/node.md").read_text(), re.MULTILINE))
