"""Completion of names in the shell: the hub is asked for them, for a short time, and silently without an answer."""

import os
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from downburst.foundation.errors import DownburstError
from downburst.settings.addresses import DEFAULT_HUB, HUB_VARIABLE

Completions = list[str | tuple[str, str]]
Complete = Callable[[typer.Context, str], Completions]


def names(*path: str, key: str, about: tuple[str, ...] = ()) -> Complete:
    """A callback that completes the member `key` of the items of a list of the API.

    `about` names members that the shell shows beside each.
    """

    def complete(ctx: typer.Context, incomplete: str) -> Completions:
        address = ctx.params.get("hub") or os.environ.get(HUB_VARIABLE) or DEFAULT_HUB
        found = ((str(one[key]), " ".join(str(one[name]) for name in about)) for one in _items(address, path, key))
        return [(_escaped(name), text) if text else _escaped(name) for name, text in found if _fits(name, incomplete)]

    return complete


def _items(address: str, path: tuple[str, ...], key: str) -> Iterable[dict[str, Any]]:
    """The first items of the list; none if the hub does not answer in time, or refuses."""
    from downburst.host.local_token import authorization
    from downburst_client import Hub, HubError
    from downburst_client.call import path_of

    try:
        with Hub(address, headers=authorization(address)) as hub:
            answer = hub.request("GET", path_of("v1", *path), timeout=PATIENCE_S).json()
    except (HubError, DownburstError, ValueError):
        return []
    if isinstance(answer, dict):
        answer = next((part for part in answer.values() if isinstance(part, list)), [])
    listed = answer if isinstance(answer, list) else []
    return [one for one in listed[:MOST] if isinstance(one, dict) and key in one]


def _fits(name: str, incomplete: str) -> bool:
    # Bash hands over the word as it is typed.
    return name.startswith((incomplete, incomplete.replace("\\", "")))


def _escaped(name: str) -> str:
    """The name as bash takes it, which inserts completions unchanged; other shells escape by themselves."""
    return _SPECIAL.sub(r"\\\g<0>", name) if os.environ.get("_DOWNBURST_COMPLETE") == "complete_bash" else name


PATIENCE_S = 1.0
MOST = 1_000
_SPECIAL = re.compile(r"[^\w@%+=:,./-]")

feeds = names("feeds", key="feed")
sites = names("sites", key="site")
relays = names("relays", key="relay")
subscriptions = names("subscriptions", key="id", about=("site", "feed", "pattern"))
circuits = names("circuits", key="circuit", about=("state",))
ports = names("ports", key="port")
offers = names("circuit-offers", key="offer")
providers = names("circuit-providers", key="provider")
bridges = names("bridges", key="bridge")
publishers = names("publishers", key="publisher")
upstreams = names("upstreams", key="upstream")
ldm_sources = names("ldm", "sources", key="source")
users = names("users", key="user", about=("role",))
tokens = names("access-tokens", key="number", about=("name",))
resends = names("resends", key="id", about=("site", "feed", "state"))
receivers = names("alarm-receivers", key="receiver")
profiles = names("tcp-profiles", key="profile")
points = names("test-points", key="point")
probes = names("probes", key="id", about=("site", "kind", "state"))

Site = Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=sites)]
Feed = Annotated[str, typer.Argument(help="Name of the feed, for example NGRID.", autocompletion=feeds)]
