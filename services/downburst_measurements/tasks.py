"""Tasks for pScheduler, as its validators take them (schema 1 of each test, schema 3 of the HTTP archiver)."""

from dataclasses import dataclass
from typing import Any

from downburst.domain.measurements import MeasuredKind, plain_host
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Task:
    """One test between two hosts, repeated."""

    kind: MeasuredKind
    source: str
    destination: str
    archive_url: str
    """The address of this hub's receiver, with the test point's token."""
    repeat_s: int | None = 900
    """Seconds between runs; None: one run. Of `latencybg`, the length of a report's span is the test point's."""
    until: str | None = None
    """The end of the repetitions, ISO 8601; None: none."""
    duration_s: int = 10
    """Seconds of one run of `throughput`, and of the whole of `latencybg`."""
    packets: int = 100
    """Packets of one run of `latency` or `rtt`."""
    verify_tls: bool = True
    """Whether the test point checks this hub's certificate."""

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("repeat", self.repeat_s or 60, 60, 7 * 86_400),
            ("duration", self.duration_s, 1, 86_400),
            ("packets", self.packets, 1, 10_000),
        ):
            if not least <= value <= most:
                raise BadInput(f"{name} is {value}, and should be from {least} to {most}")

    def body(self) -> dict[str, Any]:
        """The body of `POST /tasks`."""
        schedule: dict[str, Any] = {"slip": "PT5M"}
        if self.repeat_s is not None and self.kind is not MeasuredKind.LATENCYBG:
            schedule["repeat"] = f"PT{self.repeat_s}S"
        if self.until is not None:
            schedule["until"] = self.until
        data = {"schema": 3, "_url": self.archive_url, "op": "post", "verify-ssl": self.verify_tls}
        return {
            "schema": 1,
            "test": {"type": self.kind.value, "spec": self._spec()},
            "schedule": schedule,
            "archives": [{"archiver": "http", "data": data}],
        }

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "schema": 1,
            "source": plain_host(self.source),
            "dest": plain_host(self.destination),
        }
        match self.kind:
            case MeasuredKind.LATENCY:
                return spec | {"packet-count": self.packets, "packet-interval": 0.1}
            case MeasuredKind.LATENCYBG:
                return spec | {"packet-interval": 0.1, "duration": f"PT{self.duration_s}S"}
            case MeasuredKind.RTT:
                return spec | {"count": self.packets}
            case MeasuredKind.THROUGHPUT:
                return spec | {"duration": f"PT{self.duration_s}S"}
