"""`downburst upstreams`: the hubs that this hub receives from as a site."""

from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="List, add and remove the hubs that this hub takes feeds from.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the upstream here.", autocompletion=completion.upstreams)]


@app.command("list")
def list_upstreams(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the upstreams with their state.

    Example: downburst upstreams list
    """
    found = HubClient(hub).ask("GET", "v1", "upstreams")
    if as_json:
        show(found)
        return
    table(
        "Upstreams",
        ("upstream", Further("address"), "feeds", "state", "stored", Further("skipped"), Further("looped")),
        ([*_who(one), _state(one), *_counts(one)] for one in found),
        wide=wide,
        empty="this hub takes feeds from no other hub: downburst upstreams add NAME --from HOST:PORT --token-file F",
    )


@app.command("add")
def add_upstream(
    upstream: Name,
    *,
    address: Annotated[str, typer.Option("--from", help="HOST:PORT of the other hub for its sites.")],
    token_file: Annotated[Path, typer.Option(help="The enrolment token from the other hub's operator.")],
    feeds: Annotated[
        list[str] | None,
        typer.Option("--feed", help="Feed to take; repeat for more; all that exist here if left out."),
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Take feeds from another hub, as one of its sites.

    Its operator decides which products this hub may take. The feeds must exist here.

    Example: downburst upstreams add unidata --from idd.example.edu:7370 --token-file unidata.token --feed NGRID
    """
    wanted = {"upstream": upstream, "address": address, "token": _token(token_file), "feeds": feeds or []}
    made = HubClient(hub).ask("POST", "v1", "upstreams", json=wanted)
    show(made) if as_json else print(f"upstream {upstream} added; see its state: downburst upstreams list")


@app.command("remove")
def remove_upstream(
    upstream: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Remove an upstream; its products stay.

    Example: downburst upstreams remove unidata
    """
    confirm(f"Remove upstream {upstream}? Another token is needed to take feeds from it again.", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "upstreams", upstream)
    show({"removed": upstream}) if as_json else print(f"upstream {upstream} removed")


def _token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise BadInput(f"the token file {path} can't be read: {error.strerror}; check the path") from error


def _who(one: dict[str, Any]) -> list[str]:
    return [one["upstream"], one["address"], " ".join(one["feeds"]) or "all"]


def _state(one: dict[str, Any]) -> str:
    return "connected" if one["connected"] else f"away: {one.get('reason') or 'not reported yet'}"


def _counts(one: dict[str, Any]) -> list[Any]:
    return [one.get(name, "") for name in ("stored", "passed_over", "looped")]
