"""`downburst sites`: the receiving sites."""

from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.rates import rate_text
from downburst.foundation.sizes import size_text
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import (
    AsJson,
    HubAddress,
    HubClient,
    Yes,
    confirm,
    given,
    minute,
    show,
    table,
    write_secret,
)
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.hub.status import behind
from downburst_app.cli.numbers import A_YEAR_HOURS, real_number
from downburst_app.cli.sites.changing import (
    AccessRate,
    Contact,
    Latitude,
    LdmHost,
    Longitude,
    MulticastInterface,
    Organisation,
    Place,
    set_site,
    streams_in_words,
)
from downburst_app.cli.sites.site_path import path

app = typer.Typer(help="List, add, change and remove sites; enrol and revoke their receivers.", no_args_is_help=True)
app.command("set")(set_site)
app.command("path")(path)
Name = Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=completion.sites)]


@app.command("list")
def list_sites(*, wide: Wide = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List the sites.

    Example: downburst sites list
    """
    found = HubClient(hub).ask("GET", "v1", "sites")
    if as_json:
        show(found)
        return
    table(
        "Sites",
        ("site", Further("organisation"), "state", "behind by", Further("may take"), Further("multicast")),
        (
            [s["site"], s["organisation"], _standing(s), behind(s), " ".join(s["allow"]), _yes(s["multicast"])]
            for s in found
        ),
        wide=wide,
        empty="there are no sites yet; create one: downburst sites add unl.edu",
    )


@app.command("add")
def add_site(  # noqa: PLR0913
    site: Name,
    *,
    organisation: Organisation = None,
    contact: Contact = None,
    place: Place = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    multicast_interface: MulticastInterface = None,
    access_rate_bps: AccessRate = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Feed it may take; repeat for more; all if left out.", autocompletion=completion.feeds),
    ] = None,
    ldm_host: LdmHost = None,
    no_multicast: Annotated[bool, typer.Option("--no-multicast", help="Never serve it by multicast.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create a site.

    Example: downburst sites add unl.edu --organisation "University of Nebraska" --allow NGRID --allow NEXRAD2
    """
    where = given(text=place, latitude=latitude, longitude=longitude)
    wanted = given(
        organisation=organisation,
        contact=contact,
        place=where or None,
        multicast_interface=multicast_interface,
        access_rate_bps=access_rate_bps,
        allow=allow or None,
        multicast=False if no_multicast else None,
        ldm_host=ldm_host,
    )
    made = HubClient(hub).ask("POST", "v1", "sites", json={"site": site} | wanted)
    then = (
        f"define the products that its LDM may request: downburst subscriptions add {site} FEED"
        if ldm_host
        else f"enrol its receiver: downburst sites token {site}"
    )
    show(made) if as_json else print(f"site {site} created; {then}")


@app.command("allow")
def allow_feeds(
    site: Name,
    feeds: Annotated[
        list[str],
        typer.Argument(help="Every feed it may take from now on; '*' for all.", autocompletion=completion.feeds),
    ],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Set the feeds that a site may take: the whole list. Deliveries beyond it stop immediately.

    Examples: downburst sites allow unl.edu NGRID NEXRAD2; downburst sites allow unl.edu '*'
    """
    kept = HubClient(hub).ask("PATCH", "v1", "sites", site, json={"allow": feeds})
    show(kept) if as_json else print(f"site {site} may take {' '.join(kept['allow'])}")


@app.command("limit")
def limit_feed(
    site: Name,
    feed: Annotated[str, typer.Argument(help="Feed on its allow list.", autocompletion=completion.feeds)],
    *,
    ok: Annotated[list[str] | None, typer.Option("--ok", help="Only ids that match this; repeat for more.")] = None,
    not_pattern: Annotated[str | None, typer.Option("--not", help="Exclude ids that match this.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Limit the ids of a feed that a site may take; without options the limit is removed. Deliveries beyond it stop
    immediately.

    Examples: downburst sites limit unl.edu NGRID --ok '^YZ' --not TEST; downburst sites limit unl.edu NGRID
    """
    asking = HubClient(hub)
    others = [one for one in asking.ask("GET", "v1", "sites", site)["limits"] if one["feed"] != feed]
    granted = (ok or [".*"]) if ok or not_pattern else []
    limits = [{"feed": feed, "pattern": pattern} | given(not_pattern=not_pattern) for pattern in granted]
    kept = asking.ask("PATCH", "v1", "sites", site, json={"limits": others + limits})
    show(kept) if as_json else print(f"site {site} may take {'a part' if limits else 'all'} of {feed}")


@app.command("show")
def show_site(site: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Show a site with its subscriptions, credentials and tokens.

    Example: downburst sites show unl.edu
    """
    found = HubClient(hub).ask("GET", "v1", "sites", site)
    if as_json:
        show(found)
        return
    print(f"{site}: {found['organisation']} {found['contact']} {found['place']['text']}".rstrip())
    print(f"state: {found['state_words']}; behind by: {behind(found)}")
    print(f"data connections: {streams_in_words(found['data_connections'])}{_streams_now(found['session'])}")
    print(f"clock: {_own_clock(found['session']['clock'])}")
    for feed, reading in found["session"]["readings"].items():
        print(f"group of {feed}: {_reading(reading)}")
    table(
        "Subscriptions",
        ("id", "feed", "pattern", "not"),
        ([wish["id"], wish["feed"], wish["pattern"], wish["not_pattern"]] for wish in found["subscriptions"]),
        empty=f"it has no subscriptions yet: downburst subscriptions add {site} FEED",
    )
    table(
        "Credentials",
        ("sha256", "made", "from", "state"),
        ([c["sha256"][:16], minute(c["created_at"]), c["peer"], _state(c)] for c in found["credentials"]),
        empty=f"no receiver is enrolled yet: downburst sites token {site}",
    )


@app.command("remove")
def remove_site(site: Name, *, yes: Yes = False, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove a site; its receiver is disconnected immediately.

    Example: downburst sites remove unl.edu
    """
    confirm(f"Remove site {site}, its subscriptions and its credentials?", yes=yes)
    HubClient(hub).ask("DELETE", "v1", "sites", site)
    show({"removed": site}) if as_json else print(f"site {site} removed")


@app.command("token")
def token(
    site: Name,
    *,
    hours: Annotated[
        float | None, real_number(least=0.001, most=A_YEAR_HOURS, help="Hours that the token lasts.")
    ] = None,
    credential_days: Annotated[
        float | None,
        real_number(
            least=0.001, most=20 * 366, help="Days that the receiver's credentials last; default: the hub's setting."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write the token to, readable only by you.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Create a one-time enrolment token; it is shown once.

    Example: downburst sites token unl.edu -o unl.token

    Then, at the site: downburst-node receive --hub HOST:7370 --token-file unl.token --dir /data/downburst
    """
    made = HubClient(hub).ask(
        "POST", "v1", "sites", site, "tokens", json=given(hours=hours, credential_days=credential_days)
    )
    if output is not None:
        write_secret(output, made["token"])
        made["token"] = None
    if as_json:
        show(made | given(written_to=str(output) if output else None))
    elif output is None:
        print(made["token"])
    else:
        print(f"token for {site} written to {output}; it enrols one receiver until {made['expires_at']}")


@app.command("end-tokens")
def end_tokens(site: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """End the unused enrolment tokens of a site. Enrolled receivers are not affected.

    Example: downburst sites end-tokens unl.edu
    """
    answer = HubClient(hub).ask("DELETE", "v1", "sites", site, "tokens")
    if as_json:
        show(answer)
    else:
        print(f"{answer['ended']} enrolment tokens of {site} ended")


@app.command("rotate")
def rotate(site: Name, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Have a site's receiver replace its credential. Its session continues; the old credential ends when the new
    one is first used.

    Example: downburst sites rotate unl.edu
    """
    answer = HubClient(hub).ask("POST", "v1", "sites", site, "credentials", "replacement")
    show(answer) if as_json else print(_rotation(site, answer))


@app.command("revoke")
def revoke(
    site: Name,
    *,
    sha256: Annotated[
        str | None, typer.Option(help="Only those of the receiver that has or had the credential with this SHA-256.")
    ] = None,
    yes: Yes = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Revoke the credentials of a site; a connected receiver is disconnected immediately.

    Example: downburst sites revoke unl.edu
    """
    confirm(f"Revoke the credentials of {site}? Its receivers need a new token to reconnect.", yes=yes)
    answer = HubClient(hub).ask("DELETE", "v1", "sites", site, "credentials", params=given(sha256=sha256))
    show(answer) if as_json else print(f"{answer['revoked']} credentials of {site} revoked")


def _streams_now(session: dict[str, Any]) -> str:
    now = session["data_connections"]
    return f"; {now['open']} open of {now['planned']} ({now['reason']})" if now else ""


def _own_clock(clock: dict[str, Any] | None) -> str:
    """The site's own word on its clock, with the largest error."""
    if clock is None:
        return "not reported"
    by = clock["daemon"] or "no daemon seen at the site"
    if not clock["synchronised"]:
        return f"not synchronised ({by}); start chrony or systemd-timesyncd at the site"
    return f"synchronised ({by}), off by at most {clock['error_ms']:.3g} ms"


def _reading(reading: dict[str, Any]) -> str:
    """How the site's host reads a group, with the advice to its administrator."""
    asked = "" if reading["priority"] is None else f" ({reading['priority']} requested)"
    lost = f", lost {reading['demotions']} times" if reading["demotions"] else ""
    said = (
        f"{reading['dropped']} datagrams dropped for want of room; receive buffer "
        f"{size_text(reading['granted_bytes'])} of {size_text(reading['needed_bytes'])} needed; priority "
        f"{reading['standing']}{asked}{lost}"
    )
    if line := reading["line"]:
        said += f"; its line carried {rate_text(line['arrived_bps'])} of a group of {rate_text(line['offered_bps'])}"
    return said if reading["advice"] is None else f"{said}\n    {reading['advice']}"


def _rotation(site: str, answer: dict[str, Any]) -> str:
    if not answer["connected"]:
        return f"site {site} replaces its credential when it connects"
    if not answer["renews"]:
        return (
            f"the receiver of {site} has a release that can't replace its credential; update it, "
            f"or enrol it again: downburst sites token {site}"
        )
    return f"site {site} is replacing its credential; see the state: downburst sites show {site}"


def _state(credential: dict[str, Any]) -> str:
    for ended in ("revoked", "replaced"):
        if credential[f"{ended}_at"]:
            return f"{ended} {minute(credential[f'{ended}_at'])}"
    ends = f"ends {minute(credential['expires_at'])}" if credential["expires_at"] else "usable"
    return f"{ends}, to be replaced" if credential["asked_at"] else ends


def _standing(site: dict[str, Any]) -> str:
    return f"relay, {site['state_words']}" if site["relay"] else str(site["state_words"])


def _yes(value: object) -> str:
    return "yes" if value else "no"
