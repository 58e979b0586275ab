"""`downburst ports`: the ends of circuits."""

from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show, table
from downburst_app.cli.columns import Further, Wide

app = typer.Typer(help="List, add, change and remove the ports where circuits end.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the port, for example hub-eth0.", autocompletion=completion.ports)]
Rate = Annotated[
    str | None,
    typer.Option(help="Rate that circuits may reserve each way: 1G, 500M (Ethernet-frame bits per second)."),
]
PortRate = Annotated[
    str | None,
    typer.Option(help="Rate of the port itself, if circuits may not use all of it: 10G; none: unknown."),
]
Vlan = Annotated[str | None, typer.Option(help="Tags that circuits may have, such as 100-199; none: untagged.")]
Interface = Annotated[str | None, typer.Option(help="Its name on the host, such as eth0.")]
Underlay = Annotated[str | None, typer.Option(help="Address for the ends of tunnels.")]
Sender = Annotated[
    str | None, typer.Option(help="Sender on whose host it is; none: the hub's own node. Circuits then begin there.")
]
Stp = Annotated[str | None, typer.Option(help="Its name in the network's topology, urn:ogf:network:...")]


@app.command("list")
def list_ports(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the ports.

    Example: downburst ports list
    """
    found = HubClient(hub).ask("GET", "v1", "ports")
    if as_json:
        show(found)
        return
    table(
        "Ports",
        ("port", "of", "for circuits", Further("port rate"), "tags", "interface", Further("underlay")),
        (
            [
                p["port"],
                p["site"] or (f"sender {p['sender']}" if p["sender"] else "hub"),
                rate_text(p["rate_bps"]),
                _port_rate(p),
                _tags(p),
                p["interface"],
                p["underlay"],
            ]
            for p in found
        ),
        wide=wide,
        empty="there are no ports yet; create one: downburst ports add hub-eth0 --rate 1G --interface eth0",
    )


@app.command("add")
def add_port(  # noqa: PLR0913
    port: Name,
    *,
    rate: Annotated[
        str, typer.Option(help="Rate that circuits may reserve each way: 1G, 500M (frame bits per second).")
    ],
    port_rate: PortRate = None,
    site: Annotated[str | None, typer.Option(help="Site of the port; left out: this hub.")] = None,
    vlan: Vlan = None,
    interface: Interface = None,
    underlay: Underlay = None,
    stp: Stp = None,
    sender: Sender = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create a port.

    Examples: downburst ports add hub-eth0 --rate 8G --port-rate 10G --vlan 100-199 --interface eth0
    --underlay 192.0.2.1;
    downburst ports add unl-eth1 --site unl.edu --rate 1G --interface eth1 --underlay 192.0.2.9;
    downburst ports add one-eth0 --sender sender-one --rate 1G --interface eth0 --underlay 192.0.2.2
    """
    wanted = given(site=site, interface=interface, underlay=underlay, stp=stp) | _range(vlan) | _speed(port_rate)
    wanted |= _sender(sender)
    body = {"port": port, "rate_bps": parse_rate_bps(rate)} | wanted
    made = HubClient(hub).ask("POST", "v1", "ports", json=body)
    show(made) if as_json else print(
        f"port {port} created: {rate_text(made['rate_bps'])} each way, tags {_tags(made)}"
    )


@app.command("set")
def set_port(  # noqa: PLR0913
    port: Name,
    *,
    rate: Rate = None,
    port_rate: PortRate = None,
    vlan: Vlan = None,
    interface: Interface = None,
    underlay: Underlay = None,
    stp: Stp = None,
    sender: Sender = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change a port; other properties stay.

    Example: downburst ports set hub-eth0 --rate 10G
    """
    wanted = given(interface=interface, underlay=underlay, stp=stp) | _range(vlan) | _speed(port_rate)
    wanted |= _sender(sender)
    if rate is not None:
        wanted["rate_bps"] = parse_rate_bps(rate)
    if not wanted:
        raise BadInput("nothing to change was given; `downburst ports set --help` shows what there is")
    kept = HubClient(hub).ask("PATCH", "v1", "ports", port, json=wanted)
    show(kept) if as_json else print(f"port {port} changed")


@app.command("remove")
def remove_port(port: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a port that no circuit and no offer needs.

    Example: downburst ports remove hub-eth0
    """
    HubClient(hub).ask("DELETE", "v1", "ports", port)
    show({"removed": port}) if as_json else print(f"port {port} removed")


def tag_range(text: str) -> tuple[int, int]:
    """First and last tag of `100-199` or `100`."""
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise BadInput(f"{text!r} is not a range of tags; write 100-199, or one tag such as 100")
    tags = int(first), int(last or first)
    if not LOWEST_TAG <= tags[0] <= tags[1] <= HIGHEST_TAG:
        raise BadInput(
            f"{text!r} is not a range of tags; tags are {LOWEST_TAG} to {HIGHEST_TAG}, the lower one first"
        )
    return tags


def _range(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    first, last = (None, None) if text in ("", "none") else tag_range(text)
    return {"first_vlan": first, "last_vlan": last}


def _speed(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    return {"port_rate_bps": None if text == "none" else parse_rate_bps(text)}


def _sender(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    return {"sender": None if name == "none" else name}


def _port_rate(port: dict[str, Any]) -> str:
    return "" if port.get("port_rate_bps") is None else rate_text(port["port_rate_bps"])


def _tags(port: dict[str, Any]) -> str:
    return "none" if port["first_vlan"] is None else f"{port['first_vlan']}-{port['last_vlan']}"


LOWEST_TAG, HIGHEST_TAG = 1, 4094
