"""What the commands share: asking a hub over HTTP, and showing its answers as tables or JSON."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer
from rich.console import Console
from rich.table import Column, Table

from downburst.errors import BadInput, DownburstError, Failure
from downburst.local_token import authorization
from downburst.settings import DEFAULT_HUB, HUB_VARIABLE

HubAddress = Annotated[str, typer.Option("--hub", envvar=HUB_VARIABLE, help="The hub's address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


class Answered(DownburstError):
    """A problem document from the hub, said in its own sentence."""


class BadRequest(Answered):
    """A problem that the one who asked can mend."""

    exit_code = 2


class HubClient:
    """One hub, asked over HTTP."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def ask(self, method: str, *path: str, **request: Any) -> Any:
        """The hub's answer as JSON (None if it has no body); each part of the path is percent-encoded."""
        answer = self._answer(method, f"{self._address}/{'/'.join(_encoded(part) for part in path)}", **request)
        return answer.json() if answer.content else None

    def every(self, *path: str, **request: Any) -> list[Any]:
        """All items of a list, page by page."""
        answer = self._answer("GET", f"{self._address}/{'/'.join(_encoded(part) for part in path)}", **request)
        items: list[Any] = answer.json()
        while (following := answer.links.get("next")) is not None:
            answer = self._answer("GET", self._address + following["url"])
            items += answer.json()
        return items

    def _answer(self, method: str, url: str, **request: Any) -> httpx.Response:
        try:
            headers = {**authorization(self._address), **request.pop("headers", {})}
            answer = httpx.request(method, url, timeout=TIMEOUT, headers=headers, **request)
        except httpx.UnsupportedProtocol:
            raise _bad_address(self._address) from None
        except httpx.InvalidURL:
            raise _bad_address(self._address) from None
        except httpx.ConnectError:
            raise Failure(
                f"no hub answers at {self._address}; start one with `downburst hub`, "
                f"or name it with --hub or {HUB_VARIABLE}"
            ) from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Failure(
                f"the hub at {self._address} closed the connection: {reason}; check its log and try again"
            ) from error
        if answer.is_success:
            return answer
        raise _refusal(answer)


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something goes that no other command brings back; refuses where nobody is there to answer."""
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
    """Prints JSON that a person can read too."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Prints a table, or the sentence for an empty one."""
    listed = [[_text(cell) for cell in row] for row in rows]
    if not listed:
        print(empty)
        return
    # A name that is cut can't be typed in again; the words of a header stay whole.
    grid = Table(
        *(Column(name, overflow="fold", min_width=max(map(len, name.split()), default=0)) for name in columns),
        title=title,
        title_justify="left",
    )
    for row in listed:
        grid.add_row(*row)
    Console().print(grid, markup=False)


def given(**options: object) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def milliseconds(value: float | None) -> str:
    """A latency for people."""
    if value is None:
        return "not known"
    return f"{value / 1000:.2f} s" if abs(value) >= 1000 else f"{value:.1f} ms"


def bits(value_bps: float | None) -> str:
    """A rate for people."""
    return "" if value_bps is None else f"{value_bps / 1e6:.2f} Mb/s"


def _encoded(part: str) -> str:
    encoded = quote(part, safe="")
    # A lone dot would be taken for the current directory and vanish from the address.
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def _bad_address(address: str) -> DownburstError:
    return BadRequest(f"{address!r} is not the address of a hub; write for example {DEFAULT_HUB}")


def _refusal(answer: httpx.Response) -> DownburstError:
    kind = BadRequest if answer.is_client_error else Answered
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, Mapping) or "detail" not in problem:
        return kind(f"{answer.url} answered {answer.status_code} {answer.reason_phrase}; is this a Downburst hub?")
    return kind(str(problem["detail"]))


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


# Storing gigabytes takes the hub minutes; connecting takes none.
TIMEOUT = httpx.Timeout(700.0, connect=5.0)
