"""`downburst tokens`: programs' rights at the hub."""

from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.domain.access import Role, Scope
from downburst.host.local_token import write_private
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, show, table
from downburst_app.cli.numbers import real_number

app = typer.Typer(help="Create, list and revoke access tokens of programs.", no_args_is_help=True)


@app.command("list")
def list_tokens(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the tokens, newest first.

    Example: downburst tokens list
    """
    found = HubClient(hub).ask("GET", "v1", "access-tokens")
    if as_json:
        show(found)
        return
    table(
        "Access tokens",
        ("number", "for", "role", "site", "scopes", "made by", "state"),
        (
            [t["number"], t["name"], t["role"], t["site"], " ".join(t["scopes"]), t["created_by"], _state(t)]
            for t in found
        ),
        empty="there are no access tokens; create one: downburst tokens add prometheus --scope metrics",
    )


@app.command("add")
def add_token(  # noqa: PLR0913
    name: Annotated[str, typer.Argument(help="Purpose, in your words.")],
    *,
    role: Annotated[Role, typer.Option(help="viewer, site, operator or admin.")] = Role.VIEWER,
    scope: Annotated[
        list[Scope] | None, typer.Option(help="Only this of the role's rights; repeat for more.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="The one site of a token with the role `site`.")] = None,
    days: Annotated[float, real_number(least=0.001, most=3_660, help="Days until it expires.")] = 365,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write the token to, readable only by you.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create a token; it is shown once. Programs send it as `Authorization: Bearer TOKEN`.

    Example: downburst tokens add prometheus --scope metrics -o /etc/prometheus/downburst.token

    Example: downburst tokens add radar-ingest --role operator --scope ingest --days 90
    """
    wanted = {"name": name, "role": role, "days": days} | given(scopes=scope or None, site=site)
    made = HubClient(hub).ask("POST", "v1", "access-tokens", json=wanted)
    if output is not None:
        write_private(output, made.pop("token"))
    if as_json:
        show(made)
    elif output is not None:
        print(f"token {made['number']} for {name} is in {output}, until {made['expires_at'][:10]}")
    else:
        print(made["token"])


@app.command("revoke")
def revoke_token(
    number: Annotated[int, typer.Argument(help="Number of the token.", autocompletion=completion.tokens)],
    *,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Revoke a token immediately.

    Example: downburst tokens revoke 3
    """
    confirm(f"Revoke token {number}? Programs that show it are refused from now on.", yes=yes)
    gone = HubClient(hub).ask("DELETE", "v1", "access-tokens", str(number))
    show(gone) if as_json else print(f"token {number} ({gone['name']}) is revoked")


def _state(token: dict[str, Any]) -> str:
    return f"revoked {token['revoked_at'][:10]}" if token["revoked_at"] else f"ends {token['expires_at'][:10]}"
