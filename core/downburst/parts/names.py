"""The parts that may run in a process of their own beside a hub, and those that do by its settings."""

from collections.abc import Sequence
from enum import StrEnum

from downburst.settings.hub import Settings


class Part(StrEnum):
    """Names for users; the role of the same name in the ledger belongs to one process at a time."""

    HUB = "hub"
    SCHEDULER = "scheduler"
    LATENCY = "latency service"
    CIRCUITS = "circuit service"
    ALARMS = "alarm service"

    @property
    def command(self) -> str:
        """The command that runs it."""
        return self.value.replace(" ", "-")

    @property
    def remedy(self) -> str:
        """The first step when it is silent."""
        return f"start it again: downburst {self.command}; if it runs, check Kafka, which carries its signs of life"


class SenderPart(str):
    """A sender of the hub as the recipient of requests, by its name."""

    __slots__ = ()
    command = "sender"

    def __new__(cls, sender: str) -> "SenderPart":
        """The recipient with this sender's name."""
        return super().__new__(cls, f"sender {sender}")


def parts_apart(settings: Settings) -> Sequence[Part]:
    """The parts that run in other processes of this hub."""
    chosen = {
        Part.SCHEDULER: settings.scheduler.apart,
        Part.LATENCY: settings.latency_apart,
        Part.CIRCUITS: settings.circuits.apart,
        Part.ALARMS: settings.alarms.apart,
    }
    return [part for part, is_apart in chosen.items() if is_apart]
