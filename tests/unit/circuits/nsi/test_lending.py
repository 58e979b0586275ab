"""The hub as a provider: operations, state machines, callbacks and refusals, over a real ledger and calendar."""

from dataclasses import replace

import pytest
from lxml import etree

from downburst.domain.circuits import CircuitState
from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.ledger.storage import limits
from downburst.supervision import FAULTS
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import envelope
from downburst_circuits.nsi.stp import Stp, stp
from downburst_circuits.nsi.words import (
    Acknowledged,
    Fault,
    LifecycleState,
    Listing,
    Operation,
    ProvisionState,
    Request,
    ReservationState,
    Results,
)
from downburst_circuits.provider_agent import wishes
from downburst_circuits.provider_agent.carrying import AGAIN_S
from downburst_circuits.provider_agent.delivery import LONGEST_PAUSE_S
from kit.nsi.scene import a_provider
from unit.circuits.nsi.lender import STPS, Lender, between


@pytest.fixture
async def lender(ledger: Ledger, clock: FakeClock) -> Lender:
    return await Lender(ledger, clock).open()


async def test_a_whole_life(lender: Lender) -> None:
    connection_id = await lender.in_service()
    one = lender.one(connection_id)
    assert (one.reservation, one.provision) == (ReservationState.START, ProvisionState.PROVISIONED)
    assert lender.circuit(connection_id).state is CircuitState.ACTIVE
    assert one.plane.active
    await lender.ask(Operation.RELEASE, connection_id)
    await lender.after(2)
    assert lender.circuit(connection_id).state is CircuitState.WAITING
    assert not lender.one(connection_id).plane.active
    await lender.ask(Operation.PROVISION, connection_id)
    await lender.after(2)
    await lender.after(2)
    assert lender.one(connection_id).plane.active
    await lender.ask(Operation.TERMINATE, connection_id)
    await lender.after(2)
    assert lender.one(connection_id).lifecycle is LifecycleState.TERMINATED
    assert (lender.circuits(), lender.node.held) == ([], {})
    assert lender.told() == [
        "reserveConfirmed",
        "reserveCommitConfirmed",
        "provisionConfirmed",
        "dataPlaneStateChange",
        "releaseConfirmed",
        "dataPlaneStateChange",
        "provisionConfirmed",
        "dataPlaneStateChange",
        "dataPlaneStateChange",
        "terminateConfirmed",
    ]


async def test_what_was_granted_is_told_with_one_vlan_at_each_end(lender: Lender) -> None:
    connection_id = await lender.reserve()
    (listed,) = (await listing(lender)).reservations
    (told,) = listed.told
    assert listed.connection_id == connection_id
    assert listed.states.reservation is ReservationState.HELD
    assert (told.capacity_mbps, told.version) == (50, 1)
    assert (told.source, told.dest) == (stp(f"{STPS}:hub-eth0?vlan=100"), stp(f"{STPS}:unl.edu-eth1?vlan=120"))
    circuit = lender.circuit(connection_id)
    assert circuit.state is CircuitState.HELD
    assert circuit.request.requested_by == "urn:ogf:network:hub.example:2026:nsa:downburst (CN=hub)"


async def test_ends_in_the_other_order_are_told_as_they_were_asked_for(lender: Lender) -> None:
    await lender.reserve(criteria=between("unl.edu-eth1", "hub-eth0"))
    (told,) = (await listing(lender)).reservations[0].told
    assert (told.source, told.dest) == (stp(f"{STPS}:unl.edu-eth1?vlan=100"), stp(f"{STPS}:hub-eth0?vlan=120"))


async def test_a_hold_that_nobody_commits_is_told_and_leaves_nothing(lender: Lender) -> None:
    connection_id = await lender.reserve()
    await lender.after(31)
    assert lender.one(connection_id).reservation is ReservationState.TIMEOUT
    assert lender.circuits() == []
    assert lender.told() == ["reserveConfirmed", "reserveTimeout"]
    assert error_id(await lender.ask(Operation.COMMIT, connection_id)) == "00201"
    await lender.ask(Operation.TERMINATE, connection_id)
    assert lender.one(connection_id).lifecycle is LifecycleState.TERMINATED


