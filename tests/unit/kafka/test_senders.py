"""Senders at work, judged by their beats, and the nodes that sites are given."""

from dataclasses import replace
from datetime import UTC, datetime

from downburst.domain.circuits import CircuitUse
from downburst.domain.events import SessionChanged, SessionTraffic, SiteProgress, TrafficSeen
from downburst.domain.plans import Transport
from downburst.domain.senders import Assignment, Placement, Pulse, Sender
from downburst.kafka.records import decode, encode
from downburst.live.state import LiveState
from downburst_worker.messages.lines import session_changed

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def sender(name: str, beats: int) -> Sender:
    return Sender(name, f"{name}:7370", "04", "c", "a", beats, 0.0, draining=False, seen_at=NOW)


def names(found: list[Sender]) -> list[str]:
    return [one.name for one in found]


def test_a_sender_whose_count_stands_still_is_not_at_work() -> None:
    pulse = Pulse(5.0)
    for second in range(5):
        assert names(pulse.alive([sender("one", second), sender("two", 7)], second)) == ["one", "two"]
    assert names(pulse.alive([sender("one", 5), sender("two", 7)], 5.0)) == ["one"]
    assert names(pulse.alive([sender("one", 6), sender("two", 8)], 6.0)) == ["one", "two"], "it is back"


def test_nobody_is_given_up_for_a_time_in_which_nobody_could_look() -> None:
    pulse = Pulse(5.0)
    pulse.alive([sender("one", 1)], 0.0)
    assert names(pulse.alive([sender("one", 1)], 60.0)) == ["one"], "the ledger was away"
    for second in range(1, 5):
        assert names(pulse.alive([sender("one", 1)], 60.0 + second)) == ["one"]
    assert names(pulse.alive([sender("one", 1)], 65.0)) == []


def test_a_site_is_told_of_all_nodes_and_of_its_own_feeds() -> None:
    assigned = (Assignment("A", "oslo", "one"), Assignment("B", "oslo", "two"), Assignment("A", "rome", "one"))
    placement = Placement(3, assigned, {"one": "one:1", "two": "two:1"})
    assert placement.nodes_of() == {
        "oslo": [("one:1", ["A"]), ("two:1", ["B"])],
        "rome": [("one:1", ["A"]), ("two:1", [])],
    }
    assert placement.others == [("one:1", []), ("two:1", [])], "a site without feeds knows where to ask"
    assert placement.feeds_of("one") == {"A"}
    assert Placement().is_empty
    assert not Placement().others


def session(state: str, sender: str = "") -> SessionChanged:
    return SessionChanged("oslo", state, NOW, "peer", sender=sender)  # type: ignore[arg-type]


def traffic(sender: str, feed: str, settled_to: int) -> TrafficSeen:
    progress = SiteProgress(feed, settled_to, 0, Transport.UNICAST, 1)
    seen = SessionTraffic("oslo", 5, 10, 100, (progress,))
    return TrafficSeen(0, 1_000_000, (), (), (seen,), 0, sender=sender)


def test_a_site_is_connected_while_any_node_serves_it() -> None:
    live = LiveState()
    live.apply(session("connected"))
    for event in (session("connected", "one"), session("connected", "two")):
        live.hear_sender(event)
    live.apply(session("closed"))
    assert live.sessions["oslo"].connected, "it went from the hub's own node to senders"
    live.hear_sender(session("closed", "one"))
    assert live.sessions["oslo"].connected
    live.hear_sender(session("closed", "two"))
    assert not live.sessions["oslo"].connected


def test_what_senders_tell_of_a_site_adds_up() -> None:
    live = LiveState()
    for sender, feed in (("one", "A"), ("two", "B")):
        live.hear_sender(session("connected", sender))
        live.hear_sender(traffic(sender, feed, 7))
    live.hear_sender(traffic("one", "A", 9))
    progress = live.sessions["oslo"].progress
    assert {feed: one.settled_to for feed, one in progress.items()} == {"A": 9, "B": 7}


def test_a_sender_that_is_lost_says_no_farewell() -> None:
    live = LiveState()
    for sender in ("one", "two"):
        live.hear_sender(session("connected", sender))
    live.only_senders({"one"}, NOW)
    assert live.sessions["oslo"].connected
    live.only_senders({"two"}, NOW)
    assert not live.sessions["oslo"].connected
    assert live.sessions["oslo"].reason == "its sender is unavailable"


def test_the_use_of_a_senders_circuit_counts_until_that_is_lost() -> None:
    live = LiveState()
    use = (CircuitUse(17, "oslo", 1_000_000, 500),)
    for _ in range(2):
        live.hear_sender(replace(traffic("one", "A", 7), circuits=use))
    load = live.circuits[17, "oslo"]
    assert (load.out_bytes, load.in_bytes, load.out_bps) == (2_000_000, 1_000, 8e6)
    live.only_senders({"one"}, NOW)
    assert load.out_bps == 8e6
    live.only_senders({"two"}, NOW)
    assert (load.out_bytes, load.out_bps, load.in_bps) == (2_000_000, 0.0, 0.0)


def test_a_stranger_is_no_site_in_the_present_and_its_refusal_reaches_other_processes() -> None:
    line = {"site": None, "state": "refused", "at_us": 0, "peer": "192.0.2.1:9", "reason": "no token"}
    refused = session_changed(line)
    assert decode(encode(refused)) == refused
    live = LiveState()
    live.apply(refused)
    assert live.sessions == {}
