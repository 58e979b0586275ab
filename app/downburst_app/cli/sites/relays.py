"""`downburst relays`: machines on the way to sites."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.domain.relays import FanOut, Relay
from downburst.foundation.rates import rate_text
from downburst.foundation.sizes import size_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import (
    AsJson,
    HubAddress,
    HubClient,
    Yes,
    confirm,
    given,
    minute,
    show,
    table,
    write_secret,
)
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(
    help="List, add, show and remove relays: machines on the way to sites; and their log.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="Name of the relay, for example campus.", autocompletion=completion.relays)]


@app.command("list")
def list_relays(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the relays with their state and present traffic.

    Example: downburst relays list
    """
    found = HubClient(hub).every("v1", "relays")
    if as_json:
        show(found)
        return
    table(
        "Relays",
        (
            "relay",
            "state",
            Further("address"),
            Further("fan-out"),
            "sites behind it",
            "tunnels",
            "from the hub",
            Further("legs"),
        ),
        (
            [
                *(one["relay"], one["state_words"], one["address"] or "", one["fan_out"] or ""),
                *(" ".join(one["sites"]), str(len(one["tunnels"])), _traffic(one), str(len(one["legs"]))),
            ]
            for one in found
        ),
        wide=wide,
        empty="there are no relays; add one: downburst relays add campus --address relay.campus.edu:7379 --sites a",
    )