async def test_an_aborted_hold_leaves_nothing(lender: Lender) -> None:
    connection_id = await lender.reserve()
    await lender.ask(Operation.ABORT, connection_id)
    assert lender.one(connection_id).reservation is ReservationState.START
    assert lender.circuits() == []
    assert lender.told()[-1] == "reserveAbortConfirmed"


@pytest.mark.parametrize("dialect", [Dialect.CAPACITY, Dialect.P2PS])
async def test_a_change_is_held_then_committed_or_aborted(lender: Lender, dialect: Dialect) -> None:
    connection_id = await lender.in_service(mbps=50)
    (told,) = (await listing(lender)).reservations[0].told
    before = between("hub-eth0", "unl.edu-eth1", 20, begin_us=told.begin_us)
    await change(lender, connection_id, before, 2, dialect)
    assert [told.capacity_mbps for told in (await listing(lender)).reservations[0].told] == [50, 20]
    assert lender.circuit(connection_id).rate_out_bps == 50_000_000
    await lender.ask(Operation.COMMIT, connection_id)
    assert lender.circuit(connection_id).rate_out_bps == 20_000_000
    assert (lender.one(connection_id).plane.version, lender.one(connection_id).plane.active) == (2, True)
    await change(lender, connection_id, replace(before, capacity_mbps=30), 3, dialect)
    await lender.ask(Operation.ABORT, connection_id)
    assert lender.circuit(connection_id).rate_out_bps == 20_000_000
    assert [told.version for told in (await listing(lender)).reservations[0].told] == [2]


async def test_a_change_beyond_the_port_or_into_the_past_fails_and_can_be_aborted(lender: Lender) -> None:
    connection_id = await lender.in_service(mbps=50)
    for wanted, expected in (
        (between("hub-eth0", "unl.edu-eth1", 5_000), "00705"),
        (between("hub-eth0", "unl.edu-eth1", 50, end_us=lender.now_us() - 1_000_000), "00102"),
    ):
        await change(lender, connection_id, wanted, 2)
        assert lender.one(connection_id).reservation is ReservationState.FAILED
        last = (await results(lender, connection_id)).results[-1]
        assert last.reply.exception.error_id == expected  # type: ignore[union-attr]
        await lender.ask(Operation.ABORT, connection_id)
        assert lender.one(connection_id).reservation is ReservationState.START
    assert lender.one(connection_id).plane.active
    assert lender.circuit(connection_id).rate_out_bps == 50_000_000


async def test_a_held_change_keeps_its_room_until_it_times_out(lender: Lender) -> None:
    connection_id = await lender.in_service(mbps=400)
    await change(lender, connection_id, between("hub-eth0", "unl.edu-eth1", 800), 2)
    full = await lender.reserve(criteria=between("hub-eth0", "ttu.edu-eth1", 300))
    assert lender.one(full).reservation is ReservationState.FAILED
    await lender.after(31)
    assert lender.told()[-1] == "reserveTimeout"
    again = await lender.reserve(criteria=between("hub-eth0", "ttu.edu-eth1", 300))
    assert lender.one(again).reservation is ReservationState.HELD
    assert lender.circuit(connection_id).rate_out_bps == 400_000_000


async def test_a_held_change_has_its_room_again_after_a_start(lender: Lender) -> None:
    connection_id = await lender.in_service(mbps=400)
    await change(lender, connection_id, between("hub-eth0", "unl.edu-eth1", 800), 2)
    await lender.again()
    await lender.turn()
    full = await lender.reserve(criteria=between("hub-eth0", "ttu.edu-eth1", 300))
    assert lender.one(full).reservation is ReservationState.FAILED
    await lender.ask(Operation.COMMIT, connection_id)
    assert lender.circuit(connection_id).rate_out_bps == 800_000_000


