"""The published figures, with their sources, by subject."""

from bench.seeds.figures.circuits import CIRCUITS
from bench.seeds.figures.distribution import DISTRIBUTION
from bench.seeds.figures.examples import EXAMPLES
from bench.seeds.figures.published import Published, Value
from bench.seeds.figures.streams import STREAMS
from bench.seeds.figures.transfers import TRANSFERS

FIGURES: tuple[Published, ...] = (*DISTRIBUTION, *CIRCUITS, *TRANSFERS, *STREAMS, *EXAMPLES)
"""All of them; a row of `make bench-seeds` each."""

__all__ = ["FIGURES", "Published", "Value"]