@app.command("add")
def add_relay(  # noqa: PLR0913
    relay: Name,
    *,
    address: Annotated[
        str | None, typer.Option(help="HOST:PORT at which its sites reach it; without one it carries no connections.")
    ] = None,
    fan_out: Annotated[
        FanOut | None,
        typer.Option(help="Hand out one copy of a leg, to a multicast group of its network or to each site by UDP."),
    ] = None,
    feeds: Annotated[str, typer.Option(help="Feeds granted to it, with commas; '*' for all.")] = "*",
    sites: Annotated[str | None, typer.Option(help="Sites behind it, with commas.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write the token to, readable only by you.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add a relay, or give it exactly these values; a relay that was never enrolled gets a one-time enrolment token.

    Its credentials are those of a site of the same name: downburst sites revoke, rotate and token apply to it.

    Example: downburst relays add campus --address relay.campus.edu:7379 --sites oslo,bergen -o campus.token

    Example: downburst relays add campus --fan-out unicast --feeds NGRID,NEXRAD2 --sites oslo,bergen

    Then, at the relay's host: downburst-node relay --hub HOST:7370 --token-file campus.token --dir
    /var/lib/downburst-relay --listen 0.0.0.0:7379
    """
    # Impossible values are refused here with the sentence of the hub.
    wanted = Relay(relay, address, fan_out, _names(sites), _names(feeds))
    body = given(address=address, fan_out=wanted.fan_out and wanted.fan_out.value)
    asking = HubClient(hub)
    made = asking.ask(
        "PUT", "v1", "relays", relay, json=body | {"sites": list(wanted.sites), "feeds": list(wanted.feeds)}
    )
    token = asking.ask("POST", "v1", "sites", relay, "tokens")["token"] if made["state"] == NEVER_ENROLLED else None
    if token is not None and output is not None:
        write_secret(output, token)
        token = None
    if as_json:
        show(made | {"token": token} | given(written_to=str(output) if output else None))
        return
    print(f"relay {relay}: {_role(made)}")
    if made["state"] == NEVER_ENROLLED:
        print(f"token, which enrols it once: {token or f'written to {output}'}")
        print(f"at its host: {_command(made, str(output or f'{relay}.token'))}")


@app.command("show")
def show_relay(relay: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show a relay with its tunnels, both segments of each, and its legs.

    Example: downburst relays show campus
    """
    found = HubClient(hub).ask("GET", "v1", "relays", relay)
    if as_json:
        show(found)
        return
    table(f"Relay {relay}", ("", ""), _rows(found), empty="")
    table("Tunnels", TUNNEL, map(_tunnel, found["tunnels"]), empty="it carries no connection at present")
    table(
        "Legs",
        ("leg", "datagrams", "bytes", "dropped"),
        (
            [str(one["leg"]), *(f"{one[name]:,}" for name in ("datagrams", "bytes", "dropped"))]
            for one in found["legs"]
        ),
        empty="it fans out no leg at present",
    )


@app.command("log")
def show_log(
    relay: Name,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The number of records.")] = 50,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the performance that tunnels achieved, newest first: each at its end, and each hour until then.

    Example: downburst relays log campus --limit 20
    """
    found = HubClient(hub).ask("GET", "v1", "relays", relay, "log", params={"limit": limit})
    if as_json:
        show(found)
        return
    table(
        f"Tunnels of {relay}",
        ("at", *TUNNEL, "state"),
        (
            [minute(one["at"]), *_tunnel(one["tunnel"]), "ended" if one["tunnel"]["ended"] else "open"]
            for one in found
        ),
        wide=wide,
        empty="no tunnel is recorded yet: each is at its end, and each hour until then",
    )


@app.command("remove")
def remove_relay(relay: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a relay with its credentials; its session ends immediately, and its sites take other ways.

    Example: downburst relays remove campus
    """
    confirm(f"Remove relay {relay}, its credentials and its log?", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "relays", relay)
    show({"removed": relay}) if as_json else print(f"relay {relay} removed")


def _rows(found: dict[str, Any]) -> Iterator[list[str]]:
    yield ["state", found["state_words"]]
    yield ["address", found["address"] or "none: it carries no connections"]
    yield ["fan-out", f"{found['fan_out']}: {' '.join(found['feeds'])}" if found["fan_out"] else "none"]
    yield ["sites behind it", " ".join(found["sites"]) or "none"]
    yield ["last report", found["reported_at"][:19] if found["reported_at"] else "none since the hub started"]
    yield ["tunnels refused", "not yet known" if found["refused"] is None else f"{found['refused']:,}"]


def _tunnel(one: dict[str, Any]) -> list[str]:
    return [
        one["site"] or one["site_side"],
        f"{one['seconds']:.0f} s",
        size_text(one["bytes_from_hub"]),
        rate_text(one["rate_from_hub_bps"]),
        _segment(one["near"]),
        _segment(one["onward"]),
    ]


def _segment(segment: dict[str, Any]) -> str:
    round_trip, loss = segment["round_trip_us"], segment["loss_ppm"]
    parts = [
        rate_text(segment["rate_bps"]),
        None if round_trip is None else f"{round_trip / 1e3:.3g} ms",
        None if loss is None else f"{loss / 1e4:.2g} % resent",
        segment["congestion"],
    ]
    return ", ".join(part for part in parts if part)


def _traffic(one: dict[str, Any]) -> str:
    return rate_text(sum(tunnel["rate_from_hub_bps"] for tunnel in one["tunnels"])) if one["tunnels"] else ""


def _role(made: dict[str, Any]) -> str:
    parts = [
        made["address"] and f"carries connections at {made['address']}",
        made["fan_out"] and f"fans out {' '.join(made['feeds'])} ({made['fan_out']})",
        f"{len(made['sites'])} site{'' if len(made['sites']) == 1 else 's'} behind it",
    ]
    return ", ".join(part for part in parts if part)


def _command(made: dict[str, Any], token_file: str) -> str:
    port = made["address"].rpartition(":")[2] if made["address"] else None
    listen = f" --listen 0.0.0.0:{port}" if port else ""
    return f"downburst-node relay --hub HOST:7370 --token-file {token_file} --dir /var/lib/downburst-relay{listen}"


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


NEVER_ENROLLED = "never-enrolled"
TUNNEL = ("site", "for", Further("from the hub"), "rate", "segment to the site", "segment to the hub")