async def test_the_calendars_refusal_names_holder_and_nearest_window(lender: Lender) -> None:
    day_us = 86_400_000_000
    await lender.reserve(criteria=between("hub-eth0", "unl.edu-eth1", 800, end_us=lender.now_us() + day_us))
    full = between("hub-eth0", "ttu.edu-eth1", 300, end_us=lender.now_us() + day_us)
    refused = await lender.reserve(criteria=full)
    one = lender.one(refused)
    assert one.reservation is ReservationState.FAILED
    assert lender.told()[-1] == "reserveFailed"
    (result,) = (await results(lender, refused)).results
    exception = result.reply.exception  # type: ignore[union-attr]
    assert exception.error_id == "00705"
    assert "circuit 1 holds 800 Mb/s out and 800 Mb/s in" in exception.text
    assert "the nearest window with room begins at" in exception.text
    await lender.ask(Operation.TERMINATE, refused)
    assert lender.one(refused).lifecycle is LifecycleState.TERMINATED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source": Stp(f"{STPS}:nowhere", 100, 119)}, ("00701", "there is no STP")),
        ({"source": Stp(f"{STPS}:hub-eth0", 3000, 3001)}, ("00704", "has the VLANs 100-199 and 3000-3001")),
        ({"source": Stp(f"{STPS}:hub-eth0")}, ("00709", "add ?vlan=100-199")),
        ({"capacity_mbps": 5_000}, ("00705", "circuits may reserve 1 Gb/s of port")),
        ({"begin_us": 5_000_000, "end_us": 4_000_000}, ("00102", "not after its begin")),
        ({"end_us": 5_000_000}, ("00102", "not after its begin")),
        ({"dest": Stp(f"{STPS}:hub-eth0", 100, 119)}, ("00102", "both ends are")),
    ],
)
async def test_impossible_requests_are_refused_at_once(
    lender: Lender, changes: dict[str, object], expected: tuple[str, str]
) -> None:
    asked = replace(between("hub-eth0", "unl.edu-eth1"), **changes)  # type: ignore[arg-type]
    answered = await lender.ask(Operation.RESERVE, version=1, criteria=asked)
    fault = fault_of(answered)
    assert fault.exception is not None
    assert fault.exception.error_id == expected[0]
    assert expected[1] in fault.exception.text
    assert "\n" not in fault.exception.text
    assert (lender.live(), lender.circuits()) == ([], [])


async def test_a_tag_that_others_hold_is_an_unavailable_stp(lender: Lender) -> None:
    one_tag = replace(between("hub-eth0", "unl.edu-eth1"), source=Stp(f"{STPS}:hub-eth0", 100, 100))
    await lender.reserve(criteria=one_tag)
    refused = await lender.reserve(criteria=replace(one_tag, dest=Stp(f"{STPS}:ttu.edu-eth1", 120, 139)))
    (result,) = (await results(lender, refused)).results
    assert result.reply.exception.error_id == "00704"  # type: ignore[union-attr]


async def test_operations_in_a_wrong_state_are_refused_and_change_nothing(lender: Lender) -> None:
    connection_id = await lender.reserve()
    for operation in (Operation.PROVISION, Operation.RELEASE):
        assert error_id(await lender.ask(operation, connection_id)) == "00201"
    await lender.ask(Operation.COMMIT, connection_id)
    for operation in (Operation.COMMIT, Operation.ABORT):
        assert error_id(await lender.ask(operation, connection_id)) == "00201"
    for version, expected in ((1, "00102"), (3, "00102"), (2, "")):
        answered = await change(lender, connection_id, between("hub-eth0", "unl.edu-eth1", 20), version)
        assert (error_id(answered) if answered[0] == 500 else "") == expected
    assert lender.one(connection_id).reservation is ReservationState.HELD


async def test_a_connection_belongs_to_the_certificate_that_reserved_it(lender: Lender) -> None:
    """The requester's own name for itself gives no right."""
    connection_id = await lender.in_service()
    for operation in (Operation.TERMINATE, Operation.RELEASE, Operation.RESULTS):
        request = Request(operation, next(lender.ids), connection_id)
        answered = await lender.post(envelope(request, a_provider()), subject="CN=other")
        assert answered is not None
        assert error_id(answered) == "00203"
    request = Request(Operation.SUMMARY, next(lender.ids))
    answered = await lender.post(envelope(request, a_provider()), subject="CN=other")
    assert answered is not None
    assert read(answered[1]).body == Listing(())
    assert lender.one(connection_id).plane.active


