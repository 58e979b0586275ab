"""`downburst log`: tools for the product log; all but `advise` run the node's own on the hub's data directory."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_feed_name
from downburst.settings.addresses import HUB_VARIABLE
from downburst_app.cli.client import AsJson, HubClient, show, table
from downburst_app.cli.numbers import A_YEAR_HOURS, real_number
from downburst_app.retention.advice import Advice, Retention, Volume, advise, size
from downburst_worker.binary import find_node

if TYPE_CHECKING:
    from downburst.settings.hub import Settings

app = typer.Typer(help="Look into the product log, running or stopped.", no_args_is_help=True)
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Data directory of the hub; a site's directory works, too.")
]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="Settings file (TOML).")]
Feed = Annotated[str | None, typer.Option("--feed", help="This feed only.")]


@app.command("stat")
def stat(*, data_dir: DataDir = None, settings: SettingsFile = None, as_json: AsJson = False) -> None:
    """Print one line per feed: epoch, sequences, products, bytes, ages.

    Example: downburst log stat --data-dir /var/lib/downburst
    """
    _run("stat", _settings(settings, data_dir), *(["--json"] if as_json else []))


@app.command("verify")
def verify(*, data_dir: DataDir = None, settings: SettingsFile = None) -> None:
    """Read every record and check it; exits with 0 if all is intact, with 1 if anything is damaged.

    Example: downburst log verify --data-dir /var/lib/downburst
    """
    _run("verify", _settings(settings, data_dir))


@app.command("tail")
def tail(
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of products to start with.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until interrupted.")] = False,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
) -> None:
    """Print the newest products: time stored, size, creation time, feed, sequence, id.

    Example: downburst log tail -n 20 -f
    """
    _run("tail", _settings(settings, data_dir), f"--lines={lines}", *(["--follow"] if follow else []))


@app.command("cat")
def cat(
    *,
    sequence: Annotated[int | None, typer.Option(min=1, help="Sequence of the product in this log.")] = None,
    product_id: Annotated[str | None, typer.Option("--id", help="Id of the product; the newest one with it.")] = None,
    feed: Feed = None,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
) -> None:
    """Write the bytes of one product to standard output.

    Example: downburst log cat --feed NGRID --sequence 4711 > product
    """
    if (sequence is None) == (product_id is None):
        raise BadInput("name the product by either --sequence or --id; `downburst log tail` lists the newest")
    _run("cat", _settings(settings, data_dir), *_options(sequence=sequence, id=product_id, feed=feed))


@app.command("export")
def export(  # noqa: PLR0913
    *,
    to: Annotated[Path, typer.Option(help="Directory for the files; created if it does not exist.")],
    pattern: Annotated[str | None, typer.Option(help="Regular expression that ids match anywhere.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Stored at this moment (RFC 3339) or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Stored before this moment.")] = None,
    feed: Feed = None,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
) -> None:
    """Copy products to files, named as at a site.

    Example: downburst log export --to out --pattern '^SDUS5' --from 2026-01-31T12:00:00Z
    """
    wanted = _options(to=to, pattern=pattern, **{"from": since}, until=until, feed=feed)
    _run("export", _settings(settings, data_dir), *wanted)


@app.command("advise")
def advise_retention(
    *,
    hub: Annotated[
        str | None,
        typer.Option("--hub", envvar=HUB_VARIABLE, help="Ask this hub for its last minutes instead of the ledger."),
    ] = None,
    outage_hours: Annotated[
        float | None,
        real_number(
            "--outage",
            "--outage-hours",
            least=0.001,
            most=A_YEAR_HOURS,
            help="Hours that a site may be offline without loss; default: the hub's setting outage_hours.",
        ),
    ] = None,
    feed: Feed = None,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Show how many hours of each feed the log holds, and the log size that an outage needs.

    The ledger has every minute of the last weeks; a hub asked over HTTP has two minutes, and no worst hour.

    Example: downburst log advise --outage 12
    """
    if feed is not None:
        check_feed_name(feed)
    asked = hub if data_dir is None and settings is None else None
    if asked is not None:
        found = _from_hub(HubClient(asked), outage_hours)
    else:
        known = _settings(settings, data_dir)
        found = _from_ledger(known, outage_hours or known.outage_hours)
    advices = [advice for advice in found if feed in (None, advice.feed)]
    if feed is not None and not advices:
        raise BadInput(f"there is no feed {feed}; `downburst feeds list` shows them")
    show([asdict(advice) for advice in advices]) if as_json else _print(advices)


def _run(tool: str, settings: "Settings", *options: str) -> None:
    """Replaces this process with the node, so that signals and the exit code are the node's own."""
    node = str(find_node(settings.node))
    os.execv(node, [node, "log", tool, *options, "--", str(settings.data_dir)])  # noqa: S606 (no shell is meant)


def _options(**options: object) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def _settings(file: Path | None, data_dir: Path | None) -> "Settings":
    from downburst.settings.hub import load_settings

    return load_settings(file, data_dir=data_dir)


def _from_ledger(settings: "Settings", outage_hours: float | None) -> list[Advice]:
    from downburst.ledger import Ledger
    from downburst_app.retention.watch import advices_of

    if not settings.ledger_url and not (settings.data_dir / "ledger.sqlite").is_file():
        raise BadInput(
            f"there is no ledger in {settings.data_dir}; "
            "name the hub's directory with --data-dir, or its address with --hub"
        )
    ledger = Ledger.look_into(settings.url_of_ledger)
    try:
        with ledger.transaction(writes=False) as tx:
            return advices_of(tx, outage_hours=outage_hours)
    finally:
        ledger.close()


def _from_hub(client: HubClient, outage_hours: float | None) -> list[Advice]:
    seen = {it["feed"]: it for it in client.ask("GET", "v1", "overview")["feeds"]}
    return [
        advise(
            Retention(it["feed"], it["retention_hours"], it["retention_bytes"]),
            _recent(seen.get(it["feed"], {})),
            outage_hours=outage_hours,
        )
        for it in client.ask("GET", "v1", "feeds")
    ]


def _recent(overview: dict[str, Any]) -> Volume:
    seconds = len(overview.get("rate_history", ()))
    per_hour = overview.get("mean_bps", 0.0) / 8 * 3600
    mean_size = overview["bytes"] / overview["products"] if overview.get("products") else 0.0
    return Volume(seconds / 3600, per_hour, per_hour / mean_size if mean_size else 0.0)


def _print(advices: list[Advice]) -> None:
    asked = next((advice.outage_hours for advice in advices), None)
    columns = ("feed", "measured", "mean hour", "worst hour", "kept", "holds, mean", "holds, worst")
    needs = () if asked is None else (f"{asked:g} h need, mean", f"{asked:g} h need, worst")
    table("Retention", columns + needs, (_row(advice) for advice in advices), empty="there are no feeds yet")
    for advice in advices:
        if advice.warning:
            print(advice.warning)


def _row(advice: Advice) -> list[str]:
    row = [
        advice.feed,
        _span(advice.measured_hours),
        size(advice.mean_bytes_per_hour) if advice.measured_hours else "-",
        _size(advice.worst_hour_bytes),
        f"{advice.retention_hours:g} h, {size(advice.retention_bytes)}",
        _hours(advice.hours_that_fit),
        _hours(advice.hours_that_fit_worst),
    ]
    if advice.outage_hours is not None:
        row += [_size(advice.bytes_needed), _size(advice.bytes_needed_worst)]
    return row


def _span(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"


def _hours(hours: float | None) -> str:
    return "-" if hours is None else f"{hours:.1f} h"


def _size(count: float | None) -> str:
    return "-" if count is None else size(count)
