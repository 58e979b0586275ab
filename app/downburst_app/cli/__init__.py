"""The command line: `downburst`. Bad input ends with 2, failure with 1, each with one sentence on standard error."""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from downburst.foundation.errors import DownburstError


class Commands(TyperGroup):
    """A group whose options are read only where the command line begins with one.

    Otherwise typer loads pydantic to convert their defaults, a quarter of the time of `--help`.
    """

    begins_with_command = False

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of one command line."""
        self.begins_with_command = bool(args) and args[0] in self.list_commands(parent)
        return super().make_context(info_name, args, parent, **extra)

    def get_params(self, ctx: Any) -> Any:
        """The options of the group."""
        return [] if self.begins_with_command else super().get_params(ctx)


class LazyCommands(Commands):
    """Loads a command's module on use, so that `put` does not wait for the imports of `hub`.

    Lists of commands, for `--help` and for the shell, load none.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order useful to a newcomer."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, loaded from its module; while they are listed, a stand-in with its line."""
        if cmd_name not in COMMANDS:
            return None
        place, line = COMMANDS[cmd_name]
        if ctx is not None and ctx.meta.get(_LISTING):
            return TyperCommand(cmd_name, help=line)
        return _loaded(cmd_name, place)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help."""
        ctx.meta[_LISTING] = True
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The names that begin so."""
        ctx.meta[_LISTING] = True
        return super().shell_complete(ctx, incomplete)


def _loaded(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"downburst_app.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    _read_options_late(found)
    command = get_command(found)
    command.name = name
    return command


def _read_options_late(group: typer.Typer) -> None:
    group.info.cls = Commands
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _read_options_late(inner.typer_instance)


app = typer.Typer(
    name="downburst",
    help="Distributes meteorology feeds from a hub to many receiving sites.",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it)
    if wanted:
        print(f"downburst {version('downburst')}")
        raise typer.Exit


@app.callback()
def _downburst(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", "-V", is_eager=True, callback=_print_version, help="Print the version and exit."),
    ] = False,
) -> None:
    """Distributes meteorology feeds from a hub to many receiving sites."""


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and ends the process with its code."""
    try:
        app(arguments, prog_name="downburst")
    except DownburstError as error:
        print(f"downburst: {error.sentence}", file=sys.stderr)
        sys.exit(error.exit_code)


_LISTING = "downburst.listing"
COMMANDS = {
    "hub": ("hub.processes:hub", "Run a hub."),
    "scheduler": ("hub.processes:scheduler", "Run the scheduler of a hub as a separate process."),
    "latency-service": ("hub.processes:latency_service", "Run the latency service of a hub as a separate process."),
    "circuit-service": ("hub.processes:circuit_service", "Run the circuit service of a hub as a separate process."),
    "alarm-service": ("hub.processes:alarm_service", "Run the alarm service of a hub as a separate process."),
    "ingest": ("hub.processes:ingest", "Watch a directory for a hub as a separate process."),
    "sender": ("hub.processes:sender", "Send for a hub from another machine."),
    "fleet": ("hub.processes:fleet", "Run as many senders for a hub as its traffic needs."),
    "put": ("feeds.products:put", "Send files to a hub as products."),
    "feeds": ("feeds.feeds:app", "List, add, change and remove feeds."),
    "sites": ("sites.sites:app", "List, add, change and remove sites."),
    "subscriptions": ("sites.subscriptions:app", "List, add and remove subscriptions."),
    "resend": ("feeds.resend:resend", "Send products in the hub's log to a site again."),
    "resends": ("feeds.resend:app", "List, follow and cancel resends."),
    "upstreams": ("feeds.upstreams:app", "List, add and remove the hubs that this hub takes feeds from."),
    "bridges": ("bridges.bridges:app", "List, add, change and remove sources of WIS2."),
    "publishers": ("bridges.publishers:app", "Announce products of feeds to WIS2, and serve them."),
    "ldm": ("ldm.ldm:app", "Request products from LDMs, let hosts push."),
    "notifyme": ("ldm.ldm_tools:notifyme", "Print a line for each product that an LDM gets."),
    "feedme": ("ldm.ldm_tools:feedme", "Write the products that an LDM has to standard output."),
    "ldmping": ("ldm.ldm_tools:ldmping", "Ask whether LDMs answer."),
    "ports": ("circuits.ports:app", "List, add, change and remove the ports where circuits end."),
    "circuits": ("circuits.circuits:app", "Reserve, change, measure and cancel circuits."),
    "topology": ("circuits.topology:app", "Show the network that circuits cross."),
    "plans": ("feeds.plans:app", "Show plans and their history; pin a transport."),
    "trace": ("feeds.deliveries:trace", "Show the state of a product at each site."),
    "why": ("feeds.deliveries:why", "Explain why a product is missing at a site."),
    "tracer": ("sites.tracer:tracer", "Show the limits of the connections to a site."),
    "tcp-profiles": ("sites.tcp_profiles:app", "List, add, show and remove TCP profiles."),
    "relays": ("sites.relays:app", "List, add, show and remove relays."),
    "siblings": ("sites.siblings:app", "Let sites give each other products that one of them lacks."),
    "probe": ("probes.probe:app", "Measure the paths to sites."),
    "measurements": ("sites.measurements:app", "Results of perfSONAR test points, and tasks for them."),
    "deliveries": ("feeds.deliveries:deliveries", "List products that sites lost."),
    "alarms": ("hub.alarms:app", "List and silence alarms, and manage alarm receivers."),
    "objectives": ("hub.objectives:app", "List and set latency objectives of feeds."),
    "latency": ("hub.status:latency", "Show latencies per feed, site and transport."),
    "volume": ("hub.status:volume", "Show the volume of each feed."),
    "status": ("hub.status:status", "Show problems, feeds, sites and plans."),
    "play": ("feeds.play:play", "Send new, live products as an arrival trace has them."),
    "demo": ("hub.demo:demo", "Run a complete demonstration."),
    "analyze": ("analyze:analyze", "Show how bursty a recorded feed is."),
    "generate": ("feeds.generate:generate", "Write a trace, one product per line."),
    "import": ("imports:app", "Import the configuration of another system."),
    "apply": ("configuration.applying:apply", "Apply a declaration to a hub."),
    "diff": ("configuration.applying:diff", "Show what `apply` would change."),
    "export": ("configuration.applying:export", "Print the configuration of a hub."),
    "log": ("hub.log:app", "Look into the product log, running or stopped."),
    "watch": ("sites.watching:watch", "Show products as they are stored."),
    "doctor": ("hub.doctor:doctor", "Check this machine and a running hub."),
    "login": ("access.login:login", "Sign in to a hub."),
    "logout": ("access.login:logout", "End the session of `downburst login`."),
    "requests": ("access.requests:app", "Answer requests for access."),
    "users": ("access.users:app", "Invite users, change their rights, and remove them."),
    "tokens": ("access.tokens:app", "Create, list and revoke access tokens of programs."),
    "audit": ("access.audit:audit", "Show changes, newest first."),
    "backup": ("hub.backup:backup", "Write everything that can't be recreated into one file."),
    "restore": ("hub.backup:restore", "Restore a hub from a backup into an empty data directory."),
    "drill": ("hub.drill:drill", "Test a backup."),
    "migrate": ("hub.processes:migrate", "Bring the ledger's schema up to date."),
    "node-path": ("hub.processes:node_path", "Print where the downburst-node binary is."),
    "help": ("help:show_topic", "Show a guide, or the page of a command; without a topic list all of them."),
}
"""By name: module and attribute, and the line in the list of commands, with which the help of the command begins."""
