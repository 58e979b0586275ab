"""`downburst probe knee`, `cbr`, `soak` and `stacks`: the measurements."""

from typing import Annotated

import typer

from downburst.domain.circuits import Direction
from downburst.domain.probes import ProbeKind, ProbeTransport
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient
from downburst_app.cli.numbers import real_number
from downburst_app.cli.probes.follow import run
from downburst_app.cli.probes.options import (
    Congestion,
    NoWait,
    PacketBytes,
    Patience,
    Rate,
    Relay,
    Site,
    Transport,
    Way,
    request,
)


def knee(  # noqa: PLR0913
    site: Site,
    *,
    highest: Annotated[str | None, typer.Option(help="Highest rate, such as 1G; else the access rate.")] = None,
    steps: Annotated[int, typer.Option(min=2, max=64, help="Rates from a tenth of the highest one on.")] = 10,
    step_s: Annotated[float, real_number("--seconds", least=0.1, most=60, help="Seconds of each rate.")] = 1.0,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    no_wait: NoWait = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Find the highest rate that a path carries without loss: the usable multicast rate.

    Example: downburst probe knee unl.edu

    Example: downburst probe knee unl.edu --highest 1G --steps 20 --seconds 2 --direction in

    Example: downburst probe knee unl.edu --from omaha-relay
    """
    wanted = request(
        site,
        ProbeKind.KNEE,
        direction,
        patience_s=patience_s,
        rate=highest,
        seconds=step_s,
        steps=steps,
        packet_bytes=packet_bytes,
        relay=relay,
    )
    run(HubClient(hub), wanted, wait=not no_wait, as_json=as_json)


def cbr(  # noqa: PLR0913
    site: Site,
    *,
    rate: Rate,
    seconds: Annotated[float, real_number("--seconds", least=0.1, most=3_600, help="Its duration.")] = 10.0,
    transport: Transport = ProbeTransport.UDP,
    congestion: Congestion = None,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    no_wait: NoWait = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send at one rate: one-way delay, jitter, loss, and the delay's excess after each loss.

    Example: downburst probe cbr unl.edu --rate 100M --seconds 30

    Example: downburst probe cbr unl.edu --rate 100M --transport tcp --congestion cubic
    """
    wanted = request(
        site,
        ProbeKind.CBR,
        direction,
        patience_s=patience_s,
        rate=rate,
        seconds=seconds,
        packet_bytes=packet_bytes,
        relay=relay,
        transport=transport,
        congestion=congestion,
    )
    run(HubClient(hub), wanted, wait=not no_wait, as_json=as_json)


def soak(  # noqa: PLR0913
    site: Site,
    *,
    rate: Rate,
    hours: Annotated[float, real_number("--hours", least=0.01, most=168, help="Its duration.")] = 24.0,
    transport: Transport = ProbeTransport.UDP,
    congestion: Congestion = None,
    direction: Way = Direction.OUT,
    relay: Relay = None,
    packet_bytes: PacketBytes = 1_200,
    patience_s: Patience = 60.0,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Send at one rate for hours to days, and report each hour; it continues after an interruption and says so.

    Example: downburst probe soak unl.edu --rate 10M --hours 24
    """
    wanted = request(
        site,
        ProbeKind.SOAK,
        direction,
        patience_s=patience_s,
        rate=rate,
        seconds=hours * 3_600,
        packet_bytes=packet_bytes,
        relay=relay,
        transport=transport,
        congestion=congestion,
    )
    run(HubClient(hub), wanted, wait=wait, as_json=as_json)


def stacks(  # noqa: PLR0913
    site: Site,
    *,
    controls: Annotated[
        str, typer.Option(help="1 to 4 congestion controls of the senders' kernels, with commas.")
    ] = "cubic,bbr,reno",
    rate: Annotated[
        str | None, typer.Option("--rate", help="Limit of each direction, such as 1G; else the access rate.")
    ] = None,
    seconds: Annotated[float, real_number("--seconds", least=0.5, most=60, help="Seconds of each trial.")] = 10.0,
    no_reverse: Annotated[
        bool, typer.Option("--no-reverse", help="Leave out the trials with reverse traffic.")
    ] = False,
    direction: Way = Direction.OUT,
    patience_s: Patience = 60.0,
    no_wait: NoWait = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Compare TCP congestion controls, alone and in pairs: goodput, shares, fairness and retransmissions.

    Example: downburst probe stacks unl.edu --rate 500M

    Example: downburst probe stacks unl.edu --controls cubic,bbr --seconds 30 --no-reverse
    """
    wanted = request(
        site,
        ProbeKind.STACKS,
        direction,
        patience_s=patience_s,
        rate=rate,
        seconds=seconds,
        stacks=[name.strip() for name in controls.split(",")],
        reverse_traffic=not no_reverse,
    )
    run(HubClient(hub), wanted, wait=not no_wait, as_json=as_json)
