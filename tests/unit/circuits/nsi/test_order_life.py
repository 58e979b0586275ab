"""Orders from the first request to the last, with both kinds of provider, and with everything that may go wrong."""

from dataclasses import replace

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.callbacks import incoming
from downburst_circuits.nsi.link import sentence
from downburst_circuits.nsi.order import (
    Change,
    Standing,
    cancelled,
    changed,
    in_transit,
    new_order,
    switched,
    verdict,
)
from downburst_circuits.nsi.record import Life
from downburst_circuits.nsi.refusals import Kind, Problem
from downburst_circuits.nsi.transport import Posted
from downburst_circuits.nsi.words import Criteria
from kit.nsi import words
from kit.nsi.provider import Connection
from kit.nsi.scene import Scene, some_criteria

BOTH = pytest.mark.parametrize(("kind", "dialect"), [("supa", Dialect.P2PS), ("opennsa", Dialect.NONE)])


def standing(scene: Scene) -> Standing:
    return verdict(scene.order, scene.now_us()).standing


@BOTH
async def test_a_circuit_is_ordered_and_removed_by_polling_alone(kind: str, dialect: Dialect) -> None:
    scene = Scene(kind, dialect)
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE, seconds=30)
    granted = verdict(scene.order, scene.now_us()).granted
    assert granted is not None
    assert (str(granted.source), granted.capacity_mbps) == (f"{some_criteria().source.urn}?vlan=100", 50)
    assert scene.known() == scene.existing() == {"conn-1"}

    await scene.requester.change(7, cancelled)
    await scene.run(lambda: standing(scene) is Standing.ENDED, seconds=60)
    assert scene.existing() == set()
    writes = [one for one in scene.machine.requests if not one.startswith("query")]
    assert writes == ["reserve", "reserveCommit", "provision", "release", "terminate"]


@BOTH
async def test_a_path_that_takes_seconds_is_seen_soon_after_it_is_there(kind: str, dialect: Dialect) -> None:
    """Found at real providers: the list right after `provision` shows it provisioned and not active."""
    scene = Scene(kind, dialect)
    scene.machine.activation_us = 3_000_000
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE, seconds=10)


@BOTH
async def test_a_circuit_ordered_ahead_is_seen_at_its_begin_and_not_asked_for_all_the_time_before(
    kind: str, dialect: Dialect
) -> None:
    scene = Scene(kind, dialect)
    begin_us = scene.now_us() + 3_600_000_000
    await scene.begin(replace(some_criteria(), begin_us=begin_us))
    await scene.run(lambda: standing(scene) is Standing.ACTIVE, seconds=3_610)
    assert scene.now_us() < begin_us + 5_000_000
    assert len(scene.machine.requests) < 3_600 / 45 + 20


@pytest.mark.parametrize(
    ("kind", "criteria", "problem", "part"),
    [
        ("supa", some_criteria(5_000), Kind.CAPACITY, "no room for 5000 Mb/s"),
        ("supa", some_criteria(port="unknown"), Kind.STP, "check their STPs and VLANs"),
        ("opennsa", some_criteria(port="unknown"), Kind.STP, "00704 STP_UNAVAILABLE: no such port"),
    ],
)
async def test_a_refusal_is_one_sentence_and_leaves_nothing(
    kind: str, criteria: Criteria, problem: Kind, part: str
) -> None:
    scene = Scene(kind, Dialect.NONE)
    await scene.begin(criteria)
    await scene.run(lambda: standing(scene) is Standing.FAILED)
    await scene.run(lambda: not in_transit(scene.order) and not scene.existing(), seconds=10)
    await scene.settle(100)
    assert scene.machine.requests.count("terminate") == 1
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert (found.standing, found.problem.kind) == (Standing.FAILED, problem)
    assert part in found.problem.sentence
    assert scene.existing() == set()


async def test_a_refusal_that_no_list_shows_is_read_from_the_kept_replies() -> None:
    scene = Scene("supa", Dialect.NONE)
    scene.machine.lists_refused = False
    await scene.begin(some_criteria(5_000))
    await scene.run(lambda: standing(scene) is Standing.FAILED, seconds=10)
    found = verdict(scene.order, scene.now_us()).problem
    assert found is not None
    assert (found.kind, scene.machine.requests.count("queryResultSync")) == (Kind.CAPACITY, 1)
    await scene.settle(100)
    assert not in_transit(scene.order)


