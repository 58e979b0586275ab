"""Settings of circuits."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from pydantic import Field, field_validator

from downburst.settings.addresses import split_address
from downburst.settings.section import Section


class CallbackSettings(Section):
    """The address at which providers of circuits deliver callbacks; without it their lists are asked for."""

    listen: str = Field(description="HOST:PORT to listen on for callbacks of NSI providers, over HTTPS.")
    certificate: Path = Field(description="PEM file of the certificate that providers see there.")
    key: Path = Field(description="PEM file of that certificate's key, without a password.")
    authorities: Path = Field(description="PEM file of the authorities of providers' client certificates.")

    @field_validator("listen")
    @classmethod
    def _is_address(cls, text: str) -> str:
        split_address(text)
        return text


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
    archive_days: float = Field(
        default=30.0,
        gt=0,
        le=36_500,
        description="Days after which a finished circuit is in the archive: lists leave it out unless they are asked "
        "for it.",
    )
    callbacks: CallbackSettings | None = Field(
        default=None,
        description="Where NSI providers deliver callbacks: listen, certificate, key and authorities. Without it "
        "everything works by asking them.",
    )
