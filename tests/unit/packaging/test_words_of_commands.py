"""Commands in the documents, on the page and in the packaging exist as they are written."""

import itertools
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from downburst.foundation.moments import coming_moment
from downburst_app.cli import app

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    "README.md",
    "docs/operator-guide.md",
    "docs/troubleshooting.md",
    "docs/quick-start-multicast-rate.md",
    "docs/quick-start-operator.md",
    "docs/quick-start-relay.md",
    "docs/quick-start-slow-site.md",
    "docs/quick-start-viewer.md",
    "docker-compose.yml",
    "charts/downburst/templates/NOTES.txt",
    "services/dashboard/src/components/Empty.svelte",
]
COMMAND = re.compile(r"\bdownburst (?=[a-z])(?!hub\.)[^\n`]*")


def commands() -> Iterator[tuple[str, str]]:
    for source in SOURCES:
        for line in code_of(ROOT / source):
            for found in COMMAND.findall(line):
                yield source, re.split(r"[;|&>\]]|2>", found.replace("\\n", "\n").split("\n")[0])[0].strip(" \"'")


def code_of(path: Path) -> list[str]:
    text = path.read_text()
    if path.suffix != ".md":
        return text.splitlines()
    return [
        line
        for block in re.findall(r"^```[\w ]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for line in block.split("\n")
    ]


@pytest.mark.parametrize(("source", "command"), sorted(set(commands())))
def test_the_command_and_its_options_exist(source: str, command: str) -> None:
    words = [word.replace("$$", "$") for word in shlex.split(unbalanced_quote_closed(command), comments=True)][1:]
    found = whole()
    while hasattr(found, "commands"):
        assert words, f"{source}: '{command}' names no command"
        name = words.pop(0)
        assert name in inside(found), f"{source}: '{command}': there is no '{name}'"
        found = inside(found)[name]
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
    used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known, f"{source}: '{command}'"


def test_enough_commands_were_looked_at() -> None:
    looked_at = [source for source, _ in commands()]
    assert {source: looked_at.count(source) > 0 for source in SOURCES} == dict.fromkeys(SOURCES, True)


@pytest.mark.parametrize("source", ["docs/site-guide.md", "docs/quick-start-site.md", *SOURCES])
def test_options_of_the_node_exist(source: str) -> None:
    places = ("node/src/main.rs", "pqact/src/arguments.rs")
    options = "".join((ROOT / "workers" / "crates" / place).read_text() for place in places)
    starts = [line.split("receive", 1)[1] for line in code_of(ROOT / source) if "downburst-node receive" in line]
    used = {name for start in starts for name in re.findall(r"(?<![\w-])--([a-z-]+)", start)}
    assert [name for name in used if not re.search(rf"^ +{name.replace('-', '_')}: ", options, re.MULTILINE)] == []


def unbalanced_quote_closed(command: str) -> str:
    try:
        shlex.split(command)
    except ValueError:
        return command + "'" if command.count("'") % 2 else command + '"'
    return command


@cache
def whole() -> Any:
    """The command `downburst`, built once: that takes a tenth of a second."""
    return typer.main.get_command(app)


@cache
def inside(command: Any) -> dict[str, Any]:
    """The commands of a group; a command has none."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return {name: command.get_command(None, name) for name in names}


def examples() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with each example of its help."""

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        for name, inner in inside(command).items():
            yield from below(inner, (*path, name))
        for paragraph in (command.help or "").split("\n\n"):
            _, example, rest = paragraph.partition("xample")
            for line in re.split(r"(?<!\S)downburst (?=[a-z])", " ".join(rest.split()))[1:] if example else ():
                yield path, line

    yield from below(whole(), ())


@pytest.mark.parametrize(("path", "example"), sorted(set(examples())))
def test_an_example_of_the_help_is_taken_by_its_command(path: tuple[str, ...], example: str) -> None:
    read = shlex.shlex(example, posix=True, punctuation_chars=";|<>")
    read.whitespace_split = True
    words = list(itertools.takewhile(lambda word: not set(word) <= set(";|<>"), read))
    found = whole()
    while words and words[0] in inside(found):
        found = inside(found)[words.pop(0)]
    context = found.make_context(found.name, words)
    for name in ("begin", "end"):
        given = context.params.get(name)
        if found.name in ("add", "modify", "clone") and path[0] == "circuits" and given is not None:
            coming_moment(given, datetime(2026, 1, 1, tzinfo=UTC))


def test_every_command_has_an_example() -> None:
    without = {"node-path"}
    shown = {path for path, _ in examples()}

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        inner = inside(command)
        for name, one in inner.items():
            yield from below(one, (*path, name))
        if not inner:
            yield path

    missing = {path for path in below(whole(), ()) if path not in shown and path[0] not in without}
    assert not missing, f"no example in the help of {sorted(missing)}"


def test_the_end_of_a_circuit_is_documented_as_it_is_counted() -> None:
    circuits = inside(inside(whole())["circuits"])
    ends = {name: _help_of(circuits[name], "end") for name in ("add", "modify")}
    assert "counted from the begin" in ends["add"]
    assert "counted from now" in ends["modify"]
    guide = " ".join((ROOT / "docs/operator-guide.md").read_text().split())
    assert "`--end +2h` counts from the begin" in guide


def _help_of(command: Any, option: str) -> str:
    found: str = next(one.help for one in command.params if one.name == option)
    return found