@BOTH
async def test_an_unreachable_provider_has_refused_nothing(kind: str, dialect: Dialect) -> None:
    """Away behind its proxy (00500), then away altogether; back again, the order goes through."""
    scene = Scene(kind, dialect)
    scene.machine.away = True
    await scene.begin()
    await scene.settle(400)
    found = verdict(scene.order, scene.now_us())
    assert (found.standing, found.problem) == (Standing.ASKING, None)
    assert "neither granted nor refused" in sentence(scene.requester.link)

    scene.machine.away = False
    scene.way.fate = lambda: "lost"
    await scene.settle(400)
    assert verdict(scene.order, scene.now_us()).standing is Standing.ASKING
    assert "can't be reached" in sentence(scene.requester.link)

    scene.way.fate = lambda: "arrives"
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    assert sentence(scene.requester.link) == ""
    assert scene.known() == scene.existing()


@BOTH
async def test_an_order_whose_end_passes_before_the_provider_takes_it_is_asked_for_no_more(
    kind: str, dialect: Dialect
) -> None:
    """OpenNSA answers an end in the past with 00500, so asking again would never end."""
    scene = Scene(kind, dialect)
    scene.machine.away = True
    await scene.begin(some_criteria(end_us=scene.now_us() + 120_000_000))
    await scene.settle(400)
    scene.machine.away = False
    await scene.run(lambda: standing(scene) is Standing.FAILED)
    problem = verdict(scene.order, scene.now_us()).problem
    assert problem is not None
    assert (problem.kind, scene.machine.requests.count("reserve")) == (Kind.TIME, 1)
    assert "before the order's end" in problem.sentence
    assert scene.existing() == set()


@BOTH
async def test_an_order_whose_end_has_passed_is_never_sent(kind: str, dialect: Dialect) -> None:
    """Seen at OpenNSA: such an order stays in its calendar, and later ones on its VLAN fail with 00500."""
    scene = Scene(kind, dialect)
    await scene.begin(some_criteria(end_us=scene.now_us() - 60_000_000))
    await scene.run(lambda: standing(scene) is Standing.FAILED, seconds=5)
    problem = verdict(scene.order, scene.now_us()).problem
    assert problem is not None
    assert problem.kind is Kind.TIME
    assert set(scene.machine.requests) == {"querySummarySync"}


async def test_an_order_that_is_in_checking_for_ever_ends_with_its_own_end() -> None:
    """Seen at OpenNSA: it lists an order that it can't decide as ReserveChecking, without an end."""
    scene = Scene("opennsa", Dialect.NONE)
    end_us = scene.now_us() + 120_000_000
    scene.machine.decides = False
    await scene.begin(some_criteria(end_us=end_us))
    await scene.run(lambda: scene.now_us() >= end_us - 5_000_000)
    assert standing(scene) is Standing.ASKING
    await scene.run(lambda: standing(scene) is Standing.FAILED, seconds=30)
    problem = verdict(scene.order, scene.now_us()).problem
    assert problem is not None
    assert (problem.kind, scene.machine.requests.count("reserve")) == (Kind.TIME, 1)
    await scene.run(lambda: not scene.existing())
    assert "reserveCommit" not in scene.machine.requests


@BOTH
async def test_the_answer_to_a_reserve_is_lost(kind: str, dialect: Dialect) -> None:
    """The list shows the reservation by our global id: it is adopted, and nothing is reserved twice."""
    scene = Scene(kind, dialect)
    scene.way.fate = iter(["answer lost", *["arrives"] * 10_000]).__next__
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    assert scene.machine.requests.count("reserve") == 1
    assert scene.known() == scene.existing() == {"conn-1"}


@BOTH
async def test_a_reserve_arrives_after_it_was_repeated(kind: str, dialect: Dialect) -> None:
    """The list then shows two reservations with our global id; the one that does not serve is removed."""
    scene = Scene(kind, dialect)
    scene.way.fate = iter(["late", *["arrives"] * 10_000]).__next__
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    scene.way.deliver_late()
    assert len(scene.existing()) == 2
    await scene.run(lambda: scene.known() == scene.existing())
    assert standing(scene) is Standing.ACTIVE
    assert scene.machine.requests.count("reserve") == 2


async def test_a_reserve_arrives_after_the_order_was_cancelled() -> None:
    scene = Scene()
    scene.way.fate = iter(["late", *["arrives"] * 10_000]).__next__
    await scene.begin()
    await scene.settle(5)
    await scene.requester.change(7, cancelled)
    await scene.run(lambda: standing(scene) is Standing.ENDED)
    scene.way.deliver_late()
    await scene.run(lambda: scene.existing() == set())


