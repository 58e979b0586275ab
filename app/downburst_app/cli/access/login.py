"""`downburst login` and `downburst logout`: this user's credential for a hub."""

from typing import Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst.host.local_token import save_login
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show


def login(
    user: Annotated[str | None, typer.Argument(help="Name of the user; prompted for if left out.")] = None,
    *,
    link: Annotated[bool, typer.Option("--link", help="Print a link that signs in a browser, once.")] = False,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Keep an access token instead, read from standard input.")
    ] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Sign in to a hub, for the commands that follow; on the hub's own machine its user needs no login.

    Example: downburst login anna --hub https://hub.example

    Example: downburst login --link

    Example: downburst login --with-token --hub https://hub.example < token
    """
    client = HubClient(hub)
    if link:
        made = client.ask("POST", "v1", "session", "links")
        address = f"{hub.rstrip('/')}/{made['fragment']}"
        show({"link": address, "expires_at": made["expires_at"]}) if as_json else print(address)
        return
    file = save_login(hub, _given_token() if with_token else _new_session(client, user))
    who = client.ask("GET", "v1", "session")
    show(who | {"kept_in": str(file)}) if as_json else print(f"signed in at {hub} as {who['user']} ({who['role']})")


def _given_token() -> str:
    token = typer.get_text_stream("stdin").readline().strip()
    if not token:
        raise BadInput("no token on standard input; pipe it in: downburst login --with-token < file")
    return token


def _new_session(client: HubClient, user: str | None) -> str:
    name = user or typer.prompt("User")
    wanted = {"user": name, "password": typer.prompt("Password", hide_input=True), "bearer": True}
    return str(client.ask("POST", "v1", "session", json=wanted)["session"])


def logout(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """End the session of `downburst login`, and delete it here.

    Example: downburst logout --hub https://hub.example
    """
    HubClient(hub).ask("DELETE", "v1", "session")
    save_login(hub, None)
    show({"signed_in": False}) if as_json else print(f"signed out at {hub}")
