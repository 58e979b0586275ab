"""`downburst sites set`: every property of a site but the feeds that it may take (`sites allow`, `sites limit`)."""

from typing import Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.circuits.ports import tag_range
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, show
from downburst_app.cli.completion import Site
from downburst_app.cli.numbers import real_number

Organisation = Annotated[str | None, typer.Option(help="Organisation that runs it.")]
Contact = Annotated[str | None, typer.Option(help="Contact.")]
Place = Annotated[str | None, typer.Option(help="Location, in words.")]
Latitude = Annotated[float | None, real_number(least=-90, most=90, help="Degrees north.")]
Longitude = Annotated[float | None, real_number(least=-180, most=180, help="Degrees east.")]
MulticastInterface = Annotated[
    str | None, typer.Option(help="Interface there that joins groups; amt: an AMT relay sends them.")
]
AccessRate = Annotated[float | None, real_number(least=1, most=1e15, help="Access rate in bits per second.")]
LdmHost = Annotated[
    str | None,
    typer.Option(help="For a site that keeps its LDM: pattern of the host's name, in lower case, or address."),
]
Ceiling = Annotated[
    str | None,
    typer.Option(help="Most Mb/s to it: one number, or 24 with commas for the hours of the day in UTC; none."),
]
Attachment = Annotated[
    str | None, typer.Option(help="Its end of circuits, PORT:FIRST-LAST with the usable VLANs: eth1:100-199; none.")
]
DataConnections = Annotated[
    str | None, typer.Option(help="Connections for products beside its first: 0 to 16, or auto: as many as help.")
]
Multicast = Annotated[bool | None, typer.Option("--multicast/--no-multicast", help="Whether groups may serve it.")]
Active = Annotated[bool | None, typer.Option("--active/--inactive", help="Whether it may connect.")]


def set_site(  # noqa: PLR0913 (a property each)
    site: Site,
    *,
    organisation: Organisation = None,
    contact: Contact = None,
    place: Place = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    data_connections: DataConnections = None,
    multicast: Multicast = None,
    multicast_interface: MulticastInterface = None,
    access_rate_bps: AccessRate = None,
    no_access_rate: Annotated[bool, typer.Option("--no-access-rate", help="Its access rate is not known.")] = False,
    ceiling: Ceiling = None,
    attachment: Attachment = None,
    ldm_host: LdmHost = None,
    no_ldm_host: Annotated[bool, typer.Option("--no-ldm-host", help="It runs a receiver, not LDM.")] = False,
    active: Active = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Change properties of a site; others stay. `sites allow` and `sites limit` change the feeds that it may take.

    Example: downburst sites set unl.edu --data-connections 4

    Example: downburst sites set unl.edu --contact noc@unl.edu --latitude 40.8 --longitude -96.7 --no-multicast
    """
    wanted: dict[str, Any] = given(
        organisation=organisation,
        contact=contact,
        multicast=multicast,
        multicast_interface=multicast_interface,
        access_rate_bps=access_rate_bps,
        ldm_host=ldm_host,
        active=active,
    )
    wanted |= _read(data_connections, ceiling, attachment)
    wanted |= _cleared(wanted, access_rate_bps=no_access_rate, ldm_host=no_ldm_host)
    where = given(text=place, latitude=latitude, longitude=longitude)
    if not wanted and not where:
        raise BadInput("name what changes; `downburst sites set --help` lists the properties")
    client = HubClient(hub)
    if where:
        wanted["place"] = client.ask("GET", "v1", "sites", site)["place"] | where
    kept = client.ask("PATCH", "v1", "sites", site, json=wanted)
    show(kept) if as_json else print("\n".join(_changed(site, wanted, kept)))


def streams_in_words(count: int | None) -> str:
    """The number of data connections of a site."""
    return "as many data connections as help" if count is None else f"{count} data connections"


def _read(data_connections: str | None, ceiling: str | None, attachment: str | None) -> dict[str, Any]:
    """The properties whose options have a notation of their own."""
    found: dict[str, Any] = {}
    if data_connections is not None:
        found["data_connections"] = _number_or_auto(data_connections)
    if ceiling is not None:
        found["ceiling_mbps_by_hour"] = _ceiling(ceiling)
    if attachment is not None:
        found["circuit_attachment"] = _attachment(attachment)
    return found


def _cleared(wanted: dict[str, Any], **cleared: bool) -> dict[str, None]:
    """The properties that are removed; refuses one that is given as well."""
    names = [name for name, clear in cleared.items() if clear]
    for name in names:
        if name in wanted:
            option = name.removesuffix("_bps").replace("_", "-")
            raise BadInput(f"--{name.replace('_', '-')} and --no-{option} exclude each other; give one of them")
    return dict.fromkeys(names)


def _number_or_auto(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) > MOST_DATA_CONNECTIONS:
        raise BadInput(f"--data-connections is auto or 0 to {MOST_DATA_CONNECTIONS}, not {text!r}")
    return int(text)


def _ceiling(text: str) -> list[float]:
    if text == NONE:
        return []
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError:
        rates = []
    if len(rates) not in (1, HOURS) or not all(0 <= rate <= MOST_MBPS for rate in rates):
        raise BadInput(f"--ceiling is none, one number of Mb/s or {HOURS} with commas, not {text[:40]!r}")
    return rates * HOURS if len(rates) == 1 else rates


def _attachment(text: str) -> dict[str, Any] | None:
    if text == NONE:
        return None
    # A port may be an STP, which has colons.
    port, colon, tags = text.rpartition(":")
    if not colon or not port:
        raise BadInput(f"--attachment is none or PORT:FIRST-LAST, such as eth1:100-199, not {text[:40]!r}")
    first, last = tag_range(tags)
    return {"port": port, "first_vlan": first, "last_vlan": last}


def _changed(site: str, wanted: dict[str, Any], kept: dict[str, Any]) -> list[str]:
    """A sentence for each change with an effect on delivery, and one for the others."""
    lines = []
    if "data_connections" in wanted:
        lines.append(f"site {site} gets {streams_in_words(kept['data_connections'])}")
    if "multicast_interface" in wanted:
        lines.append(f"site {site} joins groups {_joining(kept['multicast_interface'])}")
    if "active" in wanted:
        lines.append(f"site {site} {'may connect' if kept['active'] else 'may not connect until it is set active'}")
    others = [name.replace("_", " ") for name in wanted if name not in SAID]
    if others:
        lines.append(f"site {site} changed: {', '.join(others)}")
    return lines


def _joining(interface: str) -> str:
    if interface == "amt" or interface.startswith("amt:"):
        return "through an AMT relay"
    return f"on {interface}" if interface else "on an interface of its own choice"


MOST_DATA_CONNECTIONS = 16
HOURS = 24
MOST_MBPS = 1e9
NONE = "none"
"""The value of an option that removes a property."""
SAID = frozenset({"data_connections", "multicast_interface", "active"})
