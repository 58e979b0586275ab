"""Requests as XML, and recorded conversations of both kinds of provider as typed words."""

from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

from downburst.domain.ordering.providers import Dialect
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.answers import answer
from downburst_circuits.nsi.refusals import Kind, Problem, is_state, is_unknown
from downburst_circuits.nsi.soap.envelopes import moment
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import NO_CALLBACKS, envelope, soap_action
from downburst_circuits.nsi.stp import Stp, stp
from downburst_circuits.nsi.transport import Posted
from downburst_circuits.nsi.words import (
    Acknowledged,
    DataPlaneChanged,
    DeliveryTimedOut,
    ErrorEvent,
    ErrorReply,
    Failed,
    Fault,
    LifecycleState,
    Listing,
    Operation,
    ProvisionState,
    Request,
    ReservationState,
    Reserved,
    Results,
)
from kit.nsi import words
from kit.nsi.scene import a_provider, some_criteria

GRANTED = words.Granted(
    1, 50, "urn:ogf:network:a?vlan=102", "urn:ogf:network:b?vlan=123", "2026-01-01T00:00:00Z", None
)


def written(request: Request, dialect: Dialect = Dialect.P2PS) -> Any:
    return etree.fromstring(envelope(request, a_provider(dialect)))


def names(element: Any) -> list[str]:
    return [etree.QName(child).localname for child in element]


def test_a_record_without_an_address_for_callbacks_sends_one_where_nothing_listens() -> None:
    """OpenNSA refuses a request without `replyTo`, its list too."""
    request = Request(Operation.SUMMARY, "urn:uuid:1")
    head = etree.fromstring(envelope(request, replace(a_provider(), reply_to=None)))[0][0]
    assert head.findtext("replyTo") == NO_CALLBACKS
    head = etree.fromstring(envelope(request, a_provider()))[0][0]
    assert head.findtext("replyTo") == a_provider().reply_to


def test_a_reservation_has_the_elements_of_the_standard_in_their_order() -> None:
    begin_us = 1_767_225_600_000_000
    criteria = some_criteria(end_us=begin_us + 500_000)
    root = written(
        Request(
            Operation.RESERVE, "urn:uuid:1", global_id="urn:uuid:2", description="a < b", version=1, criteria=criteria
        )
    )
    head, request = root[0][0], root[1][0]
    assert names(head) == ["protocolVersion", "correlationId", "requesterNSA", "providerNSA", "replyTo"]
    assert etree.QName(request).namespace == "http://schemas.ogf.org/nsi/2013/12/connection/types"
    assert names(request) == ["globalReservationId", "description", "criteria"]
    assert request.findtext("description") == "a < b"
    found = request.find("criteria")
    assert found.get("version") == "1"
    assert names(found) == ["schedule", "serviceType", "p2ps"]
    assert names(found.find("schedule")) == ["endTime"], "without a begin it begins immediately"
    service = found[2]
    assert etree.QName(service).namespace == "http://schemas.ogf.org/nsi/2013/12/services/point2point"
    assert names(service) == ["capacity", "directionality", "symmetricPath", "sourceSTP", "destSTP"]
    assert all(etree.QName(child).namespace is None for child in service)
    assert service.findtext("sourceSTP") == "urn:ogf:network:north.example:2026:topology:hub?vlan=100-119"


def test_a_change_speaks_the_dialect_of_the_provider() -> None:
    request = Request(Operation.RESERVE, "urn:uuid:1", connection_id="c-1", version=2, criteria=some_criteria(20))
    standard, supa = (
        written(request, dialect)[1][0].find("criteria") for dialect in (Dialect.CAPACITY, Dialect.P2PS)
    )
    assert [(etree.QName(one).localname, one.text) for one in standard[1:]] == [("capacity", "20")]
    assert names(supa[1]) == ["capacity"]
    assert (supa.get("version"), supa.find("serviceType")) == ("2", None)
    with pytest.raises(ValueError, match="takes no change"):
        written(request, Dialect.NONE)


