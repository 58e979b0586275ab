"""The command line: `downburst`. Bad input ends with 2, failure with 1, each with one sentence on standard error."""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from downburst.errors import DownburstError


class LazyCommands(TyperGroup):
    """Loads a command's module when it is asked for, so that `put` need not wait for what `hub` needs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order a newcomer needs them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, from its module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"downburst.cli.{module}"), attribute)
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
    "hub": "hub:hub",
    "scheduler": "hub:scheduler",
    "latency-service": "hub:latency_service",
    "sender": "hub:sender",
    "fleet": "hub:fleet",
    "put": "products:put",
    "feeds": "feeds:app",
    "sites": "sites:app",
    "subscriptions": "subscriptions:app",
    "resend": "resend:resend",
    "resends": "resend:app",
    "upstreams": "upstreams:app",
    "ldm": "ldm:app",
    "notifyme": "ldm_tools:notifyme",
    "feedme": "ldm_tools:feedme",
    "ldmping": "ldm_tools:ldmping",
    "ports": "ports:app",
    "circuits": "circuits:app",
    "plans": "plans:app",
    "trace": "deliveries:trace",
    "why": "deliveries:why",
    "deliveries": "deliveries:deliveries",
    "alarms": "alarms:app",
    "objectives": "objectives:app",
    "latency": "status:latency",
    "volume": "status:volume",
    "status": "status:status",
    "play": "play:play",
    "demo": "demo:demo",
    "analyze": "analyze:analyze",
    "generate": "generate:generate",
    "import": "importing:app",
    "apply": "applying:apply",
    "diff": "applying:diff",
    "export": "applying:export",
    "log": "log:app",
    "watch": "watching:watch",
    "doctor": "doctor:doctor",
    "login": "login:login",
    "logout": "login:logout",
    "requests": "requests:app",
    "users": "users:app",
    "tokens": "tokens:app",
    "audit": "audit:audit",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "drill": "drill:drill",
    "migrate": "hub:migrate",
    "node-path": "hub:node_path",
}
