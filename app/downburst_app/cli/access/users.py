"""`downburst users`: the hub's users."""

from typing import Annotated, Any

import typer

from downburst.domain.access import Role
from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, minute, show, table

app = typer.Typer(help="Invite users, change their rights, and remove them.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the user.", autocompletion=completion.users)]
RoleOption = Annotated[Role | None, typer.Option("--role", help="viewer, site, operator or admin.")]
SiteOption = Annotated[str | None, typer.Option("--site", help="The one site of a user with the role `site`.")]


@app.command("list")
def list_users(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the users.

    Example: downburst users list
    """
    found = HubClient(hub).ask("GET", "v1", "users")
    if as_json:
        show(found)
        return
    table(
        "Users",
        ("user", "role", "site", "state", "since"),
        ([u["user"], u["role"], u["site"], _state(u), minute(u["created_at"])] for u in found),
        empty="there are no users yet; the hub's log has the link for the first administrator",
    )


@app.command("add")
def add_user(
    user: Name,
    *,
    role: Annotated[Role, typer.Option("--role", help="viewer, site, operator or admin.")] = Role.VIEWER,
    site: SiteOption = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Invite a user: prints a link, good for one week and one use, with which they choose a password.

    Example: downburst users add anna --role operator

    Example: downburst users add bo --role site --site unl.edu
    """
    made = HubClient(hub).ask("POST", "v1", "users", json={"user": user, "role": role} | given(site=site))
    _print_link(hub, made, as_json=as_json)


@app.command("invite")
def invite_again(user: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Print another link for a user who has forgotten the password.

    Example: downburst users invite anna
    """
    _print_link(hub, HubClient(hub).ask("POST", "v1", "users", user, "invitations"), as_json=as_json)


@app.command("set")
def set_user(
    user: Name,
    *,
    role: RoleOption = None,
    site: SiteOption = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Whether they may sign in.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change a user's rights; a user who loses rights is signed out immediately.

    Example: downburst users set anna --inactive
    """
    wanted = given(role=role, site=site, active=active)
    if not wanted:
        raise BadInput("nothing to change was given; `downburst users set --help` shows what there is")
    if role is not None and role is not Role.SITE:
        wanted["site"] = None
    kept = HubClient(hub).ask("PATCH", "v1", "users", user, json=wanted)
    show(kept) if as_json else print(f"{user}: {kept['role']}, {_state(kept)}")


@app.command("remove")
def remove_user(user: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a user, who is signed out immediately.

    Example: downburst users remove anna
    """
    confirm(f"Remove user {user}?", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "users", user)
    show({"removed": user}) if as_json else print(f"user {user} removed")


def _print_link(hub: str, made: dict[str, Any], *, as_json: bool) -> None:
    address = f"{hub.rstrip('/')}/{made['fragment']}"
    if as_json:
        show(made | {"link": address})
        return
    print(f"send this link; it can be used once, until {made['link_expires_at'][:16]} UTC:\n{address}")


def _state(user: dict[str, Any]) -> str:
    if not user["active"]:
        return "may not sign in"
    if user["issuer"] is not None:
        return f"signs in at {user['issuer']}"
    return "active" if user["has_password"] else "invited"