@pytest.mark.parametrize("operation", [one for one in Operation if one is not Operation.RESERVE])
def test_other_requests_name_their_connection(operation: Operation) -> None:
    root = written(Request(operation, "urn:uuid:1", connection_id="c-1"))
    assert etree.QName(root[1][0]).localname == operation
    assert root[1][0].findtext("connectionId") == "c-1"
    assert soap_action(operation) == f'"http://schemas.ogf.org/nsi/2013/12/connection/service/{operation}"'


def test_moments_are_written_in_utc() -> None:
    assert moment(1_767_225_600_000_000) == "2026-01-01T00:00:00Z"
    assert moment(1_767_225_600_500_000) == "2026-01-01T00:00:00.500000Z"


def test_the_answer_to_a_reserve_and_its_confirmation() -> None:
    assert read(words.reserve_response("c-1")).body == Acknowledged("c-1")
    message = read(words.envelope(words.reserve_confirmed("c-1", GRANTED)))
    assert message.header is not None
    assert message.header.correlation_id == words.CORRELATION
    assert isinstance(message.body, Reserved)
    told = message.body.told
    assert (told.version, told.capacity_mbps, told.end_us, told.both_ways) == (1, 50, None, True)
    assert (told.source, told.begin_us) == (Stp("urn:ogf:network:a", 102, 102), 1_767_225_600_000_000)


def test_supa_lists_no_criteria_before_the_commit_and_tells_them_as_a_result() -> None:
    held = words.reservation("c-1", "urn:uuid:2", "", words.states("ReserveHeld", provision=None))
    listing = read(words.summary(held)).body
    assert isinstance(listing, Listing)
    (entry,) = listing.reservations
    assert (entry.told, entry.states.provision) == ((), None)
    assert entry.states.reservation is ReservationState.HELD

    later = "<somethingNew><connectionId>c-1</connectionId></somethingNew>"
    found = read(
        words.results(
            ("urn:uuid:9", words.reserve_confirmed("c-1", GRANTED, "reserveConfirmed")),
            ("urn:uuid:8", words.failed("reserve", "c-1", "00705", "CAPACITY_UNAVAILABLE", "")),
            ("urn:uuid:7", later),
        )
    ).body
    assert isinstance(found, Results)
    assert [result.correlation_id for result in found.results] == ["urn:uuid:9", "urn:uuid:8"]
    assert isinstance(found.results[0].reply, Reserved)
    failed = found.results[1].reply
    assert isinstance(failed, Failed)
    assert (failed.operation, failed.exception.error_id) == (Operation.RESERVE, "00705")


def test_opennsa_lists_version_0_and_the_children_of_an_aggregate_are_passed_over() -> None:
    children = (
        "<children><child order='0'><connectionId>x</connectionId><providerNSA>urn:n</providerNSA>"
        "<serviceType>other</serviceType><p:p2ps><capacity>1</capacity></p:p2ps></child></children>"
    )
    told = words.criteria(
        words.Granted(0, 50, GRANTED.source, GRANTED.dest, None, "2026-01-02T00:00:00"), children=children
    )
    state = words.states("ReserveStart", "Provisioned", active=True)
    listing = read(words.summary(words.reservation("c-1", None, told, state))).body
    assert isinstance(listing, Listing)
    (entry,) = listing.reservations
    assert (entry.told[0].version, entry.told[0].capacity_mbps, entry.told[0].end_us) == (
        0,
        50,
        1_767_312_000_000_000,
    )
    assert (entry.states.active, entry.states.provision) == (True, ProvisionState.PROVISIONED)
    assert entry.states.lifecycle is LifecycleState.CREATED


@pytest.mark.parametrize("spelling", ["ReserveCommitting", "ReserveComitting"])
def test_a_commit_under_way_is_read_as_the_standard_and_as_opennsa_spells_it(spelling: str) -> None:
    listing = read(words.summary(words.reservation("c-1", None, "", words.states(spelling)))).body
    assert isinstance(listing, Listing)
    assert [one.states.reservation for one in listing.reservations] == [ReservationState.COMMITTING]


