"""`downburst tcp-profiles`: the tuning of TCP for prefixes of addresses."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile, knobs_text
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.foundation.sizes import parse_size_bytes
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="List, add, show and remove TCP profiles: tuning for a path.", no_args_is_help=True)
Name = Annotated[
    str, typer.Argument(help="Name of the profile, for example overseas.", autocompletion=completion.profiles)
]
Buffer = Annotated[str | None, typer.Option(help="Size for all connections of a site together: 8MiB, 512KiB.")]


@app.command("list")
def list_profiles(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the TCP profiles with the present or last trial of each.

    Example: downburst tcp-profiles list
    """
    found = HubClient(hub).every("v1", "tcp-profiles")
    if as_json:
        show(found)
        return
    table(
        "TCP profiles",
        ("profile", "prefix", "mode", "values", Further("learnt"), Further("trial")),
        ([one["profile"], one["prefix"], one["mode"], *_values(one), _trial(one["trial"])] for one in found),
        wide=wide,
        empty="there are no TCP profiles; add one: downburst tcp-profiles add overseas 192.0.2.0/24 --congestion bbr",
    )


@app.command("add")
def add_profile(  # noqa: PLR0913
    profile: Name,
    prefix: Annotated[
        str, typer.Argument(help="Addresses of sites: 192.0.2.0/24 or 2001:db8::/32; the longest wins.")
    ],
    *,
    congestion: Annotated[
        str | None, typer.Option(help="Congestion control of the kernel: bbr, cubic, reno.")
    ] = None,
    send_buffer: Buffer = None,
    receive_buffer: Buffer = None,
    pacing: Annotated[str | None, typer.Option(help="Highest rate of each connection: 50M, 1G.")] = None,
    connections: Annotated[int | None, typer.Option(help="Data connections of a site, 1 to 16.")] = None,
    trial: Annotated[
        bool,
        typer.Option("--trial", help="Try the values on some connections, and keep them only if they are better."),
    ] = False,
    learn: Annotated[bool, typer.Option("--learn", help="Have the hub find values by trials; give none.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add a TCP profile, or give it exactly these values.

    Values that are left out stay the kernel's. They apply to present and later connections of sites in the prefix.

    Example: downburst tcp-profiles add overseas 192.0.2.0/24 --congestion bbr --send-buffer 8MiB --pacing 50M

    Example: downburst tcp-profiles add overseas 192.0.2.0/24 --congestion bbr --connections 4 --trial

    Example: downburst tcp-profiles add campus 2001:db8::/32 --learn
    """
    knobs = given(
        congestion=congestion,
        send_buffer_bytes=None if send_buffer is None else parse_size_bytes(send_buffer),
        receive_buffer_bytes=None if receive_buffer is None else parse_size_bytes(receive_buffer),
        pacing_bps=None if pacing is None else parse_rate_bps(pacing),
        connections=connections,
    )
    # Impossible values are refused here with the sentence of the hub.
    wanted = TcpProfile(profile, prefix, _mode(trial=trial, learn=learn), TcpKnobs(**knobs))
    body = {"prefix": wanted.prefix, "mode": wanted.mode.value, "knobs": knobs}
    made = HubClient(hub).ask("PUT", "v1", "tcp-profiles", profile, json=body)
    show(made) if as_json else print(f"TCP profile {profile} for {made['prefix']}: {_effect(made)}")


@app.command("show")
def show_profile(profile: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show a TCP profile with the figures of its present or last trial.

    Example: downburst tcp-profiles show overseas
    """
    found = HubClient(hub).ask("GET", "v1", "tcp-profiles", profile)
    if as_json:
        show(found)
        return
    table(f"TCP profile {profile}", ("", ""), rows(found), empty="")


@app.command("remove")
def remove_profile(profile: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a TCP profile; its connections get the values of a shorter prefix, or the kernel's.

    Example: downburst tcp-profiles remove overseas
    """
    HubClient(hub).ask("DELETE", "v1", "tcp-profiles", profile)
    show({"removed": profile}) if as_json else print(f"TCP profile {profile} removed")


def rows(found: dict[str, Any]) -> Iterator[list[str]]:
    """A profile in words."""
    values, learnt = _values(found)
    yield ["prefix", found["prefix"]]
    yield ["mode", found["mode"]]
    if found["mode"] != ProfileMode.LEARN:
        yield ["values", values]
    else:
        yield ["learnt", learnt or "nothing yet"]
    yield ["changed", found["changed_at"][:19]]
    trial = found["trial"]
    if trial is None:
        yield ["trial", "none with these values"]
        return
    yield ["trial", _trial(trial)]
    yield ["candidate", values_text(trial["knobs"])]
    yield ["before", values_text(trial["before"])]
    yield ["with the candidate", _side(trial["canaries"], trial["canary_bps"])]
    yield ["without it", _side(trial["others"], trial["others_bps"])]
    yield ["windows compared", str(trial["windows"])]
    yield ["reason", trial["reason"]]
    if trial["sender"]:
        yield ["at the sender", trial["sender"]]


def values_text(knobs: dict[str, Any]) -> str:
    """Values of a profile in a few words."""
    return knobs_text(TcpKnobs(**knobs))


def _mode(*, trial: bool, learn: bool) -> ProfileMode:
    if trial and learn:
        raise BadInput("--trial and --learn exclude each other: give values with --trial, or none with --learn")
    if learn:
        return ProfileMode.LEARN
    return ProfileMode.TRIAL if trial else ProfileMode.STATIC


def _effect(made: dict[str, Any]) -> str:
    if made["mode"] == ProfileMode.LEARN:
        return "the hub looks for better values; see its trials: downburst tcp-profiles list"
    values = values_text(made["knobs"])
    tried = " on trial; see the outcome: downburst tcp-profiles list" if made["mode"] == ProfileMode.TRIAL else ""
    return f"{values}{tried}"


def _values(one: dict[str, Any]) -> tuple[str, str]:
    values = "" if one["mode"] == ProfileMode.LEARN else values_text(one["knobs"])
    return values, values_text(one["learnt"]) if one["learnt"] else ""


def _trial(trial: dict[str, Any] | None) -> str:
    if trial is None:
        return ""
    ratio = "" if trial["ratio"] is None else f", {trial['ratio']:.2f} times the rate of the others"
    return f"{trial['step']} {minute(trial['at'])}{ratio}"


def _side(connections: int, rate_bps: int | None) -> str:
    rate = "not measured" if rate_bps is None else f"{rate_text(rate_bps)} each"
    return f"{connections} connection{'' if connections == 1 else 's'}, {rate}"
