"""Settings of access: public access, and the duration of logins."""

from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from pydantic import Field

from downburst.settings.oidc import OidcSettings
from downburst.settings.section import Section


class AccessSettings(Section):
    """Public access, and the duration of a login."""

    without_login: Literal["nothing", "latency", "page"] = Field(
        default="nothing",
        description="Public access: nothing; latency, volume and the distribution tree; or the whole page, for "
        "trials. Contacts and addresses are never public.",
    )
    session_hours: float = Field(
        default=336.0,
        gt=0,
        le=8_784,
        description="Hours until a user has to sign in again. The default is two weeks.",
    )
    credential_days: float = Field(
        default=90.0,
        gt=0,
        le=7_320,
        description="Days that a site's credential lasts; its receiver replaces it when a third is left, so it "
        "may be offline for a month. A leaked copy is useless after a quarter of a year.",
    )
    proxies: tuple[IPv4Network | IPv6Network, ...] = Field(
        default=(),
        description="Addresses or networks of proxies before the hub, whose X-Forwarded-For and "
        "X-Forwarded-Proto are trusted. Empty: none, because any user of this machine can write them.",
    )
    audit_days: float = Field(
        default=1_100.0, gt=0, description="Days that the audit is kept. The default is a little over three years."
    )
    oidc: OidcSettings = OidcSettings()
