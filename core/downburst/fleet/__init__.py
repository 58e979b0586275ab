"""Senders of a hub as a fleet: how many are wanted, and two ways to have them run."""

from downburst.fleet.loop import FleetLoop
from downburst.fleet.port import Fleet, Standing
from downburst.fleet.sizing import Sizing

__all__ = ["Fleet", "FleetLoop", "Sizing", "Standing"]
