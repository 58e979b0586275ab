"""`downburst bridges`: sources of WIS2, whose announced products go into feeds."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.sizes import parse_size_bytes, size_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.bridges.catalogue import dataset_in, search_datasets
from downburst_app.cli.bridges.passwords import password_in, set_bridge_password
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, minute, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="List, add, change and remove sources of WIS2.", no_args_is_help=True)
app.command("search")(search_datasets)
app.command("password")(set_bridge_password)
Replay = Annotated[str | None, typer.Option("--replay", help="A Global Replay service, which fills holes.")]
Logins = Annotated[Path | None, typer.Option("--logins", help="JSON file with logins at origins of data.")]
Bridge = Annotated[
    str, typer.Argument(help="Name of the source, for example dwd.", autocompletion=completion.bridges)
]


@app.command("list")
def list_bridges(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the sources with the state of their brokers.

    Example: downburst bridges list
    """
    found = HubClient(hub).ask("GET", "v1", "bridges")
    if as_json:
        show(found)
        return
    table(
        "bridges",
        ("bridge", "feed", "brokers", "coming", "waiting", "held", "failed"),
        ([one["bridge"], one["feed"], _brokers(one), *(one["products"][state] for state in STATES)] for one in found),
        empty="this hub takes nothing from WIS2: downburst bridges add NAME --help",
    )


