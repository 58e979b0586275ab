"""Senders of a hub as a fleet: the number wanted, and two ways to run them."""

from downburst.fleet.loop import FleetLoop
from downburst.fleet.port import Fleet, Standing
from downburst.fleet.sizing import Sizing

__all__ = ["Fleet", "FleetLoop", "Sizing", "Standing"]
