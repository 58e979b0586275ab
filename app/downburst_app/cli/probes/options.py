"""Options that the commands of probes share, and the request that they make."""

from typing import Annotated, Any

import typer

from downburst.domain.circuits import Direction
from downburst.domain.probes import ProbeKind, ProbeTransport
from downburst.foundation.rates import parse_rate_bps
from downburst_app.cli import completion
from downburst_app.cli.client import given
from downburst_app.cli.numbers import A_DAY_S, real_number

Site = Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=completion.sites)]
Number = Annotated[
    int, typer.Argument(help="Number of the probe, as listed.", min=1, autocompletion=completion.probes)
]
Rate = Annotated[str, typer.Option("--rate", help="The rate, such as 100M, in bits per second of Ethernet frames.")]
Way = Annotated[Direction, typer.Option("--direction", help="out: from the hub to the site; in: from the site.")]
Relay = Annotated[
    str | None, typer.Option("--from", help="The relay of the site's session as the near end; else hub or sender.")
]
PacketBytes = Annotated[
    int, typer.Option("--packet", min=64, max=1_472, help="Bytes in a datagram, or in a record of a TCP stream.")
]
Patience = Annotated[
    float, real_number("--patience", least=0, most=A_DAY_S, help="Seconds to wait for free rate at most.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only ask for it; follow it with `downburst probe show`.")]
Transport = Annotated[
    ProbeTransport, typer.Option("--transport", help="tcp: a lost packet costs delay instead of data.")
]
Congestion = Annotated[
    str | None,
    typer.Option("--congestion", help="Congestion control over TCP, such as cubic; else the kernel's default."),
]


def request(
    site: str,
    kind: ProbeKind,
    direction: Direction,
    *,
    rate: str | None,
    seconds: float | None,
    transport: ProbeTransport = ProbeTransport.UDP,
    **more: object,
) -> dict[str, Any]:
    """The body of a request; what is None is left to the hub."""
    wanted = {"site": site, "kind": kind.value, "direction": direction.value}
    tcp = transport.value if transport is ProbeTransport.TCP else None
    rate_bps = None if rate is None else parse_rate_bps(rate)
    return wanted | given(rate_bps=rate_bps, seconds=seconds, transport=tcp, **more)