async def test_a_correlation_id_counts_once(lender: Lender) -> None:
    asked = between("hub-eth0", "unl.edu-eth1")
    request = envelope(Request(Operation.RESERVE, next(lender.ids), version=1, criteria=asked), a_provider())
    answers = [await lender.post(request) for _ in range(2)]
    await lender.turn()
    assert [status for status, _ in answers] == [200, 500]  # type: ignore[misc]
    assert error_id(answers[1]) == "00101"  # type: ignore[arg-type]
    assert len(lender.circuits()) == 1


async def test_a_request_for_another_provider_is_refused(lender: Lender) -> None:
    wrong = replace(a_provider(), provider_nsa="urn:ogf:network:south:nsa")
    answered = await lender.post(envelope(Request(Operation.SUMMARY, next(lender.ids)), wrong))
    assert answered is not None
    assert error_id(answered) == "00102"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no XML",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b"<a/>",
        b"x" * 1_000_001,
        b"<a>" * 40 + b"</a>" * 40,
    ],
)
async def test_messages_that_are_none_are_faults_and_change_nothing(lender: Lender, body: bytes) -> None:
    answered = await lender.post(body)
    assert answered is not None
    assert error_id(answered) == "00100"
    assert lender.live() == []


async def test_a_path_that_cannot_be_made_is_an_event_and_never_active(lender: Lender) -> None:
    lender.node.silent.add("unl.edu")
    connection_id = await lender.in_service()
    assert not lender.one(connection_id).plane.active
    assert "errorEvent" in lender.told()
    events = etree.fromstring(next(body for _, name, body in lender.posted if name == "errorEvent"))
    assert events.findtext(".//event") in ("activateFailed", "dataplaneError")
    lender.node.silent.clear()
    for _ in range(40):
        await lender.after(5)
    assert lender.one(connection_id).plane.active


async def test_a_circuit_that_is_cancelled_here_is_a_forced_end(lender: Lender) -> None:
    connection_id = await lender.in_service()
    number = lender.one(connection_id).circuit or 0
    await lender.stage.service.cancel(number, by="op")
    await lender.after(2)
    assert lender.one(connection_id).lifecycle is LifecycleState.FAILED
    event = next(body for _, name, body in lender.posted if name == "errorEvent")
    assert b"<event>forcedEnd</event>" in event
    assert b"cancelled by op" in event
    await lender.ask(Operation.TERMINATE, connection_id)
    assert lender.one(connection_id).lifecycle is LifecycleState.TERMINATED


async def test_the_end_of_the_window_is_shown(lender: Lender) -> None:
    asked = between("hub-eth0", "unl.edu-eth1", end_us=lender.now_us() + 100_000_000)
    connection_id = await lender.reserve(criteria=asked)
    for operation in (Operation.COMMIT, Operation.PROVISION):
        await lender.ask(operation, connection_id)
    await lender.after(101)
    await lender.after(1)
    assert lender.one(connection_id).lifecycle is LifecycleState.PASSED_END
    assert lender.circuits() == []
    assert error_id(await lender.ask(Operation.RELEASE, connection_id)) == "00201"


async def test_a_provision_before_the_window_makes_the_path_at_its_begin(lender: Lender) -> None:
    begin_us = lender.now_us() + 100_000_000
    connection_id = await lender.reserve(criteria=between("hub-eth0", "unl.edu-eth1", begin_us=begin_us))
    for operation in (Operation.COMMIT, Operation.PROVISION):
        await lender.ask(operation, connection_id)
    assert lender.circuit(connection_id).state is CircuitState.ADMITTED
    await lender.after(101)
    await lender.after(2)
    assert lender.one(connection_id).plane.active


async def test_connections_that_nobody_terminates_are_dropped_after_a_day(lender: Lender) -> None:
    connection_id = await lender.reserve()
    await lender.after(31)
    await lender.after(25 * 3_600)
    assert lender.one(connection_id).lifecycle is LifecycleState.TERMINATED


