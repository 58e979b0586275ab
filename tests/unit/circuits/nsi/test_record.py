"""Stored orders, provider records, comparisons and sentences."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.ordering.providers import Certificate, Provider
from downburst.foundation.clock import FakeClock, from_us
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.comparing import differences, granted
from downburst_circuits.nsi.link import LONGEST_PAUSE_S, Link, missed, sentence
from downburst_circuits.nsi.order import Standing, cancelled, new_order, verdict
from downburst_circuits.nsi.provider import check_provider
from downburst_circuits.nsi.record import Order, as_json, from_json
from downburst_circuits.nsi.refusals import Kind, Problem, refusal
from downburst_circuits.nsi.stp import stp
from downburst_circuits.nsi.words import Criteria, ServiceException, Told
from kit.nsi import words
from kit.nsi.scene import Scene, a_provider, numbered_ids, some_criteria

NOW_US = 1_767_225_600_000_000
SECOND_US = 1_000_000


async def test_every_record_of_a_life_is_stored_and_read_exactly() -> None:
    scene = Scene()
    seen: list[Order] = []
    save = scene.disk.save

    async def kept(order: Order) -> None:
        seen.append(order)
        await save(order)

    scene.disk.save = kept  # type: ignore[method-assign]
    await scene.begin()
    await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.ACTIVE)
    await scene.requester.change(7, scene.changed_to(5_000))
    await scene.at_rest()
    await scene.requester.change(7, cancelled)
    await scene.at_rest()
    assert len(seen) > 10
    for order in seen:
        assert from_json(json.loads(json.dumps(as_json(order)))) == order


def test_a_record_of_another_format_or_a_damaged_one_is_refused() -> None:
    ids = numbered_ids()
    stored = as_json(new_order(7, a_provider(), some_criteria(), "d", lambda: next(ids)))
    with pytest.raises(BadInput, match="stored in format '2', this version reads 1"):
        from_json({**stored, "format": 2})
    with pytest.raises(BadInput, match=r"damaged: serving\.global_id: Field required"):
        from_json({**stored, "order": {**stored["order"], "serving": {}}})
    with pytest.raises(BadInput, match="damaged"):
        from_json({"format": 1})


def test_an_order_that_was_never_sent_ends_immediately() -> None:
    ids = numbered_ids()
    order = cancelled(new_order(7, a_provider(), some_criteria(), "d", lambda: next(ids)))
    assert verdict(order, NOW_US).standing is Standing.ENDED


ASKED = Criteria(
    50, stp("urn:ogf:network:a?vlan=100-119"), stp("urn:ogf:network:b?vlan=120-139"), NOW_US, NOW_US + 60 * SECOND_US
)
TOLD = Told(
    version=1,
    capacity_mbps=50,
    source=stp("urn:ogf:network:a?vlan=100"),
    dest=stp("urn:ogf:network:b?vlan=120"),
    begin_us=NOW_US,
    end_us=NOW_US + 60 * SECOND_US,
    service_type=words.SERVICE_TYPE,
)


def compared(asked: Criteria, told: Told) -> tuple[str, ...]:
    return differences(asked, told, service_type=words.SERVICE_TYPE, asked_at_us=NOW_US)


def test_an_equal_confirmation_has_no_differences() -> None:
    assert compared(ASKED, TOLD) == ()
    assert compared(ASKED, replace(TOLD, service_type=None, begin_us=NOW_US + 999_999)) == ()
    now = replace(ASKED, begin_us=None, end_us=None)
    assert compared(now, replace(TOLD, begin_us=None, end_us=None)) == ()
    assert compared(now, replace(TOLD, begin_us=NOW_US + 30 * SECOND_US, end_us=253_402_300_799 * SECOND_US)) == ()
    assert compared(now, replace(TOLD, begin_us=None, end_us=0)) == (), "SuPA's empty end, as PolyNSI writes it"
    assert granted(now, TOLD).begin_us == NOW_US


@pytest.mark.parametrize(
    ("told", "phrase"),
    [
        (replace(TOLD, capacity_mbps=0), "capacity 0 Mb/s instead of 50"),
        (replace(TOLD, capacity_mbps=None), "capacity none Mb/s instead of 50"),
        (replace(TOLD, source=None), "source none instead of urn:ogf:network:a"),
        (replace(TOLD, source=TOLD.dest, dest=TOLD.source), "source urn:ogf:network:b"),
        (replace(TOLD, dest=stp("urn:ogf:network:b?vlan=140")), "destination urn:ogf:network:b?vlan=140"),
        (replace(TOLD, both_ways=False), "one direction instead of both"),
        (replace(TOLD, service_type="other"), "service type other"),
        (
            replace(TOLD, begin_us=NOW_US + 2 * SECOND_US),
            "begin 2026-01-01 00:00:02 UTC instead of 2026-01-01 00:00:00",
        ),
        (replace(TOLD, begin_us=None), "begin none"),
        (replace(TOLD, end_us=None), "end none instead of 2026-01-01 00:01:00 UTC"),
    ],
)
def test_each_difference_is_named(told: Told, phrase: str) -> None:
    found = compared(ASKED, told)
    assert any(phrase in one for one in found), found


def test_an_end_that_was_not_asked_for_and_a_late_begin_are_differences() -> None:
    now = replace(ASKED, begin_us=None, end_us=None)
    assert len(compared(now, TOLD)) == 1
    assert len(compared(now, replace(TOLD, begin_us=NOW_US + 600 * SECOND_US, end_us=None))) == 1


@pytest.mark.parametrize(
    ("error_id", "text", "kind", "part"),
    [
        ("00705", "x", Kind.CAPACITY, "no room for 50 Mb/s; ask for less"),
        ("00602", "x", Kind.CAPACITY, "no room for 50 Mb/s; ask for less"),
        ("00701", "x", Kind.STP, "check their STPs and VLANs"),
        ("00709", "x", Kind.STP, "check their STPs and VLANs"),
        ("00400", "x", Kind.STP, "check their STPs and VLANs"),
        ("00102", "endTime is before startTime", Kind.TIME, "give a window that lies ahead"),
        ("00100", "unknown parameter", Kind.OTHER, "ask its operator"),
        ("00302", "x", Kind.CERTIFICATE, "allow the hub's certificate"),
        ("00201", "x", Kind.STATE, "in its present state"),
        ("00501", "x", Kind.UNKNOWN, "failed to make the reservation"),
    ],
)
def test_refusals_by_kind(error_id: str, text: str, kind: Kind, part: str) -> None:
    found = refusal("north", ServiceException(error_id, text), ASKED)
    assert found.kind is kind
    assert ("refuses" in found.sentence) == (kind is not Kind.UNKNOWN)
    assert part in found.sentence
    assert found.sentence.endswith(f"it answered: {error_id} {text}")


def test_pauses_grow_and_differ_between_hubs() -> None:
    problem = Problem(Kind.UNREACHABLE, "provider north can't be reached")
    link, pauses, clock = Link(), [], FakeClock(from_us(NOW_US))
    for _ in range(20):
        link = missed(link, problem, clock, share=1.0)
        pauses.append(link.next_s - clock.monotonic_s())
        clock.advance(1)
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert pauses[-1] == LONGEST_PAUSE_S
    assert (link.since_us, link.failures) == (NOW_US, 20)
    assert missed(Link(), problem, FakeClock(), share=0.0).next_s == 1.0
    assert "since 2026-01-01 00:00:00 UTC" in sentence(link)
    assert "refused until it answers" in sentence(link)


def test_a_provider_record_is_checked_in_one_sentence(tmp_path: Path) -> None:
    pem = tmp_path / "a.pem"
    pem.write_text("x")
    good = Provider(
        "north",
        "https://nsi.example/cs",
        words.PROVIDER_NSA,
        words.REQUESTER_NSA,
        certificate=Certificate(pem, pem, pem),
    )
    check_provider(good)
    check_provider(a_provider())
    for bad, part in (
        (replace(good, url="ftp://nsi.example/cs"), "is not https://HOST/PATH"),
        (replace(good, url="https://user:word@nsi.example/"), "is not https://HOST/PATH"),
        (replace(good, url="https://nsi.example:port/"), "can't be read"),
        (replace(good, url="http://nsi.example/cs"), "without TLS"),
        (replace(good, certificate=None), "no certificate of ours"),
        (replace(good, certificate=Certificate(pem, tmp_path / "none", pem)), "certificate's key"),
        (replace(good, provider_nsa="nsa:north"), "the provider's NSA 'nsa:north'"),
        (replace(good, requester_nsa="urn:ogf:network:" + "a" * 300), "the requester's NSA"),
        (replace(good, reply_to="two words"), "the replyTo 'two words'"),
    ):
        with pytest.raises(BadInput) as refused:
            check_provider(bad)
        assert part in refused.value.sentence
