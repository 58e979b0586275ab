"""`bridges password` and `publishers password`: new passwords at brokers, which no answer of a hub shows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show

Bridge = Annotated[str, typer.Argument(help="Name of the source.", autocompletion=completion.bridges)]
Publisher = Annotated[str, typer.Argument(help="Name of the publisher.", autocompletion=completion.publishers)]
PasswordFile = Annotated[Path, typer.Option(help="File with the password.")]
User = Annotated[str | None, typer.Option(help="Another user as well; left out: the same one.")]


def set_bridge_password(
    bridge: Bridge,
    *,
    password_file: PasswordFile,
    user: User = None,
    broker: Annotated[str | None, typer.Option(help="Address of the broker; left out: all with a user.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Set a new password for the brokers of a source; it connects anew, and loses nothing.

    Example: downburst bridges password dwd --password-file secret
    """
    password, client = _password_in(password_file), HubClient(hub)
    brokers = client.ask("GET", "v1", "bridges", bridge)["brokers"]
    meant = [one["url"] for one in brokers if _is_meant(one, broker, user)]
    if not meant:
        known = ", ".join(one["url"] for one in brokers)
        raise BadInput(f"no broker of {bridge} takes a password: name it with --broker, or give --user ({known})")
    left = [one["url"] for one in brokers if one["url"] not in meant and one["user"] != EVERYONE]
    if left:
        # The hub stores all brokers of a source together, and shows no password.
        raise BadInput(f"the password of {left[0]} would be lost; leave --broker out to set one password for all")
    wanted = [_with_password(one, user, password) if one["url"] in meant else _plain(one) for one in brokers]
    changed = client.ask("PATCH", "v1", "bridges", bridge, json={"brokers": wanted})
    show(changed) if as_json else print(f"source {bridge} has a new password at {', '.join(meant)}")


def set_publisher_password(
    publisher: Publisher,
    *,
    password_file: PasswordFile,
    user: User = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Set a new password for the broker of a publisher.

    Example: downburst publishers password synop --password-file secret
    """
    password, client = _password_in(password_file), HubClient(hub)
    broker = client.ask("GET", "v1", "publishers", publisher)["broker"]
    wanted = {"broker": _with_password(broker, user, password)}
    changed = client.ask("PATCH", "v1", "publishers", publisher, json=wanted)
    show(changed) if as_json else print(f"publisher {publisher} has a new password at {broker['url']}")


def password_in(path: Path | None) -> str | None:
    """The password in a file; refuses one that can't be read."""
    return None if path is None else text_in(path, "password file")


def text_in(path: Path, what: str) -> str:
    """The text of a small file without the space around it; refuses one that can't be read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadInput(f"the {what} {path} can't be read: {reason}; check the path") from error


def _password_in(path: Path) -> str:
    found = text_in(path, "password file")
    if not found:
        raise BadInput(f"the password file {path} is empty; write the password into it")
    return found


def _is_meant(broker: dict[str, Any], url: str | None, user: str | None) -> bool:
    if url is not None:
        return bool(broker["url"] == url)
    return user is not None or broker["user"] != EVERYONE


def _with_password(broker: dict[str, Any], user: str | None, password: str) -> dict[str, Any]:
    return _plain(broker) | {"user": user or broker["user"], "password": password}


def _plain(broker: dict[str, Any]) -> dict[str, Any]:
    return {name: broker[name] for name in ("url", "user", "mqtt")}


EVERYONE = "everyone"
"""User and password of Global Brokers, which need no other."""
