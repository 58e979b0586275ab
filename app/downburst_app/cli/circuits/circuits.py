"""`downburst circuits`: rates reserved between the hub and sites, or between two sites, for a time."""

from typing import Annotated, Any

import typer

from downburst.domain.circuits import Cap, CircuitCreation, CircuitDriver, CircuitState, PathOrder, Replication
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import parse_rate_bps, rate_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.circuits import leaves, life, offers, orders, providers, tests
from downburst_app.cli.circuits.answers import By, DryRun, Number, between, dry, say, second, sentence
from downburst_app.cli.circuits.ports import tag_range
from downburst_app.cli.client import AsJson, HubAddress, HubClient, Yes, confirm, given, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import real_number

app = typer.Typer(help="Reserve, change, measure and cancel circuits.", no_args_is_help=True)
app.add_typer(leaves.app, name="leaves")
app.add_typer(offers.app, name="offers")
app.add_typer(providers.app, name="providers")
app.add_typer(tests.app, name="tests")
Out = "To each far end, in Ethernet-frame bits per second: 500M, 1G."
Back = "From each far end, in the same units."
Near = Annotated[
    str | None,
    typer.Option("--from", help="Site at the near end, such as a relay, or one of its ports; left out: the hub."),
]
Begin = Annotated[str, typer.Option(help="now, +2h (from now), or RFC 3339 with an offset.")]
End = Annotated[
    str | None, typer.Option(help="RFC 3339, or +2h (counted from the begin). Left out: until it is cancelled.")
]
RequestId = Annotated[
    str | None, typer.Option(help="Request id of your own; a repeated request with it returns the same circuit.")
]
Addresses = Annotated[
    list[str] | None, typer.Option(help="Declared circuits: addresses of the ends, the near one first.")
]
Copies = Annotated[Replication, typer.Option(help="Replication for several sites.")]
Capping = Annotated[Cap, typer.Option(help="Whether traffic above the rate waits, or goes as best effort.")]
Hold = Annotated[str | None, typer.Option(help="Only hold it so long, such as 120s: without a commit it expires.")]
ByHand = Annotated[bool, typer.Option("--by-hand", help="Create its path on request, not at the begin.")]
Include = Annotated[list[str] | None, typer.Option(help="Link or switch that its path must pass; repeat for more.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Link or switch that it must not pass; repeat for more.")]
Order = Annotated[PathOrder, typer.Option(help="Path to choose: shortest, fewest-hops or widest.")]
Share = Annotated[float, real_number(least=0.85, most=1, help="Share of the rate that is sent at most.")]
Burst = Annotated[int | None, typer.Option(help="Burst in bytes; left out: derived from the rate.")]