@BOTH
async def test_a_confirmation_that_differs_is_never_committed(kind: str, dialect: Dialect) -> None:
    scene = Scene(kind, dialect)
    scene.machine.grants = lambda granted: replace(granted, capacity=granted.capacity * 2)
    await scene.begin()
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert found.problem.kind is Kind.DIFFERENT
    assert "capacity 100 Mb/s instead of 50" in found.problem.sentence
    assert "reserveCommit" not in scene.machine.requests
    assert scene.existing() == set()


@BOTH
async def test_a_hold_expires_before_the_commit(kind: str, dialect: Dialect) -> None:
    """The provider is away between hold and commit. At OpenNSA the state is then that of a committed one."""
    scene = Scene(kind, dialect)
    await scene.begin()
    await scene.run(lambda: "reserve" in scene.machine.requests)
    scene.way.fate = lambda: "lost"
    await scene.settle(150)
    scene.way.fate = lambda: "arrives"
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert (found.standing, found.problem.kind) == (Standing.FAILED, Kind.HOLD_EXPIRED)
    assert scene.existing() == set()


async def test_a_commit_is_lost_and_the_hold_expires() -> None:
    """OpenNSA shows the same state as after a commit: only the refused provision tells."""
    scene = Scene("opennsa", Dialect.NONE)
    scene.way.fate = lambda: "lost" if "reserve" in scene.machine.requests and scene.committing() else "arrives"
    await scene.begin()
    await scene.run(scene.committing)
    await scene.settle(200)
    scene.way.fate = lambda: "arrives"
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert found.problem.kind is Kind.HOLD_EXPIRED
    assert scene.existing() == set()


async def test_the_provider_ends_a_circuit_before_its_time() -> None:
    scene = await in_service("supa", Dialect.P2PS)
    scene.machine.connections["conn-1"].lifecycle = "Failed"
    await scene.run(lambda: standing(scene) is Standing.FAILED)
    await scene.run(lambda: scene.existing() == set())
    problem = verdict(scene.order, scene.now_us()).problem
    assert problem is not None
    assert problem.kind is Kind.ENDED


async def test_the_provider_forgets_a_circuit() -> None:
    """One list without it proves nothing."""
    scene = await in_service("supa", Dialect.P2PS)
    forgotten = scene.machine.connections.pop("conn-1")
    await scene.settle(50)
    assert standing(scene) is Standing.ACTIVE
    scene.machine.connections["conn-1"] = forgotten
    await scene.settle(100)
    assert standing(scene) is Standing.ACTIVE
    del scene.machine.connections["conn-1"]
    await scene.run(lambda: standing(scene) is Standing.FAILED)


async def test_the_window_passes() -> None:
    scene = Scene()
    await scene.begin(some_criteria(end_us=scene.now_us() + 120_000_000))
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    await scene.run(lambda: standing(scene) is Standing.ENDED)
    assert verdict(scene.order, scene.now_us()).problem is None
    assert scene.existing() == set()


async def test_a_circuit_that_is_never_active_is_late() -> None:
    scene = Scene()
    await scene.begin()
    await scene.run(lambda: scene.order.serving.life is Life.COMMITTED)
    scene.machine.connections["conn-1"].provision = "Provisioning"
    await scene.settle(60)
    assert standing(scene) is Standing.ORDERED
    await scene.settle(90)
    event = (
        f"<event>activateFailed</event><serviceException>{words.exception('00800', 'no light')}</serviceException>"
    )
    await scene.requester.heard(incoming(words.notice("errorEvent", "conn-2", event), scene.provider)[0])
    assert scene.order.event == ""
    await scene.requester.heard(incoming(words.notice("errorEvent", "conn-1", event), scene.provider)[0])
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert (found.standing, found.problem.kind) == (Standing.LATE, Kind.LATE)
    assert found.problem.sentence.endswith(
        "does not report it active; ask its operator; it reported: activateFailed: 00800 no light"
    )
    assert scene.machine.requests.count("provision") == 1


async def test_a_change_by_a_new_version() -> None:
    scene = await in_service("supa", Dialect.P2PS)
    await scene.requester.change(7, scene.changed_to(20))
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.granted is not None
    assert (found.standing, found.granted.capacity_mbps, scene.order.serving.version) == (Standing.ACTIVE, 20, 2)
    assert scene.granted_mbps() == [20]