def test_a_malformed_entry_of_the_list_hides_no_other() -> None:
    good = words.reservation("c-1", None, "", words.states())
    bad = words.reservation("c-2", None, "", words.states("Dreaming"))
    listing = read(words.summary(bad, good)).body
    assert isinstance(listing, Listing)
    assert [one.connection_id for one in listing.reservations] == ["c-1"]
    (unread,) = listing.unread
    assert unread.requester_nsa == words.REQUESTER_NSA
    assert "reservation/connectionStates/reservationState is 'Dreaming', none of ReserveStart" in unread.sentence


def test_notices() -> None:
    changed = "<dataPlaneStatus><active>true</active><version>2</version></dataPlaneStatus>"
    event = f"<event>forcedEnd</event><serviceException>{words.exception('00800', 'port is down')}</serviceException>"
    plane = read(words.notice("dataPlaneStateChange", "c-1", changed)).body
    assert plane == DataPlaneChanged("c-1", active=True, version=2)
    found = read(words.notice("errorEvent", "c-1", event)).body
    assert isinstance(found, ErrorEvent)
    assert (found.event, found.exception and found.exception.text) == ("forcedEnd", "port is down")
    late = read(words.notice("messageDeliveryTimeout", "c-1", "<correlationId>urn:uuid:5</correlationId>")).body
    assert late == DeliveryTimedOut("c-1", "urn:uuid:5")
    error = words.envelope(
        f"<c:error><serviceException>{words.exception('00201', 'no')}</serviceException></c:error>"
    )
    assert isinstance(read(error).body, ErrorReply)


def test_an_internal_error_is_unknown_and_a_wrong_state_is_to_be_looked_up() -> None:
    away, state, refused = (read(words.fault(error_id, "text")).body for error_id in ("00500", "00201", "00704"))
    assert isinstance(away, Fault)
    assert isinstance(state, Fault)
    assert isinstance(refused, Fault)
    assert [is_unknown(one) for one in (away, state, refused)] == [True, False, False]
    assert [is_state(one) for one in (away, state, refused)] == [False, True, False]
    assert refused.exception is not None
    assert refused.exception.connection_id is None, "PolyNSI's element is empty"
    bare = read(
        words.envelope("<s:Fault><faultcode>s:Client</faultcode><faultstring>bad</faultstring></s:Fault>")
    ).body
    assert isinstance(bare, Fault)
    assert is_unknown(bare)


@pytest.mark.parametrize(
    ("status", "body", "kind", "part"),
    [
        (500, words.html(), Kind.UNKNOWN, "answered with HTTP 500"),
        (502, b"", Kind.UNKNOWN, "answered with HTTP 502"),
        (403, words.html(), Kind.CERTIFICATE, "does not accept the hub"),
        (200, words.summary(), Kind.UNKNOWN, "another operation's answer"),
        (200, words.envelope(words.confirmed("provision", "c-1")), Kind.UNKNOWN, "another operation's answer"),
    ],
)
def test_answers_that_say_nothing_of_the_request(status: int, body: bytes, kind: Kind, part: str) -> None:
    found = answer(Posted(status, body), Operation.PROVISION, "north")
    assert isinstance(found, Problem)
    assert found.kind is kind
    assert part in found.sentence


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hub",
        *(
            f"urn:ogf:network:{rest}"
            for rest in ("a b", "a?vlan=0", "a?vlan=9-5", "a?vlan=5000", "a?vlan=1-", "a" * 500)
        ),
    ],
)
def test_other_texts_are_no_stp(text: str) -> None:
    with pytest.raises(BadInput, match=r"^'.*not an STP|^STP urn.* has the VLANs"):
        stp(text)


def test_an_stp_grants_one_of_the_asked_vlans() -> None:
    asked = stp("urn:ogf:network:a?vlan=100-119")
    assert [str(asked), stp(str(asked))] == ["urn:ogf:network:a?vlan=100-119", asked]
    for good in ("a?vlan=100", "a?vlan=119"):
        assert stp(f"urn:ogf:network:{good}").grants(asked), good
    for bad in ("a?vlan=120", "a?vlan=100-119", "a", "b?vlan=100"):
        assert not stp(f"urn:ogf:network:{bad}").grants(asked), bad
    assert stp("urn:ogf:network:a").grants(stp("urn:ogf:network:a"))
    assert not stp("urn:ogf:network:a?vlan=5").grants(stp("urn:ogf:network:a"))
