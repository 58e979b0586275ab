"""`downburst import ldm`: the configuration of an LDM, converted to a declaration."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst_app.cli.client import AsJson, show

if TYPE_CHECKING:
    from downburst.ldm.action_file import ActionFiles
    from downburst.ldm.judged import Judged


def import_ldm(
    *,
    ldmd_conf: Annotated[Path, typer.Option(help="LDM's ldmd.conf, with what it includes.")],
    pqact_conf: Annotated[
        list[Path] | None, typer.Option(help="A pqact.conf, with what it includes; repeat for more.")
    ] = None,
    registry: Annotated[Path | None, typer.Option(help="LDM's registry.xml.")] = None,
    settings: Annotated[Path | None, typer.Option(help="A new file for the hub's settings, in TOML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Convert LDM's files into a declaration, and list statements without an equivalent. The hub is not changed.

    Example: downburst import ldm --ldmd-conf etc/ldmd.conf --registry etc/registry.xml --settings hub.toml
    """
    from downburst.ldm.action_file import ActionFiles
    from downburst.ldm.carried import settings_text
    from downburst.ldm.declared import declare
    from downburst.ldm.judged import patterns_of
    from downburst.ldm.registry import read_registry
    from downburst.ldm.server_file import read_server_file
    from downburst_app.cli.ldm.yaml_text import yaml_text

    actions = _checked(pqact_conf) if pqact_conf else ActionFiles()
    statements = read_server_file(ldmd_conf)
    keys = read_registry(registry) if registry else None
    made = declare(statements, actions, keys, judged=judged_patterns(patterns_of(statements)))
    document = made.document()
    if settings is not None:
        _write(settings, settings_text(made.settings))
    if as_json:
        show(document)
        return
    print(HEAD + yaml_text(document) if document else f"# {ldmd_conf} holds no statement\n", end="")
    count = len(made.no_equivalent)
    what = (
        "every statement has an equivalent"
        if not count
        else f"{count} lines have no equivalent: see no_equivalent, each with its reason"
    )
    print(f"nothing was changed; {what}", file=sys.stderr)


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x") as new:
            new.write(text)
    except FileExistsError:
        raise BadInput(f"{file} already exists; name a new file for the settings") from None
    except OSError as error:
        raise BadInput(f"{file} can't be written ({error.strerror}); name another file") from None


def _checked(paths: Sequence[Path]) -> "ActionFiles":
    """The result of a site's node for the files."""
    from downburst.ldm.action_file import action_files

    return action_files(json.loads(_asked("actions", "check", "--json", "--", *map(str, paths))))


def judged_patterns(patterns: Sequence[str]) -> "dict[str, Judged]":
    """The result of a hub's node for the patterns."""
    from downburst.ldm.judged import judgements

    return judgements(_asked("patterns", lines="".join(f"{pattern}\n" for pattern in patterns))) if patterns else {}


def _asked(*arguments: str, lines: str = "") -> str:
    """The node's output; it exits with 1 if it has findings."""
    from downburst_app.cli.ldm.ldm_tools import node_path, sentence_of

    command = [node_path(), *arguments]
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=CHECK_S)
    if ran.returncode not in (0, 1):
        raise BadInput(sentence_of(ran.stderr))
    return ran.stdout


CHECK_S = 60
"""Longer than any file takes."""

HEAD = """\
# What LDM's files say. Nothing was changed. Read it, correct it, and have a hub do it: downburst apply -f THIS-FILE
# shows what that would change, and asks. Each entry names the line it is from. Settings go into the hub's settings
# file (--settings writes one); a hub runs no actions, a site does: downburst-node receive --actions pqact.conf
"""
