"""Callbacks bring words and hurry the list; late, early, repeated and foreign ones change nothing."""

import random

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst.foundation.errors import Refused
from downburst_circuits.nsi.callbacks import incoming
from downburst_circuits.nsi.order import Standing, after_callback, cancelled, verdict
from downburst_circuits.nsi.record import Goal, Life
from downburst_circuits.nsi.soap.hardened import Unreadable
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.words import Confirmed, HoldExpired, Operation
from kit.nsi import words
from kit.nsi.scene import Scene, a_provider


async def test_callbacks_before_their_acknowledgments_carry_an_order() -> None:
    """Each callback arrives while its request's answer is under way, as both providers send them."""
    scene = Scene()
    post = scene.machine.post

    def posted(body: bytes) -> tuple[int, bytes]:
        answer = post(body)
        early.extend(scene.machine.callbacks)
        scene.machine.callbacks.clear()
        return answer

    early: list[bytes] = []
    scene.machine.post = posted  # type: ignore[method-assign]
    exchange = scene.way.post

    async def with_callbacks(action: str, body: bytes) -> object:
        answer = await exchange(action, body)
        while early:
            await scene.requester.heard(incoming(early.pop(0), scene.provider)[0])
        return answer

    scene.way.post = with_callbacks  # type: ignore[method-assign,assignment]
    await scene.begin()
    await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.ACTIVE, seconds=20)
    assert "queryResultSync" not in scene.machine.requests
    assert scene.order.serving.commit_is_sure


@pytest.mark.parametrize("seed", range(10))
async def test_every_callback_of_a_life_again_in_any_order_changes_nothing(seed: int) -> None:
    print(f"seed {seed}")
    scene = Scene()
    await scene.begin()
    await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.ACTIVE)
    other = Scene()
    other.ids = scene.ids
    await other.begin()
    await other.run(lambda: verdict(other.order, other.now_us()).standing is Standing.ACTIVE)
    heard = [*scene.machine.callbacks, *other.machine.callbacks] * 2
    random.Random(seed).shuffle(heard)
    before = scene.order
    for body in heard:
        await scene.requester.heard(incoming(body, scene.provider)[0])
    assert scene.order == before
    await scene.requester.change(7, cancelled)
    for body in heard:
        await scene.requester.heard(incoming(body, scene.provider)[0])
    assert scene.order.serving.goal is Goal.END
    await scene.run(lambda: scene.order.serving.life is Life.GONE)


async def test_a_confirmation_of_another_request_is_no_evidence() -> None:
    """A late reserveConfirmed of a request that was given up must not be taken for that of the next one."""
    scene = Scene(dialect=Dialect.P2PS)
    await scene.begin()
    await scene.run(lambda: "reserve" in scene.machine.requests)
    message = incoming(scene.machine.callbacks[0].replace(b"-000000000002<", b"-0000000000ff<"), scene.provider)[0]
    assert after_callback(scene.order, message, scene.provider) == scene.order


def test_an_acknowledgment_answers_a_callback() -> None:
    body = words.notice("reserveTimeout", "conn-1", "<timeoutValue>30</timeoutValue>")
    message, answer = incoming(body, a_provider())
    assert message.body == HoldExpired("conn-1", 30)
    assert read(answer).header == message.header


def test_callbacks_of_others_are_refused() -> None:
    body = words.envelope(words.confirmed("provision", "conn-1"), provider_nsa="urn:ogf:network:south.example:nsa")
    with pytest.raises(Refused, match=r"south\.example"):
        incoming(body, a_provider())
    with pytest.raises(Unreadable, match="not a callback"):
        incoming(words.acknowledgment(), a_provider())
    provision = words.envelope(words.confirmed("provision", "conn-1"))
    assert incoming(provision, a_provider())[0].body == Confirmed(Operation.PROVISION, "conn-1")
