"""The command line: `downburst`. Bad input ends with 2, failure with 1, each with one sentence on standard error."""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from downburst.foundation.errors import DownburstError


class LazyCommands(TyperGroup):
    """Loads a command's module on use, so that `put` does not wait for the imports of `hub`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order useful to a newcomer."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, loaded from its module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"downburst_app.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(found)
            found = alone
        command = get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="downburst",
    help="Distributes meteorology feeds from a hub to many receiving sites.",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _downburst() -> None:
    """Distributes meteorology feeds from a hub to many receiving sites."""


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and ends the process with its code."""
    try:
        app(arguments)
    except DownburstError as error:
        print(f"downburst: {error.sentence}", file=sys.stderr)
        sys.exit(error.exit_code)


COMMANDS = {
    "hub": "hub.processes:hub",
    "scheduler": "hub.processes:scheduler",
    "latency-service": "hub.processes:latency_service",
    "circuit-service": "hub.processes:circuit_service",
    "alarm-service": "hub.processes:alarm_service",
    "ingest": "hub.processes:ingest",
    "sender": "hub.processes:sender",
    "fleet": "hub.processes:fleet",
    "put": "feeds.products:put",
    "feeds": "feeds.feeds:app",
    "sites": "sites.sites:app",
    "subscriptions": "sites.subscriptions:app",
    "resend": "feeds.resend:resend",
    "resends": "feeds.resend:app",
    "upstreams": "feeds.upstreams:app",
    "bridges": "bridges.bridges:app",
    "publishers": "bridges.publishers:app",
    "ldm": "ldm.ldm:app",
    "notifyme": "ldm.ldm_tools:notifyme",
    "feedme": "ldm.ldm_tools:feedme",
    "ldmping": "ldm.ldm_tools:ldmping",
    "ports": "circuits.ports:app",
    "circuits": "circuits.circuits:app",
    "topology": "circuits.topology:app",
    "plans": "feeds.plans:app",
    "trace": "feeds.deliveries:trace",
    "why": "feeds.deliveries:why",
    "tracer": "sites.tracer:tracer",
    "tcp-profiles": "sites.tcp_profiles:app",
    "relays": "sites.relays:app",
    "siblings": "sites.siblings:app",
    "probe": "probes.probe:app",
    "measurements": "sites.measurements:app",
    "deliveries": "feeds.deliveries:deliveries",
    "alarms": "hub.alarms:app",
    "objectives": "hub.objectives:app",
    "latency": "hub.status:latency",
    "volume": "hub.status:volume",
    "status": "hub.status:status",
    "play": "feeds.play:play",
    "demo": "hub.demo:demo",
    "analyze": "analyze:analyze",
    "generate": "feeds.generate:generate",
    "import": "imports:app",
    "apply": "configuration.applying:apply",
    "diff": "configuration.applying:diff",
    "export": "configuration.applying:export",
    "log": "hub.log:app",
    "watch": "sites.watching:watch",
    "doctor": "hub.doctor:doctor",
    "login": "access.login:login",
    "logout": "access.login:logout",
    "requests": "access.requests:app",
    "users": "access.users:app",
    "tokens": "access.tokens:app",
    "audit": "access.audit:audit",
    "backup": "hub.backup:backup",
    "restore": "hub.backup:restore",
    "drill": "hub.drill:drill",
    "migrate": "hub.processes:migrate",
    "node-path": "hub.processes:node_path",
}
