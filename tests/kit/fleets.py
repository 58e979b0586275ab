"""The contract of the port `Fleet`, for any implementation that a test provides."""

import asyncio
import time
from typing import Protocol

from downburst.fleet import Fleet


class Handle(Protocol):
    """A fleet, with an operator's view of it and operations on it."""

    fleet: Fleet

    def named(self) -> set[int]:
        """The numbers of the existing senders."""

    def remove_one(self, number: int) -> None:
        """Removes one without the fleet's knowledge."""


class FleetContract:
    """A base class for tests, used with a fixture `handle`."""

    async def test_a_fleet_begins_with_nobody(self, handle: Handle) -> None:
        assert (await handle.fleet.standing()).wanted == 0
        assert handle.named() == set()

    async def test_it_is_brought_to_a_number_and_back(self, handle: Handle) -> None:
        for wanted in (2, 3, 1, 0):
            await until_named(handle, wanted)
            assert (await handle.fleet.standing()).wanted == wanted

    async def test_the_same_number_again_changes_nothing(self, handle: Handle) -> None:
        await until_named(handle, 2)
        standing = await handle.fleet.bring_to(2)
        assert (standing.wanted, handle.named()) == (2, {0, 1})

    async def test_what_was_taken_away_is_made_again(self, handle: Handle) -> None:
        await until_named(handle, 2)
        handle.remove_one(1)
        await until_named(handle, 2)


async def until_named(handle: Handle, senders: int) -> None:
    """Scales the fleet to a number repeatedly, as its loop does, until so many senders exist."""
    give_up = time.monotonic() + PATIENCE_S
    await handle.fleet.bring_to(senders)
    while handle.named() != set(range(senders)):
        assert time.monotonic() < give_up, f"{senders} senders are wanted, and there are {handle.named()}"
        await asyncio.sleep(0.1)
        await handle.fleet.bring_to(senders)


async def until_ready(handle: Handle, senders: int) -> None:
    """Scales the fleet to a number until so many senders are ready."""
    give_up = time.monotonic() + PATIENCE_S
    while (standing := await handle.fleet.bring_to(senders)).ready != senders or handle.named() != set(
        range(senders)
    ):
        assert time.monotonic() < give_up, f"{senders} senders are wanted: {standing}"
        await asyncio.sleep(0.1)


PATIENCE_S = 60.0
