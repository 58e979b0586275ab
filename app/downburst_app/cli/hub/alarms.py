"""`downburst alarms`: open alarms, receivers of notices, silences."""

from collections import Counter
from typing import Annotated, Any

import typer

from downburst.domain.alarms import AlarmKind, ReceiverKind, Severity
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, given, minute, show, table
from downburst_app.cli.columns import Further, Wide
from downburst_app.cli.numbers import A_YEAR_MINUTES, real_number

app = typer.Typer(help="List and silence alarms, and manage alarm receivers.", no_args_is_help=True)
Kind = Annotated[AlarmKind | None, typer.Option(help="Only alarms of this kind.")]
FeedOption = Annotated[str | None, typer.Option(help="Only this feed.", autocompletion=completion.feeds)]
SiteOption = Annotated[str | None, typer.Option(help="Only this site.", autocompletion=completion.sites)]
ReceiverName = Annotated[str, typer.Argument(help="Name of the receiver.", autocompletion=completion.receivers)]


@app.command("list")
def list_alarms(
    *,
    feed: FeedOption = None,
    site: SiteOption = None,
    ended: Annotated[bool, typer.Option("--ended", help="Include ended alarms, newest first.")] = False,
    wide: Wide = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """List open alarms, the most severe first.

    Example: downburst alarms list --site unl.edu
    """
    found = HubClient(hub).ask("GET", "v1", "alarms", params=given(feed=feed, site=site) | {"ended": ended})["items"]
    if as_json:
        show(found)
        return
    if found and not ended:
        print(counted(found))
    table(
        "Alarms",
        ("alarm", "severity", Further("kind"), "since", "what", Further("next"), "state"),
        (
            [a["alarm"], a["severity"], a["kind"], minute(a["since"]), a["sentence"], a["next_step"], _state(a)]
            for a in (found if ended else silenced_last(found))
        ),
        wide=wide,
        empty="no open alarms",
    )


@app.command("silence")
def silence(  # noqa: PLR0913
    *,
    minutes: Annotated[float, real_number(least=0.01, most=A_YEAR_MINUTES, help="Duration in minutes.")] = 60,
    reason: Annotated[str, typer.Option(help="Reason, for other operators.")] = "",
    alarm: Annotated[int | None, typer.Option(min=1, help="Only this alarm, by its number.")] = None,
    kind: Kind = None,
    feed: FeedOption = None,
    site: SiteOption = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Silence some alarms for a while; they are still shown.

    Example: downburst alarms silence --alarm 17

    Example: downburst alarms silence --site unl.edu --minutes 120 --reason "new disk"
    """
    wanted = given(alarm=alarm, kind=kind, feed=feed, site=site) | {"minutes": minutes, "reason": reason}
    made = HubClient(hub).ask("POST", "v1", "silences", json=wanted)
    show(made) if as_json else print(f"silence {made['number']} until {made['until'][:16]} UTC")


@app.command("silences")
def list_silences(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List active silences.

    Example: downburst alarms silences
    """
    found = HubClient(hub).ask("GET", "v1", "silences")
    if as_json:
        show(found)
        return
    table(
        "Silences",
        ("number", "until", "kind", "feed", "site", "by", "why"),
        ([s["number"], minute(s["until"]), s["kind"], s["feed"], s["site"], s["by"], s["reason"]] for s in found),
        empty="no active silences",
    )


@app.command("unsilence")
def unsilence(
    number: Annotated[int, typer.Argument(help="Number of the silence.")],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """End a silence before its time.

    Example: downburst alarms unsilence 3
    """
    HubClient(hub).ask("DELETE", "v1", "silences", str(number))
    show({"ended": number}) if as_json else print(f"silence {number} ended")


@app.command("receivers")
def list_receivers(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """List alarm receivers.

    Example: downburst alarms receivers
    """
    found = HubClient(hub).ask("GET", "v1", "alarm-receivers")
    if as_json:
        show(found)
        return
    table(
        "Receivers",
        ("receiver", "kind", "address", "alarms"),
        ([r["receiver"], r["kind"], r["address"], _of_what(r)] for r in found),
        empty="no alarm recipients; add one: downburst alarms tell ops --mail ops@example.edu",
    )


@app.command("tell")
def add_receiver(  # noqa: PLR0913
    receiver: ReceiverName,
    *,
    mail: Annotated[str | None, typer.Option(help="Mail address (needs the setting alarms.smtp_url).")] = None,
    webhook: Annotated[str | None, typer.Option(help="URL that gets a JSON document.")] = None,
    alertmanager: Annotated[str | None, typer.Option(help="URL of an Alertmanager.")] = None,
    kind: Annotated[list[AlarmKind] | None, typer.Option(help="Only of this; repeat for more.")] = None,
    feed: Annotated[list[str] | None, typer.Option(help="Only of this feed; repeat for more.")] = None,
    site: Annotated[list[str] | None, typer.Option(help="Only of this site; repeat for more.")] = None,
    severity: Annotated[
        list[Severity] | None,
        typer.Option(help="Only of this severity; repeat for more. Without it and --kind: all but information."),
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Add an alarm receiver. It is notified once when an alarm begins and once when it ends.

    Example: downburst alarms tell ops --mail ops@example.edu

    Example: downburst alarms tell night --mail night@example.edu --severity critical

    Example: downburst alarms tell chat --webhook https://chat.example/hook/1 --kind site-down --kind silence
    """
    ways = given(**{ReceiverKind.MAIL: mail, ReceiverKind.WEBHOOK: webhook, ReceiverKind.ALERTMANAGER: alertmanager})
    if len(ways) != 1:
        raise typer.BadParameter("give one of --mail, --webhook and --alertmanager")
    ((way, address),) = ways.items()
    wanted = {"receiver": receiver, "kind": way, "address": address} | given(
        kinds=kind or None, feeds=feed or None, sites=site or None, severities=severity or None
    )
    made = HubClient(hub).ask("POST", "v1", "alarm-receivers", json=wanted)
    show(made) if as_json else print(f"{receiver} added; test it: downburst alarms test {receiver}")


@app.command("forget")
def remove_receiver(receiver: ReceiverName, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Remove an alarm receiver.

    Example: downburst alarms forget chat
    """
    HubClient(hub).ask("DELETE", "v1", "alarm-receivers", receiver)
    show({"removed": receiver}) if as_json else print(f"{receiver} removed")


@app.command("test")
def try_receiver(receiver: ReceiverName, *, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Send a test notification to a receiver, and report the error if that fails.

    Example: downburst alarms test ops
    """
    HubClient(hub).ask("POST", "v1", "alarm-receivers", receiver, "test")
    show({"told": receiver}) if as_json else print(f"{receiver} notified")


def counted(wrong: list[dict[str, Any]]) -> str:
    """The number of alarms by severity and of silenced ones: `1 critical, 2 warning; 3 silenced`."""
    counts = Counter(one["severity"] for one in wrong if not one["silence"])
    said = ", ".join(f"{counts[severity]} {severity}" for severity in Severity if counts[severity])
    silenced = len(wrong) - counts.total()
    return "; ".join(filter(None, (said, f"{silenced} silenced" if silenced else "")))


def silenced_last(wrong: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keeps the order, with the silenced ones at the end."""
    return sorted(wrong, key=lambda one: one["silence"] is not None)


def silenced(wrong: dict[str, Any]) -> str:
    """End and author of a silence; empty if the alarm is not silenced."""
    silence = wrong["silence"]
    return f"silenced until {silence['until'][:16]} UTC by {silence['by']}" if silence else ""


def _state(alarm: dict[str, Any]) -> str:
    return f"ended {alarm['ended_at'][:19]}" if alarm["ended_at"] else silenced(alarm) or "open"


def _of_what(receiver: dict[str, Any]) -> str:
    told = "" if len(receiver["severities"]) == len(Severity) else ", ".join(receiver["severities"])
    return " ".join(filter(None, [told, *receiver["kinds"], *receiver["feeds"], *receiver["sites"]])) or "all alarms"
