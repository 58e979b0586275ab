"""Drives `downburst-wire`: a wire with rate, delay, loss and a bounded buffer between two hosts of a lab."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kit.capabilities import skip
from kit.namespaces import Lab
from kit.programs import built


@dataclass(frozen=True)
class Lane:
    """One direction of a wire. Rates are Ethernet-frame bits per second; loss takes data frames only."""

    rate_bps: int | None = None
    delay_ms: float = 0
    loss: float = 0
    every: int | None = None
    buffer_bytes: int | None = None

    def __str__(self) -> str:
        """Return the form that `downburst-wire` reads."""
        given = {
            "rate_bps": self.rate_bps,
            "delay_us": round(self.delay_ms * 1000) or None,
            "loss": self.loss or None,
            "every": self.every,
            "buffer_bytes": self.buffer_bytes,
        }
        return ",".join(f"{key}={value}" for key, value in given.items() if value is not None)


@dataclass(frozen=True)
class LaneReport:
    """The traffic of one direction, and the lateness of the wire itself."""

    carried_frames: int
    carried_bytes: int
    lost_frames: int
    overflowed_frames: int
    refused_frames: int
    lag_p99_us: int
    lag_max_us: int


@dataclass(frozen=True)
class WireReport:
    """The activity of a wire from start to stop."""

    seconds: float
    real_time: bool
    lag_p99_us: int
    to_right: LaneReport
    to_left: LaneReport

    def needs_small_lag(self, *, max_lag_us: int = 1000) -> None:
        """Skip the running test, with the reason, if the machine and not the wire shaped the result."""
        load = os.getloadavg()[0]
        print(f"wire: {self.lag_p99_us} us late (p99), in real time: {self.real_time}; load {load:.1f}")
        if self.lag_p99_us > max_lag_us:
            skip(
                f"the wire ran {self.lag_p99_us} us late (p99), more than {max_lag_us} us: machine too busy to judge"
            )


class Wire:
    """A wire between two hosts of a lab; the hosts get 10.78.N.1 (left) and 10.78.N.2 (right) on it."""

    def __init__(
        self,
        lab: Lab,
        left: str,
        right: str,
        *,
        to_right: Lane | None = None,
        to_left: Lane | None = None,
        seed: int = 1,
    ) -> None:
        self.lab, self.left, self.right = lab, left, right
        self.to_right, self.to_left, self.seed = to_right or Lane(), to_left or Lane(), seed
        self.device = f"wire{lab.wires}"
        self.left_address, self.right_address = f"10.78.{lab.wires}.1", f"10.78.{lab.wires}.2"
        lab.wires += 1

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if json.loads(self._line() or "{}") != {"ready": True}:
            self._process.kill()
            raise RuntimeError(f"downburst-wire did not start (exit {self._process.wait()}); its reason is on stderr")
        for host, address in ((self.left, self.left_address), (self.right, self.right_address)):
            self.lab.output(host, ["ip", "address", "add", f"{address}/24", "dev", self.device])
            self.lab.output(host, ["ip", "link", "set", self.device, "up"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the wire without asking for its report; may be called again."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def stop(self) -> WireReport:
        """Stop the wire and return its report."""
        if self._process.stdin:
            self._process.stdin.close()
        report = json.loads(self._line())
        self._process.wait(timeout=10)
        to_right, to_left = LaneReport(**report.pop("to_right")), LaneReport(**report.pop("to_left"))
        return WireReport(to_right=to_right, to_left=to_left, **report)

    def _argv(self) -> list[str]:
        return [
            str(wire_binary()),
            f"--left-namespace={self.lab.namespace(self.left)}",
            f"--left-device={self.device}",
            f"--right-namespace={self.lab.namespace(self.right)}",
            f"--right-device={self.device}",
            f"--to-right={self.to_right}",
            f"--to-left={self.to_left}",
            f"--seed={self.seed}",
        ]

    def _line(self) -> str:
        return self._process.stdout.readline() if self._process.stdout else ""


def wire_binary() -> Path:
    """The built wire: ``DOWNBURST_WIRE``, else the workspace's."""
    named = os.environ.get("DOWNBURST_WIRE")
    return Path(named) if named else built("downburst-wire")
