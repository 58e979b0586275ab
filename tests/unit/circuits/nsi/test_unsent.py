"""Requests that never left the hub, as nothing listens at the provider's address; and paces while clocks are set."""

from datetime import datetime, timedelta
from itertools import chain, repeat

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst.foundation.clock import FakeClock
from downburst_circuits.nsi.link import sentence
from downburst_circuits.nsi.order import Standing, cancelled, verdict, withdrawn
from downburst_circuits.nsi.record import Life
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.transport import Posted
from kit.nsi.scene import Scene

BOTH = pytest.mark.parametrize(("kind", "dialect"), [("supa", Dialect.P2PS), ("opennsa", Dialect.NONE)])


def standing(scene: Scene) -> Standing:
    return verdict(scene.order, scene.now_us()).standing


def fates(scene: Scene, *first: str) -> None:
    """What happens to the next requests; all later ones arrive."""
    scene.way.fate = chain(first, repeat("arrives")).__next__


@BOTH
@pytest.mark.parametrize("refusals", [1, 2, 3])
async def test_a_refused_connection_costs_the_pauses_of_the_link_alone(
    kind: str, dialect: Dialect, refusals: int
) -> None:
    """A request whose outcome is unknown waits a minute for the list; this one had no outcome."""
    scene = Scene(kind, dialect)
    fates(scene, *["refused"] * refusals)
    await scene.begin()
    await scene.requester.turn()
    assert standing(scene) is Standing.ASKING
    assert "neither granted nor refused" in sentence(scene.requester.link)
    await scene.run(lambda: standing(scene) is Standing.ACTIVE, seconds=2 * 2**refusals + 10)
    assert scene.machine.requests.count("reserve") == 1
    assert scene.known() == scene.existing() == {"conn-1"}


@BOTH
async def test_every_request_may_meet_a_refused_connection(kind: str, dialect: Dialect) -> None:
    scene = Scene(kind, dialect)
    post, met = scene.way.post, set[str]()

    async def refused_once(action: str, body: bytes) -> Posted | Problem:
        if "query" in action or action in met:
            return await post(action, body)
        met.add(action)
        return Unsent(Kind.UNREACHABLE, "provider north can't be reached (connection refused)")

    scene.way.post = refused_once  # type: ignore[method-assign]
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE, seconds=120)
    await scene.requester.change(7, cancelled)
    await scene.run(lambda: standing(scene) is Standing.ENDED, seconds=120)
    writes = [one for one in scene.machine.requests if not one.startswith("query")]
    assert writes == ["reserve", "reserveCommit", "provision", "release", "terminate"]


async def test_an_order_that_was_never_sent_is_cancelled_without_a_word_to_the_provider() -> None:
    scene = Scene()
    fates(scene, "refused")
    await scene.begin()
    await scene.requester.turn()
    await scene.requester.change(7, cancelled)
    assert standing(scene) is Standing.ENDED
    await scene.settle(100)
    assert scene.machine.connections == {}


async def test_an_order_whose_first_request_may_have_arrived_is_still_looked_for() -> None:
    """The connection for the second attempt was refused; the first one comes late, and is removed."""
    scene = Scene()
    fates(scene, "late")
    await scene.begin()
    await scene.run(lambda: len(scene.way.delayed) == 1)
    scene.way.fate = lambda: "refused"
    await scene.settle(200)
    await scene.requester.change(7, cancelled)
    assert standing(scene) is Standing.ENDING
    scene.way.deliver_late()
    assert scene.existing() == {"conn-1"}
    scene.way.fate = lambda: "arrives"
    await scene.run(lambda: not scene.existing())
    await scene.run(lambda: standing(scene) is Standing.ENDED)


async def test_a_change_that_was_not_sent_can_be_withdrawn() -> None:
    scene = Scene()
    await scene.begin()
    await scene.run(lambda: standing(scene) is Standing.ACTIVE)
    fates(scene, "refused")
    await scene.requester.change(7, scene.changed_to(20))
    await scene.requester.turn()
    await scene.requester.change(7, withdrawn)
    assert scene.order.serving.ask is None
    await scene.settle(100)
    assert (standing(scene), scene.granted_mbps()) == (Standing.ACTIVE, [50])


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(hours=1)])
async def test_a_clock_that_is_set_does_not_pace_the_requester(step: timedelta) -> None:
    scene = Scene()
    scene.clock = clock = SetClock()
    scene.requester = scene._fresh()
    fates(scene, "refused")
    await scene.begin()
    pause_s = await scene.requester.turn()
    clock.set_by = step
    assert await scene.requester.turn() == pytest.approx(pause_s)
    clock.advance(pause_s)
    await scene.requester.turn()
    assert "reserve" in scene.machine.requests
    asked = len(scene.machine.requests)
    for _ in range(20):
        clock.advance(await scene.requester.turn() or 0.1)
    assert len(scene.machine.requests) > asked
    assert scene.order.serving.life is Life.PROVISIONED


class SetClock(FakeClock):
    """Its wall clock is set by an operator."""

    set_by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.set_by
