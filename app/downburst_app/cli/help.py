"""`downburst help`: the documents in the terminal, as manual page where that is installed, else from this package."""

import difflib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from downburst.foundation.errors import Failure, NotFound
from downburst_app.cli.client import table


@dataclass(frozen=True, slots=True)
class Topic:
    """A document by its name."""

    name: str
    section: int
    """Of the manual: 1 for commands, 5 for files, 7 for guides."""
    sentence: str
    file: Path


def show_topic(
    words: Annotated[list[str] | None, typer.Argument(help="Topic: a command or a guide; none: list all.")] = None,
) -> None:
    """Show a guide, or the page of a command; without a topic list all of them.

    Example: downburst help troubleshooting

    Example: downburst help circuits add
    """
    topics = {topic.name: topic for topic in topics_of(documents())}
    if not words:
        rows = [[topic.name, topic.sentence] for topic in topics.values()]
        table("Topics", ["topic", "contents"], rows, empty="there are no topics")
        return
    _open(_named(words, topics))


def topics_of(folder: Path) -> Iterator[Topic]:
    """All topics of a folder of documents: guides, files, programs, then commands by name."""
    listed = tomllib.loads((folder / "site" / "topics.toml").read_text())
    for section, kind in ((7, "guides"), (5, "formats")):
        for name, sentence in listed[kind].items():
            yield Topic(name, section, sentence, folder / f"{name}.md")
    for name, sentence in listed["programs"].items():
        yield Topic(name, 1, sentence, folder / "reference" / f"{name}.md")
    for file in sorted((folder / "reference" / "commands").glob("*.md")):
        sentence = re.split(r"\n\n+", file.read_text())[1].replace("\n", " ").replace("\\", "")
        yield Topic(file.stem, 1, sentence, file)


def documents() -> Path:
    """The folder of documents: of the installed package, or of the source tree."""
    found = next((place for place in PLACES if (place / "site" / "topics.toml").is_file()), None)
    if found is None:
        raise Failure("the documents were not installed with this package; a hub shows them at its address /guide/")
    return found


def _named(words: list[str], topics: dict[str, Topic]) -> Topic:
    """The topic of these words; the page of a group has those of its commands."""
    for name in ("-".join(words), words[0]):
        if name in topics:
            return topics[name]
    near = difflib.get_close_matches("-".join(words), topics, n=1, cutoff=0)
    raise NotFound(
        f"there is no topic {' '.join(words)!r}; the nearest is {near[0]!r}, and 'downburst help' lists all"
    )


def _open(topic: Topic) -> None:
    page = [str(topic.section), f"downburst-{topic.name}"]
    if sys.stdout.isatty() and _is_installed(page):
        subprocess.run(["man", *page], check=False)
        return
    console = Console()
    text = Markdown(topic.file.read_text())
    if console.is_terminal:
        with console.pager(styles=True):
            console.print(text)
    else:
        console.print(text)


def _is_installed(page: list[str]) -> bool:
    if shutil.which("man") is None:
        return False
    return subprocess.run(["man", "--where", *page], capture_output=True, check=False).returncode == 0


_ROOM = Path(__file__).resolve().parents[2]
PLACES = (_ROOM / "downburst_app" / "documents", _ROOM.parent / "docs")
