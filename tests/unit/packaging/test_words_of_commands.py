"""Commands that documents, the page and the packaging tell people to type exist as they are written."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from downburst.cli import app
from downburst.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    "README.md",
    "docs/operator-guide.md",
    "docs/quick-start-operator.md",
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
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        assert words, f"{source}: '{command}' names no command"
        name = words.pop(0)
        inner = found.get_command(None, name)
        assert inner is not None, f"{source}: '{command}': there is no '{name}'"
        found = inner
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
    used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known, f"{source}: '{command}'"


def test_enough_commands_were_looked_at() -> None:
    looked_at = [source for source, _ in commands()]
    assert {source: looked_at.count(source) > 0 for source in SOURCES} == dict.fromkeys(SOURCES, True)


@pytest.mark.parametrize("source", ["docs/site-guide.md", "docs/quick-start-site.md", *SOURCES])
def test_options_of_the_node_exist(source: str) -> None:
    main = (ROOT / "workers" / "crates" / "node" / "src" / "main.rs").read_text()
    starts = [line.split("receive", 1)[1] for line in code_of(ROOT / source) if "downburst-node receive" in line]
    used = {name for start in starts for name in re.findall(r"(?<![\w-])--([a-z-]+)", start)}
    assert [name for name in used if not re.search(rf"^ +{name.replace('-', '_')}: ", main, re.MULTILINE)] == []


def test_the_operator_guide_lists_every_setting() -> None:
    guide = (ROOT / "docs" / "operator-guide.md").read_text()
    sections = {
        "access",
        "alarms",
        "circuits",
        "fleet",
        "kafka",
        "ldm",
        "limits",
        "multicast",
        "scheduler",
        "sender",
        "watch",
    }
    names = [name for name in Settings.model_fields if name not in sections]
    for section in sections:
        inner = Settings.model_fields[section].annotation
        assert inner is not None
        names += [f"{section}.{name}" for name in inner.model_fields]
    assert [name for name in names if f"`{name}`" not in guide] == []


def unbalanced_quote_closed(command: str) -> str:
    try:
        shlex.split(command)
    except ValueError:
        return command + "'" if command.count("'") % 2 else command + '"'
    return command
