"""`downburst analyze`: the burstiness of a feed and each transport's performance, from a file or a hub's own days."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from downburst.domain.tcp.rates import CongestionControl
from downburst.foundation.errors import DownburstError
from downburst.settings.addresses import DEFAULT_HUB, HUB_VARIABLE
from downburst_app.cli.numbers import real_number

File = Annotated[
    Path | None, typer.Argument(help="Trace, CSV or rtstats lines, plain or packed by gzip; left out with --hub.")
]
OwnFeed = Annotated[str | None, typer.Option("--hub", help="A feed of the hub, by its last days, instead of FILE.")]
At = Annotated[str, typer.Option("--at", envvar=HUB_VARIABLE, help="The hub's address.")]
Days = Annotated[float, real_number(least=0.01, most=31, help="With --hub: how far back.")]
OwnTransfers = Annotated[
    bool, typer.Option("--transfers", help="With --hub: the transfers to sites instead of the products.")
]
Newest = Annotated[
    int, typer.Option(min=1, max=100_000, help="With --transfers or --heavy: products, a request each.")
]
Heavy = Annotated[
    str | None, typer.Option(help="Learn the pairs of feed and site that move more bytes in a minute: 1G.")
]
Export = Annotated[
    Path | None, typer.Option(help="Write the transfers to this file, with a keyed hash in place of each peer.")
]
KeyFile = Annotated[
    Path | None, typer.Option(help="Key of the hashes, 32 bytes or more; if left out, random and not kept.")
]
Processing = Annotated[
    str, typer.Option(help="Processing time of hub and sites in each latency; `plans show` has a hub's: 70ms.")
]
Congestion = Annotated[CongestionControl, typer.Option(help="Congestion control of the hub's connections.")]
ServingOrder = Annotated[
    Literal["first-come", "round-robin", "shortest-first"],
    typer.Option(help="Order in which unicast serves products; this hub uses the order of arrival."),
]
"""As `Order`, which loads numpy."""
LossRepair = Annotated[Literal["unicast", "coded"], typer.Option(help="How a group's losses are repaired.")]
"""As `Repair`."""
Offers = Annotated[str, typer.Option(help="Circuits on offer: none, point-to-point, multipoint, both.")]
CountersFile = Annotated[
    Path | None,
    typer.Option("--counters", help="CSV of a host's counters, or a node's counters/, beside a log of transfers."),
]
DataDirectory = Annotated[
    Path | None, typer.Option("--data-dir", help="With --transfers: data directory of a hub here, for its counters.")
]


def analyze(  # noqa: PLR0913 (every option of the command is a parameter)
    file: File = None,
    *,
    hub: OwnFeed = None,
    at: At = DEFAULT_HUB,
    days: Days = 2,
    transfers: OwnTransfers = False,
    newest: Newest = 1_000,
    data_dir: DataDirectory = None,
    heavy: Heavy = None,
    sites: Annotated[int, typer.Option(min=1, max=100_000, help="Sites that take the feed.")] = 5,
    egress: Annotated[str, typer.Option(help="Egress capacity of the hub: 1G, 100M.")] = "1G",
    objective: Annotated[str, typer.Option(help="Objective: a percentile and its maximum latency.")] = "p99=5s",
    rtt: Annotated[str, typer.Option(help="Round trip to the sites.")] = "20ms",
    floor: Processing = "0",
    loss: Annotated[str, typer.Option(help="Packet loss on the path to the sites: 0.5%.")] = "0",
    access: Annotated[str, typer.Option(help="Rate of the sites' lines: 100M, or 10M*3,100M*20.")] = "",
    congestion: Congestion = CongestionControl.CUBIC,
    connections: Annotated[int, typer.Option(min=1, max=64, help="Connections per site.")] = 1,
    order: ServingOrder = "first-come",
    multicast: Annotated[bool, typer.Option(help="Whether the network supports multicast.")] = True,
    multicast_rate: Annotated[str, typer.Option(help="The fastest pace of a group.")] = "400M",
    repair: LossRepair = "coded",
    circuits: Offers = "none",
    setup_delay: Annotated[str, typer.Option(help="Set-up time of a circuit.")] = "60s",
    hold: Annotated[str, typer.Option(help="Silence after which a dynamic circuit is given back.")] = "60s",
    gap: Annotated[str, typer.Option(help="Longest silence inside a session.")] = "60s",
    counters: CountersFile = None,
    export: Export = None,
    key_file: KeyFile = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the file by time first.")] = False,
    columns: Annotated[str, typer.Option(help="Columns of a CSV file without a header: size,time_ms.")] = "",
    html: Annotated[Path | None, typer.Option(help="Write a page with plots to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Show how bursty a recorded feed is, what each transport would cost and deliver, and the choice with a reason.

    FILE is a trace (`size_bytes YYYYMMDDhhmmss.mmm` a line), CSV with columns for size and time, a CSV log of
    transfers (start, duration_s, size_bytes, peer) for sessions, or rtstats lines for latencies.

    Example: downburst analyze ngrid-20150615T00-1h.txt --sites 8

    For a log of transfers it also reports factors of their throughput; `--counters` adds those of the hosts.

    Example: downburst analyze gridftp.csv --counters host.csv

    `--hub FEED` studies the feed's own last days as its hub recorded them, with `--transfers` the way to its sites.
    `--heavy` learns pairs of feed and site for circuits of their own, from CSV of feed, site, minute, bytes or a hub.

    Example: downburst analyze --hub NGRID --transfers --export transfers.csv

    Example: downburst analyze conduit.csv.gz --sites 104 --circuits both --no-multicast --html report.html
    """
    from downburst_app.cli.analysis import asked

    with _sentences():
        situation = asked.situation(
            sites=asked.sites(sites, access, asked.path(rtt, loss, congestion, connections)),
            rates=(egress, multicast_rate),
            multicast=multicast,
            repair=repair,
            order=order,
            circuits=asked.offers(circuits, setup_delay, hold),
            objective_and_floor=(objective, floor),
        )
        how = asked.options(gap, counters, html, asked.Sharing(export, key_file), heavy, sort=sort, as_json=as_json)
        own = None if hub is None else asked.OwnDays(at, hub, days, transfers, newest, data_dir)
        asked.show(file, own, columns or None, situation, how)


@contextmanager
def _sentences() -> Iterator[None]:
    """Ends the command with an error's sentence and its code."""
    try:
        yield
    except DownburstError as error:
        typer.echo(error.sentence, err=True)
        raise typer.Exit(error.exit_code) from None
