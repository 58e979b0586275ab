"""Sites behind lines of 20 and of 4 Mb/s: two groups form by themselves, and a site that lags moves and comes back.

No setting has the rate of any line: the sites' hosts measure them while a group loses packets
(`scheduler.groups_by_losses`).
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from kit.busy import needs_quiet_machine
from kit.rate_groups import PRODUCT_BYTES, RateGroups, Source, rate_groups

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone, pytest.mark.nightly]

FAST, SLOW = ("fast1", "fast2"), ("slow1", "slow2")
FAST_BPS, SLOW_BPS = 20_000_000, 4_000_000
LINES_BPS = dict.fromkeys(FAST, FAST_BPS) | dict.fromkeys(SLOW, SLOW_BPS)
OBJECTIVE_S = 1.5
"""Between a product's time at the fast sites' rate and that at the slow ones'."""


def test_two_groups_form_and_the_fast_sites_get_four_times_the_rate_of_one_group(tmp_path: Path) -> None:
    found = _tried(tmp_path)
    print(found)
    _judge([found])


def test_the_median_of_three_runs_with_two_groups(tmp_path: Path) -> None:
    runs = [_tried(tmp_path / str(number)) for number in range(3)]
    print(runs)
    _judge(runs)


def test_a_site_whose_line_is_slow_for_a_minute_moves_and_comes_back_once(tmp_path: Path) -> None:
    needs_quiet_machine(max_load_per_core=2.5, max_lag_ms=20)
    with rate_groups(tmp_path, LINES_BPS | {"fast3": FAST_BPS}) as scene, Source(scene) as source:
        scene.objective(OBJECTIVE_S)
        scene.wait_groups((*FAST, "fast3"), SLOW)
        source.more(3)
        settled = scene.plans()[-1]["version"]
        began_s = time.monotonic()
        scene.line("fast3", SLOW_BPS)
        scene.wait_groups(FAST, ("fast3", *SLOW), seconds=60)
        print(f"it moved {time.monotonic() - began_s:.0f} s after its line became slow")
        time.sleep(max(60 - (time.monotonic() - began_s), 0))
        scene.line("fast3", FAST_BPS)
        scene.wait_groups((*FAST, "fast3"), SLOW, seconds=150)
        print(f"it came back {time.monotonic() - began_s - 60:.0f} s after its line was fast again")
        source.more(15)
        source.needs_small_lag()
        moves = scene.legs("fast3", since=settled)
        print(f"groups of fast3: {moves}; of the others: {[scene.legs(site, since=settled) for site in LINES_BPS]}")
        print("\n".join(f"plan {plan['version']}: {plan['reason']}" for plan in scene.plans()))
        assert len(moves) == 3, "there and back, once"
        assert moves[0] == moves[2] == scene.legs("fast1", since=settled)[0]
        for site in LINES_BPS:
            assert len(scene.legs(site, since=settled)) == 1, f"{site} stays where it is"
        for site in (*LINES_BPS, "fast3"):
            assert scene.rate_mbps(site, source.products) > 0, "everything arrived"


class Run(dict[str, float]):
    """The figures of a run, in Mb/s, by name."""


def _tried(home: Path) -> Run:
    needs_quiet_machine(max_load_per_core=2.5, max_lag_ms=20)
    home.mkdir(exist_ok=True)
    with rate_groups(home, LINES_BPS) as scene, Source(scene) as source:
        alone = scene.wait_groups((*FAST, *SLOW)), _settled(scene, source, 1)
        one = [scene.rate_mbps(site, source.more(2)) for site in FAST[:1]]
        scene.objective(OBJECTIVE_S)
        scene.wait_groups(FAST, SLOW)
        groups = _settled(scene, source, 2)
        with _egress(scene) as rates_bps:
            products = source.more(3)
            two = {site: scene.rate_mbps(site, products) for site in LINES_BPS}
        source.needs_small_lag()
        reason = scene.plans()[-1]["reason"]
        assert "the pace of 2 sites is" in reason, reason
        assert "Mb/s of a group of" in reason, reason
    print(f"{alone}\n{groups}\n{reason}")
    return Run(
        one=median(one), fast=min(two[site] for site in FAST), slow=min(two[site] for site in SLOW),
        paces=sum(groups.values()), peak=max(rates_bps) / 1e6,
    )  # fmt: skip


def _judge(runs: list[Run]) -> None:
    """Judges the median run by each figure."""
    gain = median(run["fast"] / run["one"] for run in runs)
    share = median(run["peak"] / run["paces"] for run in runs)
    print(f"the fast sites got {gain:.2f} times the rate of one group; egress {share:.2f} times the sum of the rates")
    assert gain >= 4
    assert share <= 1.1
    assert median(run["slow"] for run in runs) >= 0.8 * SLOW_BPS / 1e6 * 0.95


def _settled(scene: RateGroups, source: Source, count: int) -> dict[tuple[str, ...], float]:
    """The groups once their paces stayed for a product: the first one of a group may lower them."""
    before = scene.groups()
    for _ in range(5):
        source.more(1)
        now = scene.groups()
        if now == before and len(now) == count:
            return now
        before = now
    raise AssertionError(f"the groups do not settle: {before}")


@contextmanager
def _egress(scene: RateGroups) -> Iterator[list[float]]:
    """The rates that leave the hub during a block, each over about a second."""
    rates_bps, over = list[float](), threading.Event()

    def sample() -> None:
        before = scene.sent_bytes(), time.monotonic()
        while not over.wait(1.0):
            now = scene.sent_bytes(), time.monotonic()
            rates_bps.append((now[0] - before[0]) * 8 / (now[1] - before[1]))
            before = now

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield rates_bps
    finally:
        over.set()
        thread.join(timeout=10)


assert PRODUCT_BYTES * 8 / FAST_BPS < OBJECTIVE_S < PRODUCT_BYTES * 8 / SLOW_BPS
