"""`downburst audit`: changes with their authors."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table


def audit(  # noqa: PLR0913
    *,
    who: Annotated[str | None, typer.Option(help="Only changes by this user or token.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only of this kind: feed, site, subscription, pin ...")] = None,
    subject: Annotated[str | None, typer.Option(help="Only changes of objects with this name.")] = None,
    begin: Annotated[str | None, typer.Option("--from", help="Since: RFC 3339, or how long ago: 2h.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of the range, likewise; now if left out.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of changes.")] = 50,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show changes, newest first, with their author and the former values.

    Example: downburst audit --kind site --from 7d
    """
    wanted = given(who=who, kind=kind, subject=subject, limit=min(limit, PAGE)) | given(**{"from": begin, "to": end})
    items = list(_items(HubClient(hub), wanted, limit))
    if as_json:
        show(items)
        return
    table(
        "Changes",
        ("at", "who", "what", "change"),
        ([minute(it["at"]), f"{it['who']} {it['peer']}".rstrip(), _what(it), _difference(it)] for it in items),
        empty="no changes",
    )


def _items(client: HubClient, wanted: dict[str, Any], limit: int) -> Iterator[dict[str, Any]]:
    left, after = limit, None
    while left > 0:
        page = client.ask("GET", "v1", "audit", params=wanted | given(after=after))
        yield from page["items"][:left]
        left -= len(page["items"])
        after = page["next"]
        if after is None:
            return


def _what(change: dict[str, Any]) -> str:
    return f"{change['kind']} {change['subject']} {change['action']}"


def _difference(change: dict[str, Any]) -> str:
    """The changed fields: `retention_hours: 2 -> 6`; of an added object, the fields that are set."""
    before, after = change["before"] or {}, change["after"] or {}
    if before and after:
        return "\n".join(f"{name}: {_text(before.get(name))} -> {_text(after.get(name))}" for name in sorted(after))
    return " ".join(f"{name}={_text(value)}" for name, value in (after or before).items() if value not in _UNSET)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_UNSET: tuple[object, ...] = (None, "", [], {})
PAGE = 1000
