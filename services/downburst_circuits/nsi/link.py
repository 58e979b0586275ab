"""The reachability of a provider, and the pause before the next attempt."""

from dataclasses import dataclass

from downburst.foundation.clock import Clock, from_us, to_us
from downburst_circuits.nsi.refusals import Problem


@dataclass(frozen=True, slots=True)
class Link:
    """The last attempts to reach a provider."""

    failures: int = 0
    """In a row."""
    since_us: int | None = None
    """The first of them."""
    next_s: float = 0.0
    """No attempt before, by the monotonic clock: a wall clock that is set would stop all orders, or hurry them."""
    problem: Problem | None = None


def missed(link: Link, problem: Problem, clock: Clock, share: float) -> Link:
    """The link after a failed attempt. `share`, from 0 to 1 at random, keeps hubs from returning in step."""
    longest_s = min(FIRST_PAUSE_S * 2 ** min(link.failures, 12), LONGEST_PAUSE_S)
    pause_s = longest_s * (0.5 + 0.5 * min(max(share, 0.0), 1.0))
    since_us = to_us(clock.now()) if link.since_us is None else link.since_us
    return Link(link.failures + 1, since_us, clock.monotonic_s() + pause_s, problem)


def sentence(link: Link) -> str:
    """The state for users; empty while the provider answers. It is never a refusal."""
    if link.problem is None or link.since_us is None:
        return ""
    return (
        f"{link.problem.sentence}; this is so since {from_us(link.since_us):%Y-%m-%d %H:%M:%S} UTC, and orders there "
        "are neither granted nor refused until it answers"
    )


FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 300.0
