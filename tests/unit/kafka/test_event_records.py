"""Events as records: round trips lose nothing, and records of all releases stay readable."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from downburst.domain.access import Caller, Role, Scope
from downburst.domain.backlog import CatchUpChanged, FeedBacklog
from downburst.domain.bridges.signs import BridgesChanged
from downburst.domain.circuits import CircuitProblem, CircuitUse
from downburst.domain.circuits.signs import CircuitsChanged, CircuitTold
from downburst.domain.events import (
    BacklogSeen,
    BatchLoaded,
    BatchReady,
    DeliveriesAsked,
    DeliveriesTold,
    Event,
    EventsMissed,
    FaultSeen,
    FeedsChanged,
    FeedTraffic,
    HandlerFailed,
    LdmPeerChanged,
    LdmSourceChanged,
    LdmViolated,
    LegChanged,
    LegTraffic,
    LinkedFiles,
    NodeChanged,
    PartAnswered,
    PartAsked,
    PartSeen,
    PinChanged,
    PlanMade,
    RelaySeen,
    ResendsChanged,
    SessionChanged,
    SessionTraffic,
    SiteBacklog,
    SiteProgress,
    SitesChanged,
    SiteViolated,
    Streams,
    SubscriptionsChanged,
    TcpProfilesChanged,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.domain.plans import Candidate, Leg, Plan, Transport
from downburst.domain.probes.results import DelaySpread, Excess, ProbeResult, ProbeSecond, StepResult
from downburst.domain.probes.signs import (
    PathMeasured,
    PathsMeasured,
    ProbeOver,
    ProbesChanged,
    ProbeSecondReported,
)
from downburst.domain.relays import FanOut, RelayedLeg, RelayReport, Segment, Tunnel
from downburst.domain.senders import SenderSeen
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.profiles import AppliedProfile, ProfileState, TcpKnobs
from downburst.domain.tcp.tracing import TracerAsked, TracerTold
from downburst.domain.tcp.transfers import Transfer
from downburst.kafka.records import ForeignRecord, NewerSchema, decode, encode

AT = datetime(2026, 3, 5, 12, 30, 1, 250_001, tzinfo=UTC)
GOLDEN = Path(__file__).parents[2] / "golden" / "events"
GROUP = Leg(7, Transport.MULTICAST, ("a", "b"), group="239.77.0.1", port=17_001, rate_bps=400_000_000)
EVENTS: tuple[Event, ...] = (
    SessionChanged("unl.edu", "connected", AT, "192.0.2.1:9", software="0.2.0", stand_by=True),
    SiteViolated("unl.edu", AT, "`settled_to` is 9223372036854775808"),
    LdmViolated("192.0.2.1", AT, "a product made at -1 s", source="idd", site="unl.edu"),
    UpstreamChanged("unidata", "refused", AT, reason="no token"),
    LdmSourceChanged("idd", "idd.example.edu", "connected", AT, mode="primary"),
    LdmPeerChanged("192.0.2.1", "refused", AT, what="feedme", site="unl.edu", reason="not allowed"),
    LegChanged("NGRID", 7, "unl.edu", "joined", AT, after=12),
    CatchUpChanged("NGRID", 2**30 + 7, 7, "ended", AT, ("isu.edu", "unl.edu"), 3, 9, 80, 45, 35, "2 sites caught up"),
    TrafficSeen(
        1_000_000,
        2_000_000,
        feeds=(FeedTraffic("NGRID", 2, 100, (50, 50), 2**62, epoch="18446744073709551615"),),
        legs=(LegTraffic(7, "NGRID", 210, 1, 2, 100, 2, 0, transport=Transport.MULTICAST),),
        sessions=(
            SessionTraffic(
                "unl.edu",
                5,
                2,
                None,
                feeds=(SiteProgress("NGRID", 1, 1, Transport.UNICAST, 1, trouble="disk full", late=3),),
                streams=Streams(2, 4, "they help"),
                path=TcpPath(3, 2_000, 20, 8_000_000, is_lower_bound=True, congestion="bbr"),
            ),
        ),
        control_bytes=30,
        circuits=(CircuitUse(1, "unl.edu", out_bytes=1, in_bytes=2),),
        gone=frozenset({"dmz.edu"}),
    ),
    BacklogSeen((SiteBacklog("unl.edu", (FeedBacklog("NGRID", True, 4_300, 2**40, 1, 17, 9, True),)),), "one"),
    PlanMade(
        Plan(
            "IDS|DDPLUS",
            3,
            (GROUP, Leg(1, Transport.UNICAST, ("c",))),
            "because",
            AT,
            candidates=(Candidate(Transport.MULTICAST, feasible=False, reason="one site", egress_bps=1.5),),
            figures={"mean_bps": 12.3e6, "changes": 1, "because": "start", "pinned": False, "none": None},
            pinned=True,
        )
    ),
    PinChanged("NGRID"),
    BatchReady("b1", Path("/var/lib/downburst/batches/b1.json")),
    BatchLoaded("b1"),
    FaultSeen(AT, "something \u00fc", feed="NGRID", site="unl.edu", next_step="look"),
    HandlerFailed("sender one", "node.line", 3, AT, "KeyError: 'x'", "the line"),
    NodeChanged(AT, running=False, restarts=2, reason="the node ended"),
    SenderSeen("one", "7f", running=True),
    FeedsChanged(),
    SitesChanged(),
    SubscriptionsChanged(),
    ResendsChanged(),
    TcpProfilesChanged(),
    ProbesChanged(),
    PathsMeasured((PathMeasured("unl.edu", "NGRID", 612.5, 0.25), PathMeasured("isu.edu", "NGRID", -1.0, 40.0))),
    ProbeSecondReported("p3-1", ProbeSecond(7, 100, 98, 2, 1, 0, 2**40, DelaySpread(-5, 10, 20, 30), 1.5, 900)),
    ProbeOver(
        "p3-1",
        "done",
        None,
        ProbeResult(
            (StepResult(10**8, 9.9e7, 9.8e7, 100, 98, 2, 1, 0, 1_000_000, DelaySpread(1, 2, 3, 4), 0.5),),
            120,
            9.8e7,
            "the lowest rate lost already",
            2,
            (Excess(500_000, 1, 40_000, None),),
            0.01,
        ),
    ),
    SilencesWatched((("NGRID", 60_000_000), ("IDS|DDPLUS", 10_000))),
    FeedStirred("NGRID", 1_767_225_600_000_001),
    FeedSilent("NGRID", 1_767_225_600_000_001, 1_767_225_660_000_001),
    RelaySeen(
        AT,
        RelayReport(
            "campus",
            (
                Tunnel(
                    "oslo",
                    "192.0.2.9:1",
                    "198.51.100.1:2",
                    "hub:7370",
                    60.5,
                    2**62,
                    3,
                    4,
                    Segment(2_000, 1_000, "cubic", 5),
                    Segment(None, None, "bbr", 6),
                    ended=True,
                ),
            ),
            (RelayedLeg(7, 8, 2**62, 9),),
            refused=1,
        ),
    ),
    CircuitTold(1, None, "down", AT, CircuitProblem("cut", step="probe", hop="a", remedy="b")),
    CircuitsChanged(5),
    BridgesChanged(),
    DeliveriesAsked("7f", "NGRID", "18446744073709551615", (3, 5), "unl.edu"),
    DeliveriesTold("7f", "one", 3, '{"products":[]}'),
    TracerAsked("7f", "unl.edu", AT, AT, 600, ("rtt",)),
    TracerTold("7f", "one", '{"unable":null}', 0, 1),
    PartSeen("alarm service", "alarm service on a", fault="alarms were not evaluated for 80 s"),
    PartAsked(
        "7f",
        "circuit service",
        "CircuitService.cancel",
        '{"number":1}',
        caller=Caller("eve", Role.SITE, frozenset({Scope.OWN}), site="unl.edu", peer="192.0.2.1"),
    ),
    PartAnswered("7f", '{"kind":"NotFound"}', 0, 1, refused=True),
    EventsMissed(),
)


def test_every_kind_of_event_has_an_example() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_whole(event: Event) -> None:
    assert decode(encode(event)) == event


def test_a_leg_by_a_relay_comes_back_whole() -> None:
    leg = Leg(7, Transport.MULTICAST, ("a",), "239.77.0.1", 17_001, 10**7, relay="campus", fan_out=FanOut.GROUP)
    event = PlanMade(Plan("NGRID", 1, (leg,), "one copy", AT))
    assert decode(encode(event)) == event


def test_the_linked_files_of_a_site_come_back_whole() -> None:
    progress = SiteProgress("NGRID", 1, 1, Transport.UNICAST, 1, linked=LinkedFiles(bytes=2**62, free_bytes=3))
    session = SessionTraffic("unl.edu", None, None, None, feeds=(progress,))
    event = TrafficSeen(1, 2, (), (), (session,), 0)
    assert decode(encode(event)) == event


def test_the_tcp_profile_of_a_session_comes_back_whole() -> None:
    applied = AppliedProfile("overseas", ProfileState.CANARY, TcpKnobs("bbr", connections=4))
    event = TrafficSeen(1, 2, (), (), (SessionTraffic("unl.edu", None, None, None, (), tcp_profile=applied),), 0)
    assert decode(encode(event)) == event


def test_the_transfers_of_a_session_come_back_whole() -> None:
    session = SessionTraffic("unl.edu", None, None, None, (), transfers=(Transfer(2**40, 7), Transfer(5, 400_000)))
    event = TrafficSeen(1, 2, (), (), (session,), 0)
    assert decode(encode(event)) == event


def test_records_of_earlier_releases_mean_what_they_meant() -> None:
    for file in sorted(GOLDEN.glob("*.jsonl")):
        records = [line.encode() for line in file.read_text().splitlines()]
        assert [decode(record) for record in records] == list(EVENTS), file.name


def test_a_field_that_a_later_release_added_is_passed_over() -> None:
    envelope = json.loads(encode(PinChanged("NGRID")))
    envelope["event"]["later"] = {"more": 1}
    assert decode(json.dumps(envelope).encode()) == PinChanged("NGRID")


def test_a_newer_schema_is_told_from_foreign_content_and_from_unknown_kinds() -> None:
    envelope = json.loads(encode(PinChanged("NGRID")))
    with pytest.raises(NewerSchema, match="PinChanged of schema 2"):
        decode(json.dumps(envelope | {"schema": 2}).encode())
    assert decode(json.dumps(envelope | {"kind": "Later"}).encode()) is None
    with pytest.raises(ForeignRecord):
        decode(json.dumps(envelope | {"event": {"feed": 1}}).encode())


@given(some.binary(max_size=200))
def test_no_bytes_do_worse_than_being_foreign(record: bytes) -> None:
    with suppress(ForeignRecord, NewerSchema):
        assert decode(record) is None
