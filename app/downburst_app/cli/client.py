"""Shared parts of the commands: requests to a hub over HTTP, and output of answers as tables or JSON."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.foundation.errors import BadInput, DownburstError, Failure
from downburst.settings.addresses import DEFAULT_HUB, HUB_VARIABLE
from downburst_app.cli import columns as columns_of

if TYPE_CHECKING:
    import httpx

    from downburst_client import Hub

HubAddress = Annotated[str, typer.Option("--hub", envvar=HUB_VARIABLE, help="The hub's address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


class Answered(DownburstError):
    """A problem document from the hub, with its own sentence."""


class BadRequest(Answered):
    """A problem that the user can correct."""

    exit_code = 2


class HubClient:
    """One hub, called with the rights of the command's user; errors are raised as sentences."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def ask(self, method: str, *path: str, **request: Any) -> Any:
        """The hub's answer as JSON (None if it has no body); each part of the path is percent-encoded."""
        from downburst_client.call import path_of

        answer = self._answer(method, path_of(*path), **request)
        return answer.json() if answer.content else None

    def every(self, *path: str, **request: Any) -> list[Any]:
        """All items of a list, page by page."""
        from downburst_client.call import path_of

        answer = self._answer("GET", path_of(*path), **request)
        items: list[Any] = answer.json()
        while (following := answer.links.get("next")) is not None:
            answer = self._answer("GET", following["url"])
            items += answer.json()
        return items

    def _answer(self, method: str, path: str, **request: Any) -> "httpx.Response":
        with connected(self._address) as hub:
            return hub.request(method, path, **request)


@contextmanager
def connected(address: str, *, option: str = "--hub") -> "Iterator[Hub]":
    """A hub for many requests, with the rights of the command's user; errors are raised as sentences.

    `option` of the command names its address.
    """
    from downburst.host.local_token import authorization
    from downburst_client import BadAddress, BrokenOff, Hub, Problem, Unreachable

    address = address.rstrip("/")
    try:
        with Hub(address, headers=authorization(address)) as hub:
            yield hub
    except BadAddress:
        raise BadRequest(f"{address!r} is not the address of a hub; write for example {DEFAULT_HUB}") from None
    except Unreachable as error:
        remedy = f"start one with `downburst hub`, or name it with {option} or {HUB_VARIABLE}"
        raise Failure(f"{error}; {remedy}") from None
    except BrokenOff as error:
        raise Failure(f"{error}; check its log and try again") from error
    except Problem as error:
        kind = BadRequest if error.status < SERVER_ERRORS else Answered
        raise kind(error.detail) from None


def confirm(question: str, *, yes: bool) -> None:
    """Asks for confirmation before a removal that no command undoes; refuses without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(
            f"nothing was changed: {question} There is no terminal for the confirmation; repeat the command "
            "with --yes"
        )
    if not typer.confirm(question, err=True):
        raise BadInput("nothing was changed")


def show(value: Any) -> None:
    """Prints JSON, indented for people."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str, wide: bool = False
) -> None:
    """Prints a table, or the sentence for an empty one.

    Columns that are `Further` are shown if asked for by `wide`, or if the terminal has room for all.
    """
    listed = [[_text(cell) for cell in row] for row in rows]
    if not listed:
        print(empty)
        return
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    wide = wide or columns_of.natural_width(columns, listed) <= console.width
    shown = columns_of.chosen(columns, wide=wide)
    heads, cells = [columns[index] for index in shown], [[row[index] for index in shown] for row in listed]
    widths = columns_of.least_widths(heads, cells, within=console.width)
    wanted = columns_of.natural_width(heads, cells) if wide else columns_of.table_width(widths)
    console.width = max(console.width, wanted)
    columns_laid = (Column(name, overflow="fold", min_width=width) for name, width in zip(heads, widths, strict=True))
    grid = Table(*columns_laid, title=title, title_justify="left")
    for row in cells:
        grid.add_row(*row)
    console.print(grid, markup=False)


def minute(moment: str | None) -> str:
    """A moment of an answer (RFC 3339, UTC) for tables, to the minute."""
    return "" if moment is None else moment[:16].replace("T", " ")


def given(**options: object) -> dict[str, Any]:
    """The options that are set."""
    return {name: value for name, value in options.items() if value is not None}


def milliseconds(value: float | None) -> str:
    """Formats a latency for people."""
    if value is None:
        return "not known"
    return f"{value / 1000:.2f} s" if abs(value) >= 1000 else f"{value:.1f} ms"


def measured(value_ms: float | None, bound_ms: float | None) -> str:
    """Formats a measured latency for people, with the bound of the clocks: `42.1 ms ± 0.8`.

    A value that the bound leaves open is `not known`, a negative one is flagged `clock`.
    """
    from downburst.domain.latency import Certainty, certainty_of

    if value_ms is None:
        return "not known"
    scale = 1000 if abs(value_ms) >= 1000 else 1
    within = "" if bound_ms is None else f" ± {_bound(bound_ms / scale)}"
    shown = milliseconds(value_ms) + within
    match certainty_of(value_ms, bound_ms):
        case Certainty.NOT_KNOWN:
            return f"not known ({shown})"
        case Certainty.CLOCK:
            return f"{shown} (clock)"
    return shown


def _bound(bound: float) -> str:
    return f"{bound:.1f}" if bound >= 1 or bound == 0 else f"{bound:.1g}"


def bits(value_bps: float | None) -> str:
    """Formats a rate for people."""
    return "" if value_bps is None else f"{value_bps / 1e6:.2f} Mb/s"


def write_secret(path: Path, text: str) -> None:
    """Writes a secret to a new file that only its owner can read."""
    try:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(text + "\n")
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror}; choose another file") from error


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


SERVER_ERRORS = 500
