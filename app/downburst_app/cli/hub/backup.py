"""`downburst backup`, `downburst restore`: a hub in one file."""

import logging
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.clock import SystemClock
from downburst_app.cli.client import AsJson, show
from downburst_app.cli.hub.processes import DataDir, SettingsFile, chosen_settings, keep_private

if TYPE_CHECKING:
    from downburst_app.backup import Manifest

BackupFile = Annotated[Path, typer.Argument(help="The backup.")]


def backup(
    file: Annotated[
        Path, typer.Argument(help="File to write; an existing one is replaced when the new one is complete.")
    ],
    *,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that can't be recreated into one file: ledger, certificate authority, epochs and sequences.

    The hub may keep running. The file holds the authority's private key, so it is readable only by you. It contains
    no products.

    Example: downburst backup /backups/hub.dbb --data-dir /var/lib/downburst
    """
    from downburst_app.backup import back_up

    chosen = chosen_settings(settings, data_dir=data_dir)
    manifest = back_up(chosen, file, SystemClock())
    show(asdict(manifest)) if as_json else print(f"{file}: {_sentence(manifest)}")


def restore(
    file: BackupFile,
    *,
    data_dir: DataDir = None,
    settings: SettingsFile = None,
    check: Annotated[bool, typer.Option("--check", help="Only read and check the whole file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a hub from a backup into an empty data directory; start it with `downburst hub` afterwards.

    Enrolled sites reconnect by themselves, without a new token. They keep their positions: sequences continue above
    all that were assigned. Products that the old hub stored and no site received are lost, unless their sources
    send them again.

    Example: downburst restore /backups/hub.dbb --data-dir /var/lib/downburst

    Example: downburst restore --check /backups/hub.dbb
    """
    from downburst_app.backup import inspect
    from downburst_app.backup import restore as restore_from

    logging.getLogger("alembic").setLevel(logging.WARNING)
    keep_private()
    manifest = inspect(file) if check else restore_from(chosen_settings(settings, data_dir=data_dir), file)
    done = "whole" if check else "restored; start it: downburst hub"
    show(asdict(manifest)) if as_json else print(f"{file}: {_sentence(manifest)}; {done}")


def _sentence(manifest: "Manifest") -> str:
    made = datetime.fromisoformat(manifest.made_at)
    rows = manifest.rows
    return (
        f"hub {manifest.hub!r} as of {made:%Y-%m-%d %H:%M:%S} UTC, {rows.get('feeds', 0)} feeds, "
        f"{rows.get('sites', 0)} sites, {rows.get('credentials', 0)} credentials, "
        f"{rows.get('subscriptions', 0)} subscriptions"
    )
