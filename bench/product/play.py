"""One schedule, played into a hub, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.harness.schedules import Planned
from bench.harness.stamps import Micros
from bench.product.fleet import Arrivals, Cpu, Fleet
from kit.namespaces import Lab
from kit.node import Line


@dataclass(frozen=True)
class Live:
    """The result of one schedule."""

    account: Line
    """The player's: its begin and end, and its own lateness."""
    cpu: Cpu
    arrivals: Arrivals

    @property
    def latency_us(self) -> Micros:
        """Of every played product at every site."""
        began_us = self.account["began_us"]
        return np.concatenate([stamps.between(began_us).latency_us for stamps in self.arrivals.at_sites.values()])

    @property
    def deliveries(self) -> int:
        """Products times sites."""
        return int(self.account["products"]) * len(self.arrivals.at_sites)


def play_live(lab: Lab, directory: Path, sites: Sequence[str], planned: list[Planned]) -> Live:
    """Play a schedule into a fresh hub with these sites."""
    with Fleet(lab, directory, sites) as fleet:
        before = fleet.cpu()
        account = fleet.play(planned)
        fleet.drained()
        spent = fleet.cpu().since(before)
        return Live(account, spent, fleet.finish())
