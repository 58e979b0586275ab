"""The loop of ways on a real ledger in virtual time: sites are led over relays, stay there, and are taken back."""

import re
from pathlib import Path as FilePath

import pytest

from downburst.domain.relays import SiteWay
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.settings.scheduler import SchedulerSettings
from unit.scheduler.relay_world import Path, World

LONG = Path(70_000, 0.001)
CORE = Path(68_000, 0.0, 80_000_000)
EDGE = Path(2_000, 0.001, 80_000_000)


@pytest.fixture
def settings(tmp_path: FilePath) -> Settings:
    return Settings(data_dir=tmp_path, data_connections=1, scheduler=SchedulerSettings(dwell_s=60))


@pytest.fixture
def world(ledger: Ledger, clock: FakeClock, settings: Settings) -> World:
    """A site with loss at the edge of a long path, and a relay before that edge."""
    made = World(
        ledger, settings, clock,
        direct={"campus": CORE, "unl.edu": LONG}, edges={"unl.edu": EDGE}, over={"unl.edu": CORE},
    )  # fmt: skip
    made.add("unl.edu")
    made.relay("campus", "unl.edu")
    return made


async def started(world: World, seconds: int = 120) -> World:
    await world.loop.start()
    await world.seconds(seconds)
    return world


def way(world: World, site: str = "unl.edu") -> SiteWay:
    found = world.way(site)
    assert found is not None
    return found


async def test_a_site_is_led_over_a_relay_that_gains_and_stays_there(world: World) -> None:
    await world.loop.start()
    await world.seconds(20)
    assert world.chain() == (), "nothing is measured yet"
    await world.seconds(100)
    first = way(world)
    assert first.chain == ("campus",)
    assert first.reason.startswith("by relay campus: ")
    assert re.search(
        r"\(68 ms, 0.00% loss, cubic to relay campus, 2 ms, 0.0\d% loss, cubic to the site by", first.reason
    )
    assert first.direct_bps is not None
    assert first.predicted_bps is not None
    assert first.predicted_bps > 5 * first.direct_bps
    assert world.carrier("unl.edu") == "campus"
    await world.seconds(3_600)
    assert way(world).chain == ("campus",), "the clean segment before the relay is not taken for the direct way"
    assert way(world).decided_at == first.decided_at
    assert await world.told() == 1


async def test_the_measured_rate_is_kept_beside_the_prediction(world: World) -> None:
    world.over["unl.edu"] = Path(68_000, 0.0, 60_000_000, limited=True)
    await started(world, 600)
    assert way(world).chain == ("campus",)
    assert way(world).measured_bps == pytest.approx(60e6, rel=0.05)
    assert "measured 60" in way(world).reason


async def test_a_relay_that_brings_less_than_the_direct_way_did_is_left_and_rests(
    world: World,
) -> None:
    world.direct["unl.edu"] = Path(70_000, 0.001, 8_000_000, limited=True)
    world.over["unl.edu"] = Path(68_000, 0.0, 2_000_000, limited=True)
    await started(world, 100)
    assert way(world).chain == ("campus",)
    await world.seconds(500)
    last = way(world)
    assert last.chain == ()
    assert "relay campus brought 2.00 Mb/s, less than the direct way's 8.77 Mb/s" in last.reason
    assert "is tried again after 12 min" in last.reason, "the dwell is short here"
    await world.seconds(200)
    assert world.carrier("unl.edu") == ""
    assert way(world).chain == ()
    await world.seconds(400)
    assert await world.told() == 4, "it is tried once more, and left again"
    assert "is tried again after 24 min" in way(world).reason


async def test_a_relay_that_dies_is_left_at_once_and_taken_again(world: World) -> None:
    await started(world)
    await world.close("campus")
    assert way(world).chain == ()
    assert way(world).reason == (
        "direct: relay campus can't be used any more; relay campus has no session with the hub"
    )
    await world.seconds(30)
    assert world.carrier("unl.edu") == ""
    await world.open("campus")
    await world.seconds(200)
    assert way(world).chain == ("campus",)


