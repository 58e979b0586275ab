"""Effects of probes on products, measured over a wire: tests run small trials, `make bench-probes` full ones."""

import time
from dataclasses import dataclass
from statistics import median
from threading import Thread

import numpy as np

from kit.patience import wait_for
from kit.probed_hub import SITE, ProbedHub, Shown, ended_s
from kit.wire import Lane

M = 1_000_000
FAST_LANE = Lane(rate_bps=100 * M, delay_ms=20, buffer_bytes=250_000)
PRODUCT_BYTES, EVERY_S = 10_000, 0.02
PROBE_BPS = 40 * M
STEADY = "cubic"
"""The congestion control of sessions beside probes. BBR rests for 200 ms after ten seconds in which no round trip was
as short as its least one: with a probe or without, some products of a window take that long."""
OBJECTIVE_MS = 500


@dataclass(frozen=True)
class Window:
    """Products' times within a window."""

    median_s: float
    p99_s: float


@dataclass(frozen=True)
class Beside:
    """Products' times: medians of windows with a probe and without."""

    free: Window
    probed: Window
    probes: int

    @property
    def ratio(self) -> float:
        """The 99th percentile with probes over that without; of few products it is one of the slowest alone."""
        return self.probed.p99_s / self.free.p99_s

    @property
    def median_ratio(self) -> float:
        """The median with probes over that without."""
        return self.probed.median_s / self.free.median_s


def beside_probes(scene: ProbedHub, *, probes: int, window_s: float) -> Beside:
    """Windows without and with a probe in turns; the probe takes its rate from the calendar of a line of 100 Mb/s."""
    scene.play(1.0, every_s=EVERY_S, product_bytes=PRODUCT_BYTES, name="first")
    free, probed = [], []
    for number in range(probes):
        free.append(_window(scene, f"free-{number}", window_s))
        wanted = {"rate_bps": PROBE_BPS, "seconds": window_s + 60}
        probe = scene.begin("cbr", **wanted)
        probed.append(_window(scene, f"probed-{number}", window_s))
        assert scene.probe(probe)["state"] == "running", scene.probe(probe)["reason"]
        scene.command("probe", "stop", str(probe))
        scene.wait_state(probe, "stopped")
    return Beside(_medians(free), _medians(probed), probes)


def _window(scene: ProbedHub, name: str, window_s: float) -> Window:
    played = scene.play(window_s, every_s=EVERY_S, product_bytes=PRODUCT_BYTES, name=name)
    middle, p99 = np.quantile(scene.latencies_s(played), [0.5, 0.99])
    return Window(float(middle), float(p99))


def _medians(windows: list[Window]) -> Window:
    return Window(median(one.median_s for one in windows), median(one.p99_s for one in windows))


@dataclass(frozen=True)
class Ended:
    """The end of a probe for late products."""

    since_report_s: float
    """Since the hub knew of the first late product."""
    since_late_s: float
    """Since that product was late."""
    probe: Shown


def end_for_late_products(scene: ProbedHub, *, rate_bps: int, product_bytes: int) -> Ended:
    """A large product beside a probe needs the wire: it becomes late, and the probe ends."""
    number = scene.begin("soak", rate_bps=rate_bps, seconds=600)
    wait_for("a second of the probe", lambda: scene.seconds(number))
    product = f"large/{number}"
    putting = Thread(target=scene.put, args=(product, bytes(product_bytes)), daemon=True)
    putting.start()
    reported_s = wait_for("a report of the late product", lambda: _reported_late_s(scene))
    ended = scene.wait_state(number, "stopped")
    putting.join()
    scene.latencies_s([product])
    late_s = scene.sent[product] + OBJECTIVE_MS / 1e3
    return Ended(ended_s(ended) - reported_s, ended_s(ended) - late_s, ended)


def _reported_late_s(scene: ProbedHub) -> float | None:
    """The time at which the hub shows that a product is older than the objective."""
    behind_s = scene.hub.ask("GET", f"/v1/sites/{SITE}")["behind_s"]
    return time.time() if behind_s is not None and behind_s * 1e3 > OBJECTIVE_MS else None
