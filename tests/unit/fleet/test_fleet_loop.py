"""The loop sizes the fleet by measurement, and reports an outage and its end once each."""

from downburst.bus.local import LocalBus
from downburst.domain.events import LegTraffic, TrafficSeen
from downburst.fleet import FleetLoop, Standing
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import FleetAway
from downburst.settings.fleet import FleetSettings


class Recorded:
    """Records the sizes that it was set to; unavailable while `away` is set."""

    def __init__(self, stands: int = 0) -> None:
        self.wanted: list[int] = []
        self.away = False
        self._stands = stands

    async def bring_to(self, senders: int) -> Standing:
        if self.away:
            raise FleetAway("nobody answers")
        self.wanted.append(senders)
        return Standing(senders, senders)

    async def standing(self) -> Standing:
        if self.away:
            raise FleetAway("nobody answers")
        return Standing(self.wanted[-1] if self.wanted else self._stands, 0)

    async def close(self) -> None:
        return


class Looked:
    def __init__(self, stands: int = 0) -> None:
        self.clock, self.fleet, self.said = FakeClock(), Recorded(stands), list[str]()
        settings = FleetSettings(at_least=1, at_most=4, sender_bps=1e6)
        self.loop = FleetLoop(LocalBus(), self.fleet, settings, say=self._say, clock=self.clock)

    async def _say(self, sentence: str, next_step: str) -> None:
        self.said.append(f"{sentence}; {next_step}")


def seen(egress_bytes: int) -> TrafficSeen:
    legs = tuple(LegTraffic(number, "NGRID", egress_bytes // 2, 0, 1, egress_bytes // 2, 1, 0) for number in range(2))
    return TrafficSeen(0, 1_000_000, (), legs, (), 0)


async def test_what_all_legs_send_decides() -> None:
    looked = Looked()
    await looked.loop.look()
    looked.loop.count(seen(12_000_000))
    await looked.loop.look()
    assert looked.fleet.wanted == [1, 3]


async def test_an_outage_is_said_once_and_its_end_as_well() -> None:
    looked = Looked()
    looked.fleet.away = True
    await looked.loop.look()
    looked.clock.advance(60)
    await looked.loop.look()
    looked.fleet.away = False
    await looked.loop.look()
    await looked.loop.look()
    assert looked.said == [
        "nobody answers; running senders are not affected; the fleet retries by itself",
        "the fleet is managed again, after 60 s; ",
    ]
    assert looked.fleet.wanted == [1, 1], "what is wanted is asked for at each look"


async def test_a_fleet_that_another_process_sized_is_not_shrunk_at_once() -> None:
    looked = Looked(stands=4)
    await looked.loop.look()
    assert looked.fleet.wanted == [4]