async def test_a_relay_that_falls_silent_is_left_after_three_reports(world: World) -> None:
    await started(world)
    world.closed.add("campus")
    await world.seconds(20)
    assert way(world).chain == ("campus",)
    await world.seconds(40)
    assert way(world).chain == ()


async def test_a_site_is_led_over_a_relay_only_if_all_its_feeds_are_granted(world: World) -> None:
    world.add("unl.edu", feed="IDS")
    world.relay("campus", "unl.edu", feeds=("NGRID",))
    await started(world)
    assert way(world).chain == ()
    assert way(world).reason == "direct: relay campus is not granted IDS, which unl.edu takes"
    world.relay("campus", "unl.edu", feeds=("IDS", "NGRID"))
    await world.changed()
    await world.seconds(60)
    assert way(world).chain == ("campus",)
    world.relay("campus", "unl.edu", feeds=("IDS",))
    await world.changed()
    assert way(world).chain == (), "at once"


async def test_under_bbr_the_direct_way_is_kept(world: World) -> None:
    world.direct |= {
        "campus": Path(68_000, 0.0, congestion="bbr"),
        "unl.edu": Path(70_000, 0.001, 90_000_000, "bbr", limited=True),
    }
    await started(world, 600)
    assert way(world).chain == ()
    assert "loss without effect, bbr" in way(world).reason


async def test_data_connections_that_win_are_kept(world: World, settings: Settings) -> None:
    world.settings = settings.model_copy(update={"data_connections": 16})
    world.direct["campus"] = Path(35_000, 0.001)
    world.direct["unl.edu"] = Path(70_000, 0.002)
    with world.ledger.transaction() as tx:
        tx.sites.change(Site("unl.edu", access_rate_bps=20e6))
    await world.restart()
    await world.seconds(300)
    assert way(world).chain == ()
    assert "15.2 Mb/s by the direct way" in way(world).reason, "the line has 20"
    assert "4 connections" in way(world).reason


async def test_a_dry_run_changes_nothing_and_tells_what_it_would_do(world: World, settings: Settings) -> None:
    world.settings = settings.model_copy(update={"scheduler": SchedulerSettings(dry_run=True, dwell_s=60)})
    await world.restart()
    await world.seconds(200)
    assert way(world).chain == ()
    assert way(world).reason.endswith("dry run: the site would go by relay campus")
    assert await world.told() == 0


async def test_a_restart_continues_on_the_stored_way(world: World) -> None:
    await started(world)
    before = way(world)
    await world.restart()
    assert way(world) == before
    await world.seconds(300)
    assert way(world).chain == ("campus",)


async def test_a_relay_that_is_removed_leaves_its_site_direct(world: World) -> None:
    await started(world)
    with world.ledger.transaction() as tx:
        tx.fleet.relays.remove("campus")
    del world.direct["campus"]
    await world.changed()
    assert way(world).chain == ()
    await world.seconds(30)
    assert way(world).reason == "direct: no relay is before the site"


async def test_ways_may_be_chains_and_relays_themselves_go_direct(world: World) -> None:
    """The loss is between two relays: only both together bring the segment down to 20 ms."""
    world.direct |= {"campus": Path(68_000, 0.001), "far": Path(48_000), "unl.edu": Path(70_000, 0.001)}
    world.edges["unl.edu"] = Path(20_000, 0.001)
    world.add("unl.edu")
    world.relay("far", "campus", "unl.edu")
    await started(world, 300)
    assert world.chain("campus") == world.chain("far") == ()
    chain = world.chain()
    assert chain in {("campus", "far"), ("far",)}
    assert len(set(chain)) == len(chain), "no relay twice"
    with world.ledger.transaction(writes=False) as tx:
        assert {one.site for one in tx.fleet.ways.all()} == {"unl.edu"}


async def test_a_hub_without_relays_stores_no_ways(world: World) -> None:
    with world.ledger.transaction() as tx:
        tx.fleet.relays.remove("campus")
    del world.direct["campus"]
    await started(world)
    assert world.way("unl.edu") is None