@app.command("list")
def list_circuits(  # noqa: PLR0913
    *,
    state: Annotated[list[CircuitState] | None, typer.Option(help="Only these states; repeat for more.")] = None,
    site: Annotated[
        str | None, typer.Option(help="Only those to this site.", autocompletion=completion.sites)
    ] = None,
    port: Annotated[
        str | None, typer.Option(help="Only those on this port.", autocompletion=completion.ports)
    ] = None,
    finished: Annotated[bool, typer.Option("--finished", help="Include finished circuits.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Include the archive: finished long ago.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of circuits.")] = 100,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List circuits, newest first.

    Example: downburst circuits list --site unl.edu --finished
    """
    asked = given(state=[one.value for one in state] if state else None, site=site, port=port)
    asked |= {"finished": finished, "archived": archived, "limit": limit}
    found = HubClient(hub).ask("GET", "v1", "circuits", params=asked)
    if as_json:
        show(found)
        return
    table(
        "Circuits (Mb/s of Ethernet frames to each far end; windows in UTC)",
        ("", "ends", "state", "reserved", "measured", "used", "window"),
        (_row(circuit) for circuit in found),
        empty="there are no circuits; reserve one: downburst circuits add --to unl.edu --rate 500M --end +2h",
    )
    for circuit in found:
        if circuit["reason"] and circuit["state"] != CircuitState.ADMITTED:
            print(f"{circuit['circuit']}: {circuit['reason']}")
    for circuit in found:
        if circuit["requested_by"].startswith("urn:"):
            # Another network, by its own name and that of its certificate.
            print(f"{circuit['circuit']}: requested by {circuit['requested_by']}")


@app.command("add")
def add_circuit(  # noqa: PLR0913
    *,
    to: Annotated[list[str], typer.Option(help="Site at the far end, or one of its ports; repeat for more sites.")],
    rate: Annotated[str, typer.Option(help=Out)],
    rate_back: Annotated[str | None, typer.Option(help=Back)] = None,
    begin: Begin = "now",
    end: End = None,
    near: Near = None,
    port: Annotated[str | None, typer.Option(help="The hub's port; left out: its only one.")] = None,
    vlan: Annotated[str | None, typer.Option(help="Acceptable tags at the near port: 100-199.")] = None,
    driver: Annotated[CircuitDriver, typer.Option(help="Driver that sets it up.")] = CircuitDriver.LINUX,
    provider: Annotated[str | None, typer.Option(help="Driver nsi: the provider that is asked.")] = None,
    address: Addresses = None,
    ticket: Annotated[str | None, typer.Option(help="Reference of the provider that set it up.")] = None,
    replication: Copies = Replication.HEAD_END,
    group: Annotated[str | None, typer.Option(help="Group of the underlay, where that replicates.")] = None,
    cap: Capping = Cap.HARD,
    shaped_share: Share = 0.9,
    burst_bytes: Burst = None,
    hold: Hold = None,
    by_hand: ByHand = False,
    include: Include = None,
    exclude: Exclude = None,
    path_order: Order = PathOrder.SHORTEST,
    description: Annotated[str | None, typer.Option(help="Purpose.")] = None,
    request_id: RequestId = None,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Reserve a circuit.

    Example, an hour from now and for two hours: downburst circuits add --to unl.edu --rate 500M --begin +1h --end +2h

    Example: downburst circuits add --to unl.edu --rate 1G --driver declared --address 10.10.200.10/24
    --address 10.10.200.20/24 --ticket NOC-4711

    Example, between two relays: downburst circuits add --from east --to west --rate 500M --rate-back 500M

    Example, held for two minutes: downburst circuits add --to unl.edu --rate 500M --hold 120s --exclude wide

    Example, asked of another network: downburst circuits add --to unl.edu --rate 1G --driver nsi --provider surf
    """
    client = HubClient(hub)
    ends = _with_addresses(_ends(client, near, given(port=port) | _tags(vlan), to), address)
    back_bps = None if rate_back is None else parse_rate_bps(rate_back)
    wanted = given(end=end, provider=provider, ticket=ticket, group=group, burst_bytes=burst_bytes)
    wanted |= given(rate_in_bps=back_bps, description=description, request_id=request_id)
    wanted |= {"driver": driver, "replication": replication, "cap": cap, "shaped_share": shaped_share}
    wanted |= {"path_order": path_order} | _life_wanted(hold, include, exclude, by_hand)
    body = wanted | {
        "hub": ends[0] if near is None else None,
        "sites": ends[1:] if near is None else ends,
        "rate_out_bps": parse_rate_bps(rate),
        "begin": begin,
        "by": by,
    }
    say(client.ask("POST", "v1", "circuits", json=body, params=dry(dry_run)), as_json, dry_run)


@app.command("show")
def show_circuit(
    number: Number, *, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False
) -> None:
    """Show a circuit with its history and measurements.

    Example: downburst circuits show 17
    """
    found = HubClient(hub).ask("GET", "v1", "circuits", str(number))
    if as_json:
        show(found)
        return
    print(sentence(found))
    for line in _life(found):
        print(f"  {line}")
    if found["provider"] is not None:
        print(f"  asked of provider {found['provider']}")
    for end in found["ends"]:
        tag = "untagged" if end["vlan"] is None else f"tag {end['vlan']}"
        address = end["address"] or "assigned at the begin"
        print(f"  {end['site'] or 'hub'}: port {end['port']}, {tag}, address {address}")
    for row in found["measurements"]:
        cause = f": {row['sentence']}; {row['remedy']}" if row["sentence"] else ""
        print(f"  measured {row['direction']} {row['site']}: {rate_text(row['rate_bps'])} at {row['at']}{cause}")
    columns = ("at", "state", "sentence", Further("step"), Further("hop"), "remedy")
    rows = ([second(event["at"]), *(event[name] for name in columns[1:])] for event in found["events"])
    table("History", columns, rows, wide=wide, empty="no events yet")


@app.command("modify")
def modify_circuit(  # noqa: PLR0913
    number: Number,
    *,
    rate: Annotated[str | None, typer.Option(help=Out)] = None,
    rate_back: Annotated[str | None, typer.Option(help=Back)] = None,
    begin: Annotated[str | None, typer.Option(help="As for `add`; before its window has begun.")] = None,
    end: Annotated[
        str | None, typer.Option(help="RFC 3339, +2h (counted from now), or never (until it is cancelled).")
    ] = None,
    burst_bytes: Burst = None,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change rate, window or burst, together or not at all; a refusal leaves the circuit and its traffic unchanged.

    Example: downburst circuits modify 17 --rate 900M --end 2026-07-01T18:00:00Z
    """
    wanted: dict[str, Any] = given(
        rate_out_bps=None if rate is None else parse_rate_bps(rate),
        rate_in_bps=None if rate_back is None else parse_rate_bps(rate_back),
        burst_bytes=burst_bytes,
        begin=begin,
    )
    if end is not None:
        wanted["end"] = None if end == "never" else end
    if not wanted:
        raise BadInput("nothing to change was given; `downburst circuits modify --help` shows what there is")
    client = HubClient(hub)
    changed = client.ask("PATCH", "v1", "circuits", str(number), json=wanted | {"by": by}, params=dry(dry_run))
    say(changed, as_json, dry_run)


@app.command("cancel")
def cancel_circuit(
    number: Number,
    *,
    by: By = "operator",
    dry_run: DryRun = False,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Cancel a circuit; its feeds use the routed path.

    Example: downburst circuits cancel 17
    """
    confirm(f"Cancel circuit {number}? Its rate can be reserved by others from now on.", yes=yes or dry_run)
    params = dry(dry_run) | {"by": by}
    say(HubClient(hub).ask("DELETE", "v1", "circuits", str(number), params=params), as_json, dry_run)


@app.command("clone")
def clone_circuit(  # noqa: PLR0913
    number: Number,
    *,
    begin: Begin = "now",
    request_id: RequestId = None,
    by: By = "operator",
    dry_run: DryRun = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Reserve a copy of a circuit, with the same duration.

    Example: downburst circuits clone 17 --begin +1d
    """
    wanted = given(request_id=request_id) | {"begin": begin, "by": by}
    client = HubClient(hub)
    made = client.ask("POST", "v1", "circuits", str(number), "clone", json=wanted, params=dry(dry_run))
    say(made, as_json, dry_run)


@app.command("measure")
def measure_circuit(number: Number, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Measure a circuit now; `circuits show` has the result some seconds later.

    Example: downburst circuits measure 17
    """
    found = HubClient(hub).ask("POST", "v1", "circuits", str(number), "measure")
    show(found) if as_json else print(
        f"circuit {number} is being measured; see the result: downburst circuits show {number}"
    )


def _life_wanted(
    hold: str | None,
    include: list[str] | None,
    exclude: list[str] | None,
    by_hand: bool,  # noqa: FBT001
) -> dict[str, Any]:
    """The hold, the wishes for the path, and the time of its creation."""
    from downburst_analyze.quantities import duration_s

    hold_s = None if hold is None else duration_s(hold)
    creation = CircuitCreation.BY_HAND if by_hand else CircuitCreation.AUTOMATIC
    return given(hold_s=hold_s, include=include, exclude=exclude, creation=creation)


def _life(circuit: dict[str, Any]) -> list[str]:
    """The facts of its life that its state doesn't tell."""
    lines = []
    if circuit["held_until"] is not None:
        lines.append(f"held until {second(circuit['held_until'])}; downburst circuits commit {circuit['circuit']}")
    if circuit["overridden"] is not None:
        why = f"{circuit['override_by']}: {circuit['override_reason']}"
        lines.append(f"overridden as {circuit['overridden']} by {why}; by its probes it is {circuit['probed_state']}")
    if circuit["creation"] == CircuitCreation.BY_HAND:
        lines.append("its path is created by hand")
    if circuit["path"]:
        hops = (hop["link"] + (f" (tag {hop['tag']})" if hop["tag"] is not None else "") for hop in circuit["path"])
        lines.append(f"path: {', '.join(hops)}")
    return lines


def _ends(client: HubClient, near: str | None, asked: dict[str, Any], to: list[str]) -> list[dict[str, Any]]:
    """The ends, the near one first; `asked`: its port, if it is the hub's, and its tags."""
    if near is None:
        return [asked, *_named_ends(client, to)]
    if "port" in asked:
        raise BadInput(
            f"the near end is {near}, so the hub's port {asked['port']} has no part in it; leave --port out"
        )
    near_end, *far_ends = _named_ends(client, [near, *to])
    return [near_end | asked, *far_ends]


def _named_ends(client: HubClient, names: list[str]) -> list[dict[str, Any]]:
    """Names an end by its site, or by its port if the site has several."""
    ports = {port["port"] for port in client.ask("GET", "v1", "ports") if port["site"] is not None}
    return [{"port": name} if name in ports else {"site": name} for name in names]


def _with_addresses(ends: list[dict[str, Any]], addresses: list[str] | None) -> list[dict[str, Any]]:
    if addresses and len(addresses) != len(ends):
        raise BadInput(
            f"{len(addresses)} addresses for {len(ends)} ends were given; give one for each, the near end first"
        )
    for end, address in zip(ends, addresses or (), strict=False):
        end["address"] = address
    return ends


def _tags(text: str | None) -> dict[str, Any]:
    return {} if text is None else dict(zip(("first_vlan", "last_vlan"), tag_range(text), strict=True))


def _row(circuit: dict[str, Any]) -> list[object]:
    measured = circuit["measured_out_bps"]
    return [
        circuit["circuit"],
        between(circuit).removeprefix("to "),
        circuit["state"],
        _megabits(circuit["rate_out_bps"]),
        "not yet" if measured is None else _megabits(measured),
        _megabits(circuit["used_out_bps"]),
        f"{_short(circuit['begin'])} to {_short(circuit['end'])}"
        if circuit["end"]
        else f"from {_short(circuit['begin'])} on",
    ]


def _megabits(rate_bps: float) -> str:
    """A rate for a column with the unit in its title."""
    return f"{rate_bps / 1e6:.0f}" if rate_bps >= 100e6 else f"{rate_bps / 1e6:.3g}"


def _short(moment: str) -> str:
    """A time short enough to stand next to another."""
    return moment[:16].replace("T", " ")


app.command("orders")(orders.list_orders)
app.command("order")(orders.show_order)
app.command("commit")(life.commit)
app.command("create-path")(life.create_path)
app.command("tear-down-path")(life.tear_down_path)
app.command("override")(life.override)