@app.command("show")
def show_bridge(
    bridge: Bridge, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Show a source: each broker, the centres of today, and what is unwise about its topics.

    Example: downburst bridges show dwd
    """
    client = HubClient(hub)
    found = client.ask("GET", "v1", "bridges", bridge)
    centres = client.ask("GET", "v1", "bridges", bridge, "centres")
    if as_json:
        show(found | {"centres": centres})
        return
    print(f"{bridge}: into {found['feed']}, topics {', '.join(found['topics'])}")
    for advice in found["advice"]:
        print(f"  advice: {advice}")
    print(f"  replay of holes: {found['replay_url'] or 'none'}")
    if found["logins"]:
        print(f"  logins at {', '.join(one['host'] for one in found['logins'])}")
    for line in _pace(found["pace"]):
        print(f"  {line}")
    table(
        "brokers",
        ("broker", "health", "state", Further("topics bound"), Further("last message"), "messages/s", "delay"),
        (_broker(one) for one in found["brokers"]),
        wide=wide,
        empty="",
    )
    table(
        "centres today",
        ("centre", "products", "bytes", Further("coming"), "waiting", Further("copies"), "refused", "failed"),
        (_account(one) for one in centres),
        wide=wide,
        empty="no centre has announced anything today",
    )


@app.command("add")
def add_bridge(  # noqa: PLR0913
    bridge: Bridge,
    *,
    feed: Annotated[str, typer.Option(help="The feed into which the products go.", autocompletion=completion.feeds)],
    brokers: Annotated[
        list[str] | None, typer.Option("--broker", help="mqtts://HOST[:PORT] or wss://HOST/PATH.")
    ] = None,
    topics: Annotated[list[str] | None, typer.Option("--topic", help="Topic with + and #; repeat.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Metadata id; its record names brokers and topics.")] = None,
    catalogue: Annotated[str | None, typer.Option(help="The catalogue that has the record, https://….")] = None,
    user: Annotated[str | None, typer.Option(help="User at the brokers; everyone if left out.")] = None,
    password_file: Annotated[Path | None, typer.Option(help="File with that user's password.")] = None,
    mqtt: Annotated[int, typer.Option(help="Version of MQTT: 5, or 311 for 3.1.1.")] = 5,
    takes_recommended: Annotated[bool, typer.Option("--recommended", help="Take recommended data too.")] = False,
    per_centre: Annotated[str | None, typer.Option(help="Most bytes of a centre in a day, such as 20GB.")] = None,
    may_ask_private: Annotated[bool, typer.Option("--private", help="Fetch from private networks too.")] = False,
    replay: Replay = None,
    logins: Logins = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Take the products that WIS2 announces on some topics.

    Give two brokers: they bring the same notifications, and one may be away. Core data come from `cache/…`.

    Example: downburst bridges add dwd --feed WIS2 --broker mqtts://globalbroker.example
    --topic cache/a/wis2/de-dwd/data/core/#
    """
    signed_in = given(user=user, password=password_in(password_file), mqtt=mqtt)
    wanted = _of_record(dataset, catalogue, signed_in) | given(
        bridge=bridge,
        feed=feed,
        brokers=[{"url": url} | signed_in for url in brokers] if brokers else None,
        topics=topics or None,
        takes_recommended=takes_recommended or None,
        bytes_per_day=None if per_centre is None else parse_size_bytes(per_centre),
        may_ask_private=may_ask_private,
        replay_url=replay,
        logins=_logins_in(logins),
    )
    if "brokers" not in wanted or "topics" not in wanted:
        raise BadInput("give --broker and --topic, or --dataset with --catalogue")
    made = HubClient(hub).ask("POST", "v1", "bridges", json=wanted)
    if as_json:
        show(made)
        return
    for advice in made["advice"]:
        print(f"advice: {advice}")
    if made["takes_recommended"] and not made["logins"]:
        print(f"advice: origins of recommended data may need a login: bridges change {bridge} --logins FILE")
    print(f"source {bridge} added; see its state: downburst bridges show {bridge}")


@app.command("change")
def change_bridge(  # noqa: PLR0913
    bridge: Bridge,
    *,
    replay: Replay = None,
    no_replay: Annotated[bool, typer.Option("--no-replay", help="Ask no replay service any more.")] = False,
    logins: Logins = None,
    topics: Annotated[list[str] | None, typer.Option("--topic", help="All topics from now on; repeat.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change the replay service, the logins or the topics of a source. The file has all its logins:

    [{"host": "data.example", "user": "me", "password": "…"}, {"host": "other.example:8443", "token": "…"}]

    Example: downburst bridges change dwd --replay https://replay.example
    """
    wanted = given(replay_url=replay, logins=_logins_in(logins), topics=topics or None)
    wanted |= {"replay_url": None} if no_replay else {}
    if not wanted:
        raise BadInput("nothing was changed: give --replay, --no-replay, --logins or --topic")
    changed = HubClient(hub).ask("PATCH", "v1", "bridges", bridge, json=wanted)
    show(changed) if as_json else print(f"source {bridge} changed; see its state: downburst bridges show {bridge}")


@app.command("switch")
def switch_bridge(
    bridge: Bridge,
    on: Annotated[
        bool, typer.Option("--on/--off", help="On, or off: the brokers keep its notifications for a while.")
    ],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Switch a source on or off.

    Example: downburst bridges switch dwd --off
    """
    changed = HubClient(hub).ask("PATCH", "v1", "bridges", bridge, json={"enabled": on})
    show(changed) if as_json else print(f"source {bridge} is switched {'on' if on else 'off'}")


@app.command("failed")
def list_failed(bridge: Bridge, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the products that could not be fetched, with the reasons.

    Example: downburst bridges failed dwd
    """
    found = HubClient(hub).ask("GET", "v1", "bridges", bridge, "failed")
    if as_json:
        show(found)
        return
    table(
        "failed products",
        ("announced", "data id", "reason"),
        ([minute(one["published_at"]), one["data_id"], one["reason"]] for one in found),
        empty=f"every product of {bridge} was fetched",
    )


@app.command("retry")
def retry_failed(bridge: Bridge, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Fetch all failed products once more.

    Example: downburst bridges retry dwd
    """
    found = HubClient(hub).ask("POST", "v1", "bridges", bridge, "failed", "retry")
    show(found) if as_json else print(f"{found['products']} products of {bridge} are fetched once more")


@app.command("passed-over")
def list_passed_over(bridge: Bridge, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the last messages of which nothing was fetched, with the reasons.

    Example: downburst bridges passed-over dwd
    """
    found = HubClient(hub).ask("GET", "v1", "bridges", bridge, "passed-over")
    if as_json:
        show(found)
        return
    table(
        "messages passed over",
        ("at", "topic", "verdict", "reason"),
        ([minute(one["at"]), one["topic"], one["verdict"], one["sentence"]] for one in found),
        empty="every message was taken, or is a copy",
    )


@app.command("holes")
def list_holes(bridge: Bridge, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the times in which a broker may have dropped notifications.

    Example: downburst bridges holes dwd
    """
    found = HubClient(hub).ask("GET", "v1", "bridges", bridge, "holes")
    if as_json:
        show(found)
        return
    table(
        "holes",
        ("from", "to", "broker", Further("reason"), "filled"),
        ([minute(one["from_at"]), minute(one["to_at"]), one["broker"], one["reason"], _filled(one)] for one in found),
        wide=wide,
        empty="no broker is known to have dropped anything",
    )


@app.command("remove")
def remove_bridge(
    bridge: Bridge, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Remove a source; its products stay.

    Example: downburst bridges remove dwd
    """
    confirm(f"Remove source {bridge}? Products that it announced and that were not fetched are forgotten.", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "bridges", bridge)
    show({"removed": bridge}) if as_json else print(f"source {bridge} removed")


def _account(one: dict[str, Any]) -> list[Any]:
    names = ("centre", "products", "bytes", "coming", "waiting", "copies", "refused", "failed")
    return [size_text(one[name]) if name == "bytes" else one[name] for name in names]


def _filled(hole: dict[str, Any]) -> str:
    if hole["filled_at"]:
        return f"{minute(hole['filled_at'])} by {hole['filled_by']}"
    return f"no: {hole['fault']}" if hole["fault"] else "no"


def _of_record(dataset: str | None, catalogue: str | None, signed_in: dict[str, Any]) -> dict[str, Any]:
    """Brokers and topics of a dataset, as its record names them."""
    if dataset is None:
        return {}
    if catalogue is None:
        raise BadInput("give the catalogue that has the record of the dataset: --catalogue https://…")
    found = dataset_in(catalogue, dataset)
    named = ({"url": one.url, "user": one.user, "password": one.password} for one in found.brokers[:BROKERS])
    brokers = [one | signed_in for one in named]
    return {"brokers": brokers, "topics": list(found.topics), "takes_recommended": found.is_recommended}


def _logins_in(path: Path | None) -> list[Any] | None:
    text = password_in(path)
    try:
        found = None if text is None else json.loads(text)
    except ValueError:
        raise BadInput(
            f"the file of logins {path} is no JSON: downburst bridges change --help has an example"
        ) from None
    if found is not None and not isinstance(found, list):
        raise BadInput(f"the file of logins {path} has no list: downburst bridges change --help has an example")
    return found


def _brokers(one: dict[str, Any]) -> str:
    connected = sum(broker["connected_at"] is not None for broker in one["brokers"])
    return f"{connected} of {len(one['brokers'])} connected" if one["enabled"] else "off"


def _pace(pace: dict[str, Any]) -> list[str]:
    """The speed of a source, in lines."""
    if pace["products"] == 0:
        latency = "no product was stored since the hub or the source started"
    else:
        seconds = ", ".join(f"p{share} {pace[f'p{share}_s']:.1f} s" for share in (50, 99))
        latency = f"publication to this hub's log: {seconds}, of the last {pace['products']} products"
    return [f"behind by {_seconds(pace['behind_s'])}", latency]


def _broker(one: dict[str, Any]) -> list[Any]:
    state = f"connected since {minute(one['connected_at'])}" if one["health"] == "good" else one["sentence"]
    rate = "" if one["messages_per_s"] is None else f"{one['messages_per_s']:.2f}"
    return [one["url"], one["health"], state, _bound(one), minute(one["last_at"]), rate, _seconds(one["delay_s"])]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _bound(broker: dict[str, Any]) -> str:
    return (
        f"{broker['bound']}, refused: {', '.join(broker['refused'])}" if broker["refused"] else str(broker["bound"])
    )


BROKERS = 2
"""Of a record: one may be away (guide to WIS2, 1.2.2)."""
STATES = ("coming", "waiting", "held", "failed")