async def test_too_many_connections_of_one_certificate_are_refused(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NSI_CONNECTIONS_OF_SUBJECT", replace(limits.NSI_CONNECTIONS_OF_SUBJECT, most=2))
    for _ in range(2):
        await lender.reserve(mbps=1)
    answered = await lender.ask(Operation.RESERVE, version=1, criteria=between("hub-eth0", "unl.edu-eth1", 1))
    assert error_id(answered) == "00600"


async def test_an_unknown_error_at_one_connection_is_counted_and_it_is_tried_again(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(wishes, "granted", _planted)
        connection_id = await lender.reserve()
    assert {fault.handler for fault in FAULTS.all()} == {"circuits.nsi-step"}
    await lender.after(AGAIN_S)
    assert lender.one(connection_id).reservation is ReservationState.HELD
    assert len(lender.circuits()) == 1


async def test_an_unknown_error_at_one_reply_is_counted_and_it_is_sent_again(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(lender.agent.delivery, "_post", _planted)
        await lender.reserve()
    assert {fault.handler for fault in FAULTS.all()} == {"circuits.nsi-reply"}
    await lender.after(LONGEST_PAUSE_S)
    assert "reserveConfirmed" in lender.told()


async def test_what_waits_for_a_requester_is_sent_by_the_next_process(lender: Lender) -> None:
    lender.refusal = "HTTP 503"
    await lender.reserve()
    lender.refusal = ""
    await lender.again()
    await lender.turn()
    await lender.deliver()
    assert lender.told().count("reserveConfirmed") == 2
    assert len(lender.agent.delivery) == 0


async def test_queries_by_callback_are_answered_there(lender: Lender) -> None:
    connection_id = await lender.reserve()
    for question in ("querySummary", "queryRecursive"):
        body = envelope(Request(Operation.SUMMARY, next(lender.ids)), a_provider())
        answered = await lender.post(body.replace(b"querySummarySync", question.encode()))
        assert answered is not None
        assert read(answered[1]).body == Acknowledged()
        await lender.turn()
        address, name, sent = lender.posted[-1]
        assert (address, name) == ("https://hub.example/nsi", f"{question}Confirmed")
        assert etree.fromstring(sent).findtext(".//connectionId") == connection_id


async def test_notifications_can_be_queried(lender: Lender) -> None:
    connection_id = await lender.in_service()
    body = envelope(Request(Operation.RESULTS, next(lender.ids), connection_id), a_provider())
    answered = await lender.post(body.replace(b"queryResultSync", b"queryNotificationSync"))
    assert answered is not None
    found = etree.fromstring(answered[1])
    assert found.findtext(".//{*}dataPlaneStateChange/dataPlaneStatus/active") == "true"
    assert found.find(".//{*}reserveConfirmed") is None


def _planted(*_: object, **__: object) -> None:
    raise KeyError("planted")


async def listing(lender: Lender) -> Listing:
    _, body = await lender.ask(Operation.SUMMARY)
    found = read(body).body
    assert isinstance(found, Listing)
    assert found.unread == ()
    return found


async def results(lender: Lender, connection_id: str) -> Results:
    _, body = await lender.ask(Operation.RESULTS, connection_id)
    found = read(body).body
    assert isinstance(found, Results)
    return found


async def change(
    lender: Lender, connection_id: str, wanted: object, version: int, dialect: Dialect = Dialect.CAPACITY
) -> tuple[int, bytes]:
    answered = await lender.ask(Operation.RESERVE, connection_id, version=version, criteria=wanted, dialect=dialect)
    if answered[0] == 200:
        assert read(answered[1]).body == Acknowledged(connection_id)
    return answered


def fault_of(answered: tuple[int, bytes]) -> Fault:
    status, body = answered
    found = read(body).body
    assert status == 500
    assert isinstance(found, Fault)
    return found


def error_id(answered: tuple[int, bytes]) -> str:
    exception = fault_of(answered).exception
    return exception.error_id if exception else ""
