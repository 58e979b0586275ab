"""Trials of congestion controls on one path: which flows send side by side, and what each of them reached."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement


@dataclass(frozen=True, slots=True)
class Trial:
    """Flows that send as fast as they can at the same time; each is the name of a congestion control."""

    flows: tuple[str, ...]
    """In the direction of the probe."""
    reverse: tuple[str, ...]
    """In the opposite one."""
    duration_ms: int


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The round trips of a flow, in microseconds, by its sender's kernel; None: it does not report them."""

    min: int | None = None
    mean: int | None = None


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One flow of a trial, as measured."""

    congestion: str
    reverse: bool
    goodput_bps: float
    """Payload that the receiver counted."""
    retransmits: int | None = None
    """Segments, by the sender's kernel; None: it does not report them."""
    round_trip_us: RoundTrip = RoundTrip()


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial, as measured."""

    duration_ms: int
    reason: str | None
    """The reason why it did not run, such as a kernel without this congestion control."""
    fairness: float | None
    """Jain's index of the flows in the probe's direction, from 1/n to 1; None: fewer than two.

    Jain, Chiu, Hawe: A quantitative measure of fairness, DEC TR-301, 1984.
    """
    limited: bool
    """True: the probe's own limit of the rate was the bottleneck, and not the path."""
    flows: tuple[FlowResult, ...]

    @property
    def shares(self) -> list[float | None]:
        """Of each flow, the part of the goodput of its direction; None where nothing arrived."""
        return [self._share(flow) for flow in self.flows]

    @property
    def frame_bytes(self) -> int:
        """About the bytes of frames that it sent, with the headers of full segments."""
        payload = sum(one.goodput_bps for one in self.flows) * self.duration_ms / 8e3
        again = sum(one.retransmits or 0 for one in self.flows)
        return round(payload * SEGMENT_FRAME / SEGMENT_PAYLOAD) + again * SEGMENT_FRAME

    def _share(self, flow: FlowResult) -> float | None:
        total_bps = sum(one.goodput_bps for one in self.flows if one.reverse is flow.reverse)
        return flow.goodput_bps / total_bps if total_bps else None


def trials_of(controls: Sequence[str], *, duration_ms: int, reverse_traffic: bool) -> tuple[Trial, ...]:
    """Each control alone, and each pair, two of the same one included; then all again against reverse traffic.

    The reverse traffic is one flow of the first control.
    """
    alone: list[tuple[str, ...]] = [(control,) for control in controls]
    groups = [*alone, *combinations_with_replacement(controls, 2)]
    reverses = [(), tuple(controls[:1])] if reverse_traffic else [()]
    return tuple(Trial(flows, reverse, duration_ms) for reverse in reverses for flows in groups)


CONTROLS = ("cubic", "bbr", "reno")
"""The kernel's, as the field compares them."""
CONGESTION = re.compile(r"[a-z0-9_-]{1,15}")
"""The kernel's bound of the name is 16 bytes with the end (TCP_CA_NAME_MAX)."""
MOST_CONTROLS = 4
MOST_TRIALS = 32
MOST_FLOWS = 4
MOST_REVERSE = 2
LEAST_TRIAL_MS = 500
MOST_TRIAL_MS = 60_000
PAUSE_S = 2.0
"""The longest time from a trial to the next one: connections end and begin."""
SEGMENT_PAYLOAD = 1_448
SEGMENT_FRAME = 1_538
"""A full segment with TCP's stamps: headers of Ethernet, IPv4 and TCP, preamble and gap."""
