"""`downburst hub`, the processes beside it (scheduler, services, ingest, sender, fleet), migrate and node-path."""

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst.host.memory import bound_arenas
from downburst.host.privacy import PRIVATE_UMASK
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, show

if TYPE_CHECKING:
    from downburst.settings.hub import Settings

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Data directory.")]
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", help="URL of the ledger: postgresql://ROLE@HOST/DATABASE; none: in the data directory."),
]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="Settings file (TOML).")]


def hub(
    *,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
    http: Annotated[str | None, typer.Option(help="HOST:PORT of the api and the page.")] = None,
    sites: Annotated[str | None, typer.Option(help="HOST:PORT where sites connect.")] = None,
    ledger: LedgerUrl = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also log the node's own lines.")] = False,
) -> None:
    """Run a hub: api, scheduler, ingest, latency service and a node, until SIGTERM or Ctrl-C.

    Example: downburst hub --data-dir /var/lib/downburst --sites 0.0.0.0:7370
    """
    from downburst_app.wiring.hub import serve

    keep_private()
    bound_arenas()
    _log_to_stderr()
    logging.getLogger("downburst.node").setLevel(logging.INFO if verbose else logging.WARNING)
    asyncio.run(serve(chosen_settings(settings, data_dir=data_dir, http=http, sites=sites, ledger_url=ledger)))


def scheduler(*, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Run the scheduler of a hub as a separate process. A second one is a standby.

    Takes the hub's settings, with scheduler.apart = true in both.

    Example: downburst scheduler --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.apart import serve_scheduler

    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_scheduler(chosen_settings(settings, ledger_url=ledger)))


def latency_service(*, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Run the latency service of a hub as a separate process: it stores receipts in the ledger. A second one is a
    standby.

    Takes the hub's settings, with latency_apart = true in both.

    Example: downburst latency-service --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.apart import serve_latency

    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_latency(chosen_settings(settings, ledger_url=ledger)))


def circuit_service(*, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Run the circuit service of a hub as a separate process: calendar and life of circuits. A second one is a
    standby.

    Takes the hub's settings, with circuits.apart = true in both.

    Example: downburst circuit-service --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.apart import serve_circuits

    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_circuits(chosen_settings(settings, ledger_url=ledger)))


def alarm_service(*, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Run the alarm service of a hub as a separate process: alarms and their receivers. A second one is a standby.

    Takes the hub's settings, with alarms.apart = true in both.

    Example: downburst alarm-service --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.apart import serve_alarms

    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_alarms(chosen_settings(settings, ledger_url=ledger)))


def ingest(*, settings: SettingsFile = None, hub: HubAddress = DEFAULT_HUB) -> None:
    """Watch a directory for a hub as a separate process, here or on the source's machine.

    Takes the settings of `watch`, with watch.apart = true, as the hub does.

    Example: downburst ingest --settings /etc/downburst/ingest.toml --hub https://hub.example.edu
    """
    from downburst_app.wiring.ingest import serve_ingest

    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_ingest(chosen_settings(settings), hub))


def sender(*, data_dir: DataDir = None, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Send for a hub from another machine. Several senders share its feeds and sites.

    Takes the hub's settings for ledger and Kafka; `sites` is the address that it listens on, `sender.public` the
    address for sites.

    Example: DOWNBURST_SENDER__PUBLIC=sender1.example.edu:7370 downburst sender --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.sender import serve_sender

    keep_private()
    bound_arenas()
    _log_to_stderr()
    asyncio.run(serve_sender(chosen_settings(settings, data_dir=data_dir, ledger_url=ledger)))


def fleet(*, settings: SettingsFile = None, ledger: LedgerUrl = None) -> None:
    """Run as many senders for a hub as its traffic needs: as processes on this machine, or as pods in Kubernetes.

    Takes the hub's settings, with fleet.kind = children or kubernetes.

    Example: downburst fleet --settings /etc/downburst/hub.toml
    """
    from downburst_app.wiring.fleet import serve_fleet

    _log_to_stderr()
    # Its child processes read the file too, from any working directory.
    file = settings.resolve() if settings else None
    asyncio.run(serve_fleet(chosen_settings(file, ledger_url=ledger), file))


def migrate(
    *,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
    ledger: LedgerUrl = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check only: exit with 1 if the schema would change.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the ledger's schema up to date; a starting hub does this too, and concurrent runs are safe.

    Examples: downburst migrate --data-dir /var/lib/downburst;
    downburst migrate --check --ledger postgresql://downburst@db.example.edu/downburst
    """
    from downburst.ledger import migrate_ledger
    from downburst_app.wiring.process import make_data_dir

    chosen = chosen_settings(settings, data_dir=data_dir, ledger_url=ledger)
    if check:
        _check_schema(chosen, as_json=as_json)
        return
    keep_private()
    if chosen.ledger_url == "":
        make_data_dir(chosen)
    before, now = migrate_ledger(chosen.url_of_ledger)
    if as_json:
        show({"migrated": True, "before": before, "schema": now})
    elif before == now:
        print(f"the ledger is up to date (schema {now})")
    else:
        print(f"the ledger was upgraded from schema {before or 'none'} to {now}")


def _check_schema(chosen: "Settings", *, as_json: bool) -> None:
    from downburst.ledger import standing_of

    found = standing_of(chosen.url_of_ledger)
    if as_json:
        show({"schema": found.found, "wanted": found.wanted, "pending": list(found.pending)})
    elif found.pending:
        steps = ", ".join(found.pending)
        print(f"the ledger has schema {found.found or 'none'}; downburst migrate would bring {steps}")
    else:
        print(f"the ledger is up to date (schema {found.found})")
    if found.pending:
        raise typer.Exit(1)


def keep_private() -> None:
    """Makes all files of this process and its children private to their user: ledger, keys, products, logs."""
    os.umask(PRIVATE_UMASK)


def _log_to_stderr() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    for library in ("alembic", "httpx"):
        logging.getLogger(library).setLevel(logging.WARNING)


def node_path(*, settings: SettingsFile = None, as_json: AsJson = False) -> None:
    """Print where the downburst-node binary is.

    Example: scp "$(downburst node-path)" unl.edu:bin/
    """
    from downburst_app.wiring.hub import node_binary

    found = node_binary(chosen_settings(settings))
    show({"node": str(found)}) if as_json else print(found)


def chosen_settings(file: Path | None, **given: object) -> "Settings":
    """Settings from the file, the environment and the options; refuses invalid ones in one sentence."""
    from downburst.settings.hub import load_settings

    for name in ("data_dir",):
        path = given.get(name)
        if isinstance(path, Path) and path.exists() and not path.is_dir():
            raise BadInput(f"{path} is a file; name a directory with --data-dir")
    return load_settings(file, **given)
