"""`downburst apply`, `diff`, `export`: a hub's configuration as a declaration."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.foundation.errors import BadInput
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show

if TYPE_CHECKING:
    from downburst_app.cli.configuration.entries import Step

File = Annotated[Path, typer.Option("--file", "-f", help="The declaration, YAML or JSON; - for standard input.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove objects that the file does not name, in the parts that it has.")
]


def apply(
    *,
    file: File,
    prune: Prune = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Apply a declaration to a hub: feeds, sites, subscriptions, LDM, upstreams, relays, TCP profiles, ports,
    the topology, providers and offers of circuits, pins, receivers, objectives of single sites and windows of
    maintenance.

    Objects that the file does not name stay, unless --prune is given. Parts that the file leaves out always stay.
    The changes are shown first; a second run changes nothing.

    Example: downburst import ldm --ldmd-conf etc/ldmd.conf > site.yaml; downburst apply -f site.yaml
    """
    from downburst_app.cli.configuration.configuration import Known, steps

    wanted, client = _read(file), HubClient(hub)
    found = steps(wanted, Known(client), prune=prune)
    _show(wanted, found, as_json=as_json)
    if dry_run or not found:
        return
    if not yes and not typer.confirm(f"make these {len(found)} changes?", err=True):
        raise BadInput("nothing was changed")
    for done, step in enumerate(found):
        try:
            client.ask(step.method, "v1", *step.path, **({} if step.body is None else {"json": step.body}))
        except BadInput as error:
            raise BadInput(f"{done} of {len(found)} changes were made; {step.what}: {error.sentence}") from error
    if not as_json:
        print(f"{len(found)} changes made")


def diff(
    *,
    file: File,
    prune: Prune = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show what `apply` would change; ends with 0 if nothing, with 1 if something.

    Example: downburst diff -f hub.yaml --prune
    """
    from downburst_app.cli.configuration.configuration import Known, steps

    wanted = _read(file)
    found = steps(wanted, Known(HubClient(hub)), prune=prune)
    _show(wanted, found, as_json=as_json)
    if found:
        raise typer.Exit(1)


def export(*, hub: HubAddress = DEFAULT_HUB, as_json: AsJson = False) -> None:
    """Print the configuration of a hub, all that `apply` takes.

    Secrets are left out: tokens, credentials, users, and what a receiver's address holds beyond its host.

    Example: downburst export > hub.yaml
    """
    import yaml  # type: ignore[import-untyped]

    from downburst_app.cli.configuration.configuration import Known

    document = Known(HubClient(hub)).document()
    if as_json:
        show(document)
    else:
        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), end="")


def _read(file: Path) -> Mapping[str, Any]:
    import yaml

    from downburst_app.cli.configuration.configuration import PARTS

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        wanted = yaml.safe_load(text)
    except OSError as error:
        raise BadInput(f"{file} can't be read: {error.strerror}; check the path") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{file} is not YAML: {str(error).splitlines()[0]}; correct it") from error
    if not isinstance(wanted, dict):
        raise BadInput(f"{file} contains no declaration; see `downburst import ldm`")
    unknown = sorted(set(wanted) - set(PARTS) - PASSED_OVER)
    if unknown:
        raise BadInput(f"{file} says {unknown[0]}, which is unknown; known parts: {', '.join(sorted(PARTS))}")
    return wanted


def _show(wanted: Mapping[str, Any], found: "list[Step]", *, as_json: bool) -> None:
    if as_json:
        show([{"change": step.what, **(step.body or {})} for step in found])
        return
    for step in found:
        print(step.what)
    if not found:
        print("the hub matches the file; nothing to change")
    for name, value in (wanted.get("settings") or {}).items():
        print(f"not applied: setting {name} = {value}; it belongs in the hub's settings file", file=sys.stderr)
    if wanted.get("actions"):
        count = len(wanted["actions"])
        print(f"not applied: {count} actions of pqact; a site runs them (site guide, Actions)", file=sys.stderr)


PASSED_OVER = frozenset({"settings", "actions", "remarks", "no_equivalent"})
"""Parts that are for people."""