async def test_a_change_that_is_confirmed_with_no_capacity_is_aborted() -> None:
    """SuPA behind PolyNSI answers so if it is spoken to in the standard's dialect."""
    scene = await in_service("supa", Dialect.CAPACITY)
    await scene.requester.change(7, scene.changed_to(20))
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.granted is not None
    assert found.problem is not None
    assert (found.standing, found.granted.capacity_mbps) == (Standing.ACTIVE, 50)
    assert "capacity 0 Mb/s instead of 20" in found.problem.sentence
    assert scene.machine.requests.count("reserveAbort") == 1
    assert scene.granted_mbps() == [50]


async def test_a_change_by_a_second_reservation() -> None:
    """It is made, probed and switched to before the first one is removed."""
    scene = await in_service("opennsa", Dialect.NONE)
    await scene.requester.change(7, scene.changed_to(20))
    await scene.run(lambda: standing(scene) is Standing.REPLACED)
    assert scene.granted_mbps() == [50, 20]
    await scene.requester.change(7, switched)
    await scene.at_rest()
    assert standing(scene) is Standing.ACTIVE
    assert scene.granted_mbps() == [20]
    assert scene.known() == scene.existing() == {"conn-2"}


async def test_a_refused_second_reservation_leaves_the_first() -> None:
    scene = await in_service("supa", Dialect.NONE)
    await scene.requester.change(7, scene.changed_to(5_000))
    await scene.at_rest()
    found = verdict(scene.order, scene.now_us())
    assert found.problem is not None
    assert (found.standing, found.problem.kind) == (Standing.ACTIVE, Kind.CAPACITY)
    assert scene.known() == scene.existing() == {"conn-1"}


async def test_a_change_that_can_not_be_made_now_is_refused_in_one_sentence() -> None:
    scene = Scene()
    await scene.begin()
    with pytest.raises(BadInput, match="not in service"):
        changed(scene.order, Change(20, None), scene.provider, scene.now_us(), scene.id)
    with pytest.raises(BadInput, match="no second reservation"):
        switched(scene.order)
    with pytest.raises(BadInput, match="0 Mb/s can't be ordered"):
        new_order(1, scene.provider, some_criteria(0), "", scene.id)


async def test_an_order_that_waited_past_its_begin_begins_immediately() -> None:
    """The provider would refuse a begin in the past."""
    scene = Scene("opennsa", Dialect.NONE)
    begin_us = scene.now_us() + 10_000_000
    await scene.begin(replace(some_criteria(), begin_us=begin_us))
    scene.clock.advance(20)
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    granted = verdict(scene.order, scene.now_us()).granted
    assert granted is not None
    assert granted.begin_us is not None
    assert granted.begin_us > begin_us


async def test_a_refusal_of_a_cancelled_order_is_no_problem() -> None:
    scene = Scene("opennsa", Dialect.NONE)
    exchange = scene.way.post

    async def then_cancelled(action: str, body: bytes) -> Posted | Problem:
        answer = await exchange(action, body)
        await scene.requester.change(7, cancelled)
        return answer

    scene.way.post = then_cancelled  # type: ignore[method-assign]
    await scene.begin(some_criteria(port="unknown"))
    await scene.run(lambda: standing(scene) is Standing.ENDED)
    assert verdict(scene.order, scene.now_us()).problem is None


async def test_an_entry_that_can_not_be_read_proves_nothing() -> None:
    """It may be the own one: nothing is taken for lost and nothing is ordered again."""
    scene = await in_service("supa", Dialect.P2PS)
    scene.machine.connections["conn-1"].lifecycle = "Dreaming"
    await scene.settle(400)
    assert standing(scene) is Standing.ACTIVE
    assert "lifecycleState is 'Dreaming'" in scene.requester.unread[0]


async def test_an_unreadable_entry_of_another_requester_hides_no_loss() -> None:
    scene = await in_service("supa", Dialect.P2PS)
    scene.machine.connections["conn-9"] = Connection("conn-9", "", "urn:ogf:network:other:nsa", lifecycle="Dreaming")
    del scene.machine.connections["conn-1"]
    await scene.run(lambda: standing(scene) is Standing.FAILED)


def test_a_description_is_text_that_xml_can_hold() -> None:
    order = new_order(1, Scene().provider, some_criteria(), "a\x00b\ud800c\nd" + "e" * 500, Scene().id)
    assert order.description == "a b c d" + "e" * 193


async def in_service(kind: str, dialect: Dialect) -> Scene:
    scene = Scene(kind, dialect)
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    return scene
