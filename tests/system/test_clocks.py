"""A site's clock that is off and drifts, and a path of unlike directions: the bound contains the truth."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, Play, SiteNode
from kit.patience import wait_for
from kit.wire import Lane, Wire

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

PORT = 7371
OFFSET_US = 250_000
DRIFT_PPM = 50
WAY_AND_BACK_US = 70_000
READING_US = 300
"""The clock's file is read each 20 ms, and a status is some receipts old."""


class Drifting:
    """A wall clock that is ahead and gains time: the file that the node's clock follows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def ahead_us(self) -> float:
        """The truth: the site's clock less the hub's."""
        return OFFSET_US + (time.monotonic() - self._began) * DRIFT_PPM

    def _run(self) -> None:
        while not self._end.wait(0.02):
            self._write()

    def _write(self) -> None:
        """Another file takes its place, so that none is read half."""
        written = self._file.with_suffix(".new")
        written.write_text(str(round(self.ahead_us())))
        written.replace(self._file)


@dataclass(frozen=True)
class Comparison:
    """A comparison of the clocks that the hub reports, with the truth."""

    offset_us: int
    bound_us: int
    round_trip_us: int
    truth_us: float

    @property
    def error_us(self) -> float:
        """Of the estimate."""
        return abs(self.offset_us - self.truth_us)


@dataclass
class World:
    """A hub and a site with a drifting clock behind a wire."""

    hub: HubNode
    site: SiteNode
    wire: Wire
    drifting: Drifting

    def compare_for(self, seconds: float) -> list[Comparison]:
        """Comparisons while products flow; each product's receipt carries a new one."""
        play = Play(self.hub, "NGRID", seed=64).start()
        wait_for("the first comparison", lambda: self.compared() is not None, 30)
        end = time.monotonic() + seconds
        found = []
        while time.monotonic() < end:
            play.wait_for_more(5)
            found.append(self.compared())
        play.finish()
        assert self.hub.drained()
        return [one for one in found if one is not None]

    def compared(self) -> Comparison | None:
        """The newest comparison; None before the first."""
        (session,) = self.hub.do("status")["sessions"]
        if session.get("clock_offset_us") is None:
            return None
        offset_us, bound_us = session["clock_offset_us"], session["clock_bound_us"]
        return Comparison(offset_us, bound_us, session["round_trip_us"], self.drifting.ahead_us())


@pytest.fixture
def lanes(request: pytest.FixtureRequest) -> tuple[Lane, Lane]:
    to_site_ms, to_hub_ms = request.param
    return Lane(delay_ms=to_site_ms), Lane(delay_ms=to_hub_ms)


@pytest.fixture
def world(tmp_path: Path, lanes: tuple[Lane, Lane]) -> Iterator[World]:
    needs("root", "netns", "veth", "bridge", "tun")
    with Lab(["hub", "far"]) as lab, Wire(lab, "hub", "far", to_right=lanes[0], to_left=lanes[1]) as wire:
        hub = HubNode(tmp_path / "hub", listen=f"0.0.0.0:{PORT}", prefix=lab.command("hub", [])).start()
        hub.feed("NGRID")
        step = tmp_path / "far.step"
        stepped = ["env", f"DOWNBURST_TEST_CLOCK_STEP_FILE={step}"]
        site = SiteNode(tmp_path / "far", f"{wire.left_address}:{PORT}", prefix=lab.command("far", stepped))
        hub.site("far", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        with Drifting(step) as drifting:
            site.start()
            try:
                hub.wait_connected("far")
                yield World(hub, site, wire, drifting)
            finally:
                site.stop()
                hub.stop()


@pytest.mark.parametrize("lanes", [(1.0, 1.0)], indirect=True, ids=["1/1 ms"])
def test_a_clock_that_is_off_and_drifts_is_corrected_within_half_of_the_round_trip(world: World) -> None:
    found = world.compare_for(45)
    world.wire.stop().needs_small_lag()
    assert found[-1].truth_us - found[0].truth_us > found[-1].round_trip_us / 2, "the drift alone is more than that"
    for one in found:
        assert one.error_us <= one.bound_us + READING_US, one
        assert one.error_us <= one.round_trip_us / 2 + READING_US, one


@pytest.mark.parametrize("lanes", [(10.0, 60.0), (60.0, 10.0)], indirect=True, ids=["10/60 ms", "60/10 ms"])
def test_the_bound_contains_the_truth_on_a_path_of_unlike_directions(world: World) -> None:
    found = world.compare_for(15)
    world.wire.stop().needs_small_lag(max_lag_us=5_000)
    for one in found:
        assert one.error_us <= one.bound_us, one
        assert one.error_us > 15_000, f"no exchange shows that the directions differ: {one}"
        assert one.bound_us >= WAY_AND_BACK_US / 2, one
        assert one.bound_us < 60_000, one
