"""Facts about the path to a site: counters that restart, loss of recent segments, groups that were tried."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from downburst.domain.events import LegChanged, SessionTraffic, TrafficSeen
from downburst.domain.path_facts import HALF_LIFE_SEGMENTS, KnownPath, PathWatch
from downburst.domain.tcp.path import TcpPath
from downburst_app.cli.sites.site_path import rows

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
TCP = TcpPath(70_000, 10_000, 50, 24_000_000, is_lower_bound=False, congestion="cubic")


def told(watch: PathWatch, path: TcpPath | None, *, round_trip_us: int | None = 90_000) -> KnownPath:
    session = SessionTraffic("unl.edu", 5, 40, round_trip_us, (), path=path)
    watch.traffic(TrafficSeen(0, 1_000_000, (), (), (session,), 0))
    return watch.of("unl.edu")


def tried(
    watch: PathWatch, state: Literal["joined", "left", "never-heard", "too-slow"], why: str | None = None
) -> None:
    watch.leg(LegChanged("NGRID", 8, "unl.edu", state, NOON, reason=why))


def test_the_shorter_round_trip_counts_and_the_share_sent_again() -> None:
    known = told(PathWatch(), TCP)
    assert (known.least_round_trip_us, known.clock_bound_us) == (70_000, 40)
    assert known.loss == pytest.approx(0.005)


def test_a_few_segments_tell_nothing_of_loss() -> None:
    assert told(PathWatch(), replace(TCP, sent_segments=900)).loss is None


def test_loss_is_that_of_late() -> None:
    watch = PathWatch()
    told(watch, TCP)
    later = replace(TCP, sent_segments=TCP.sent_segments + 10 * HALF_LIFE_SEGMENTS, resent_segments=50 + 5_000)
    assert told(watch, later).loss == pytest.approx(0.01, rel=0.01), "not 0.0099 of all and not 0.005 of the first"
    assert told(watch, later).loss == pytest.approx(0.01, rel=0.01), "a line that tells nothing changes nothing"


def test_counts_of_another_session_begin_anew() -> None:
    watch = PathWatch()
    told(watch, TCP)
    known = told(watch, replace(TCP, sent_segments=2_000, resent_segments=0))
    assert known.resent_segments == pytest.approx(50, rel=0.05)
    assert known.loss == pytest.approx(50 / 12_000, rel=0.05)


def test_a_session_that_says_nothing_of_its_path_leaves_what_is_known() -> None:
    watch = PathWatch()
    told(watch, TCP)
    known = told(watch, None, round_trip_us=None)
    assert known.tcp == TCP
    assert known.least_round_trip_us == 70_000


@pytest.mark.parametrize(
    ("state", "why", "heard", "reason"),
    [
        ("joined", None, True, ""),
        ("never-heard", "no querier on this network", False, "no querier on this network"),
        ("never-heard", None, False, "no packets of the group arrived"),
        ("too-slow", None, False, "it could not keep up"),
    ],
)
def test_a_group_that_was_tried_is_known(
    state: Literal["joined", "never-heard", "too-slow"], why: str | None, reason: str, *, heard: bool
) -> None:
    watch = PathWatch()
    assert watch.of("unl.edu").group is None
    tried(watch, state, why)
    tried(watch, "left")
    group = watch.of("unl.edu").group
    assert group is not None
    assert (group.heard, group.feed, group.at, group.reason) == (heard, "NGRID", NOON, reason)


def test_a_site_that_was_removed_is_forgotten() -> None:
    watch = PathWatch()
    told(watch, TCP)
    watch.forget("unl.edu")
    assert watch.of("unl.edu") == KnownPath()


def test_people_are_told_what_was_measured_and_what_was_not() -> None:
    nothing: dict[str, Any] = {
        "seen_at": None,
        "round_trip_ms": None,
        "clock_bound_ms": None,
        "loss": None,
        "rate_bps": None,
        "rate_is_lower_bound": None,
        "forecast": None,
        "congestion_control": None,
        "path_mtu_bytes": None,
        "access_rate_bps": None,
        "multicast": {"state": "not-tried", "feed": None, "at": None, "again_at": None, "reason": "none yet"},
        "circuits": [],
        "tcp_profile": None,
        "parallel": None,
        "way": None,
    }
    assert [row[1] for row in rows(nothing)][:6] == [
        "never since the hub started",
        "direct, or as the site's administrator chose",
        *["not yet measured"] * 2,
        "not yet known",
        "not yet measured",
    ]
    measured = nothing | {"round_trip_ms": 70.0, "loss": 1e-4, "congestion_control": "cubic"}
    assert ["by its congestion control", "cubic: 23.7 Mb/s for each connection at this loss"] in rows(measured)
    assert ["by its congestion control", "bbr: the path limits it, not loss"] in rows(
        measured | {"congestion_control": "bbr"}
    )
    idle = measured | {"rate_bps": 12_000_000, "rate_is_lower_bound": True}
    assert ["recent rate", "12 Mb/s or more: no more data to send"] in rows(idle)
    assert ["forecast rate", "none: too few measurements, or they are near the hub's own pace"] in rows(idle)
    expected = {"rate_bps": 21_400_000.0, "error_share": 0.064, "samples": 32, "best": "autoregression"}
    said = "21.4 Mb/s, off by 6% of late (32 measurements, autoregression predicts best)"
    assert ["forecast rate", said] in rows(measured | {"forecast": expected})
    at = {"at": "2026-01-01T12:00:00+00:00", "again_at": "2026-01-01T12:30:00+00:00"}
    deaf = nothing["multicast"] | at | {"state": "not-heard", "feed": "NGRID", "reason": "no querier"}
    said = "not-heard (no querier), tested with NGRID 2026-01-01T12:00:00, again at 2026-01-01T12:30:00"
    assert ["multicast", said] in rows(nothing | {"multicast": deaf})
    assert ["TCP profile", "none applies: the kernel's values"] in rows(nothing)
    assert ["connections for a rate", "not yet known"] in rows(nothing)
    knobs = {"congestion": "bbr", "send_buffer_bytes": 8_388_608}
    profile = {"profile": "overseas", "state": "canary", "knobs": knobs}
    told = rows(nothing | {"tcp_profile": profile, "parallel": {"sentence": "8 connections equal 50 Mb/s"}})
    assert ["TCP profile", "overseas (canary): bbr, send buffer 8 MiB"] in told
    assert ["connections for a rate", "8 connections equal 50 Mb/s"] in told
    way = {"chain": ["campus", "core"], "reason": "13 times the direct rate", "measured_bps": None, "circuit": None}
    figures = {"predicted_bps": 980_000_000, "direct_bps": 75_000_000}
    said = "through campus and core: 13 times the direct rate (predicted 980 Mb/s, direct 75 Mb/s)"
    assert ["way", said] in rows(nothing | {"way": way | figures})
    said = "through campus and core, over circuit 7: 13 times the direct rate"
    assert ["way", said] in rows(nothing | {"way": way | dict.fromkeys(figures) | {"circuit": 7}})
    unknown = dict.fromkeys(("predicted_bps", "direct_bps", "measured_bps", "circuit"))
    assert ["way", "direct: no slower"] in rows(nothing | {"way": {"chain": [], "reason": "no slower", **unknown}})
    circuit = {"circuit": 3, "state": "degraded", "rate_bps": 5e8, "measured_bps": 3e8, "enough": False}
    assert ["circuit 3", "degraded, 500 Mb/s, measured 300 Mb/s, too little"] in rows(
        nothing | {"circuits": [circuit]}
    )
