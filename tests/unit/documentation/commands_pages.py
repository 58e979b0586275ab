"""The pages docs/reference/commands/*.md: every command with its options and examples."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from downburst_app.cli import app
from unit.documentation.settings_page import WIDTH, wrapped


def pages() -> dict[Path, str]:
    """Each file with its text: the list of all commands, and a page for each command or group."""
    whole: Any = typer.main.get_command(app)
    commands = {name: whole.get_command(None, name) for name in whole.list_commands(None)}
    found = {LIST: _list(commands)}
    found |= {FOLDER / f"{name}.md": _page(f"downburst {name}", command) for name, command in commands.items()}
    return found


def _list(commands: dict[str, Any]) -> str:
    rows = [f"| [`{name}`](commands/{name}.md) | {_sentence(one)} |" for name, one in commands.items()]
    return LIST_HEAD + "\n".join(["| command | purpose |", "|---|---|", *rows]) + "\n"


def _page(name: str, command: Any) -> str:
    return "\n\n".join([f"# `{name}`", *_body(name, command)]) + "\n"


def _body(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    paragraphs = _paragraphs(command)
    yield wrapped(paragraphs[0])
    usage = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), " ".join(command.collect_usage_pieces(context)))
    yield f"```\n{name} {usage}\n```"
    yield from (one for one in map(_paragraph, paragraphs[1:]) if one)
    parameters = [one for one in command.params if one.name not in COMPLETION and not one.hidden]
    if parameters:
        yield "\n".join(_parameter(one, context) for one in parameters)
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        nested = f"{name} {inner}"
        yield f"## `{nested}`"
        yield from _body(nested, command.get_command(None, inner))


def _parameter(parameter: Any, context: Any) -> str:
    words = parameter.help or ""
    if parameter.param_type_name == "argument":
        names = [parameter.name.upper()]
    else:
        names = [*parameter.opts, *parameter.secondary_opts]
    facts = ["required"] if parameter.required and parameter.param_type_name == "option" else []
    default = parameter.get_default(context)
    if default not in (None, "", (), []) and not isinstance(default, bool) and not callable(default):
        facts.append(f"default `{getattr(default, 'value', default)}`")
    if parameter.multiple:
        facts.append("can be repeated")
    facts += [f"environment `{parameter.envvar}`"] if parameter.envvar else []
    ending = f" ({', '.join(facts)})" if facts else ""
    named = ", ".join(f"`{name}`" for name in names)
    return f"* {named}{ending}: {escaped(words)}".replace("\n", " ")


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(one.split()) for one in (command.help or "").split("\n\n")]


def _paragraph(text: str) -> str:
    """An example as a block of code under its words, anything else as a paragraph."""
    example = re.match(r"(Examples?[^:]*): (downburst .*|[A-Z_]+=.*)", text)
    return f"{example[1]}:\n\n```\n{_code(example[2])}\n```" if example else wrapped(escaped(text))


def _code(text: str) -> str:
    """A line for each command, continued before options where it is long."""
    return "\n".join(map(_continued, re.split(r"; (?=downburst )", text)))


def _continued(command: str) -> str:
    lines = [""]
    for piece in re.split(r" (?=--)", command):
        if len(lines[-1]) + len(piece) < WIDTH - 8 or lines == [""]:
            lines[-1] = f"{lines[-1]} {piece}".strip()
        else:
            lines.append(piece)
    return " \\\n    ".join(lines)


def _sentence(command: Any) -> str:
    return escaped(_paragraphs(command)[0])


def escaped(text: str) -> str:
    """Text in which Markdown finds no marks of its own, code in backticks apart."""
    return "".join(
        one if number % 2 else re.sub(r"([\\*_<|\[\]])", r"\\\1", one)
        for number, one in enumerate(re.split(r"(`[^`]*`)", text))
    )


ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "reference" / "commands"
LIST = ROOT / "docs" / "reference" / "commands.md"
COMPLETION = ("install_completion", "show_completion")
LIST_HEAD = """\
# Commands

Generated from the command line; do not edit. `downburst COMMAND --help` shows the same in a terminal, and
`downburst help COMMAND` opens the page.

A command ends with 0 when it succeeds, with 1 when it fails, and with 2 when its input can't be used. Each error is
one sentence on standard error.

"""
