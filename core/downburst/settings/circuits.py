"""Settings of circuits."""

from ipaddress import IPv4Network, IPv6Network

from pydantic import Field

from downburst.settings.section import Section


class CircuitSettings(Section):
    """Circuits that the hub's own nodes make, and how they are measured."""

    apart: bool = Field(
        default=False,
        description="Whether `downburst circuit-service` runs beside the hub; ledger and events then need servers.",
    )
    network: IPv4Network | IPv6Network = Field(
        default=IPv4Network("10.231.0.0/16"),
        description="Where circuits get their inner addresses: two for a site, so 32,768 circuits at a time.",
    )
    probe_minutes: float = Field(
        default=10.0,
        gt=0,
        description="Minutes between two measurements of a circuit. By default a measurement takes half a second in "
        "ten minutes, 0.1 % of the time.",
    )
    probe_ms: int = Field(
        default=500,
        ge=200,
        le=2_000,
        description="Milliseconds of a measuring train. The default gives ten bins of 50 ms, enough to show a cause.",
    )
