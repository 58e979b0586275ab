"""Page docs/reference/node.md: the help of downburst-node and of each of its commands, as the program prints it."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from unit.documentation.commands_pages import ROOT


def markdown(program: Path) -> str:
    """The whole page, from the built program."""
    return "\n".join([HEAD, *_sections(program, ())])


def _sections(program: Path, command: tuple[str, ...]) -> Iterator[str]:
    text = _help(program, command)
    if command:
        yield f"## `{' '.join(('downburst-node', *command))}`\n"
    yield f"```console\n{text}\n```\n"
    listed = re.search(r"^Commands:\n((?: .*\n|\n(?= ))+)", text, re.MULTILINE)
    for name in re.findall(r"^  ([a-z][a-z-]*)", listed[1], re.MULTILINE) if listed else ():
        if name != "help":
            yield from _sections(program, (*command, name))


def _help(program: Path, command: tuple[str, ...]) -> str:
    argv, environment = [str(program), *command, "--help"], os.environ | {"COLUMNS": "100"}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


FILE = ROOT / "docs" / "reference" / "node.md"
HEAD = """\
# `downburst-node`

Generated from the program's own help; do not edit. The [guide for a receiving site](../site-guide.md) explains
`receive`, and the rules for products.

"""
