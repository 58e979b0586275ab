"""`downburst import wis2`: configurations of wis2box and wis2downloader as commands for a hub."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst_app.cli.client import AsJson, show

if TYPE_CHECKING:
    from downburst.wis2.imports.files import ConfigFile


def import_wis2(
    files: Annotated[
        list[Path],
        typer.Argument(help="wis2box.env, metadata (MCF), config.json, subscriptions, data mappings, compose file."),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Convert files of wis2box and wis2downloader into commands, and list statements without an equivalent.

    The hub is not changed. Files of pywis-pubsub are read too. Give all files of an installation together.

    Example: downburst import wis2 wis2box.env metadata/discovery/synop.yml downloads/.session-info.json
    """
    from downburst.wis2.imports.declared import declare
    from downburst_app.cli.ldm.yaml_text import yaml_text

    made = declare(_read(files))
    document = made.document()
    if as_json:
        show(document)
        return
    print(HEAD + yaml_text({name: part for name, part in document.items() if part}), end="")
    count = len(made.no_equivalent)
    what = (
        "every statement has an equivalent"
        if not count
        else f"{count} lines have no equivalent: see no_equivalent, each with its reason"
    )
    print(f"nothing was changed; {what}", file=sys.stderr)


def _read(paths: list[Path]) -> "list[ConfigFile]":
    """The files, each once."""
    from downburst.wis2.imports.files import MOST_FILES

    if len(paths) > MOST_FILES:
        raise BadInput(f"{len(paths)} files are given, at most {MOST_FILES} are read; name those of one installation")
    return [_file(path) for path in dict.fromkeys(paths)]


def _file(path: Path) -> "ConfigFile":
    from downburst.wis2.imports.files import LARGEST_FILE_BYTES, config_file

    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror}); name a file that can") from None
    return config_file(str(path), content)


HEAD = """\
# What the files say. Nothing was changed. Read it, correct it, and type the commands. Passwords are not shown: write
# each one (password_from) into the file that the command names (password_file). Publishers are off until you have
# seen their preview: downburst publishers preview NAME. Each entry names the line it is from.
"""
