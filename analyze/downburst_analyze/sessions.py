"""Sessions of transfers, and their suitability for a dynamic circuit.

Transfers with one peer belong together if the next one starts no later than `gap_s` after the last of the open ones
ended. A session suits a circuit if, at the throughput that a quarter of the transfers exceed, it would last more than
ten times as long as the set-up of the circuit; otherwise most of the time is spent on the set-up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Transfer
from downburst_scheduler.figures.histograms import Floats, LogHistogram


@dataclass(frozen=True, slots=True)
class Session:
    """Transfers that belong together."""

    peer: str
    start_us: int
    end_us: int
    transfers: int
    size_bytes: int

    @property
    def length_s(self) -> float:
        """From the start of the first transfer to the end of the last one to end."""
        return (self.end_us - self.start_us) / 1e6

    def with_more(self, transfer: Transfer) -> "Session":
        """The session with one more transfer."""
        end_us = max(self.end_us, _end_us(transfer))
        size_bytes = self.size_bytes + transfer.size_bytes
        return Session(self.peer, self.start_us, end_us, self.transfers + 1, size_bytes)


@dataclass(frozen=True, slots=True)
class Suitability:
    """The number of sessions large enough for a circuit with this set-up delay."""

    setup_delay_s: float
    threshold_bytes: float
    sessions: int
    share_of_sessions: float
    share_of_transfers: float
    share_of_bytes: float


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """Properties of a log's sessions."""

    transfers: int
    peers: int
    sessions: int
    counted_sessions: int
    """Sessions of at least `SMALLEST_COUNTED_BYTES`; shares refer to these."""
    throughput_quantiles_bps: dict[str, float]
    """Quantiles of the single transfers."""
    size_quantiles_bytes: dict[str, float]
    length_quantiles_s: dict[str, float]
    longest: Session | None
    largest: Session | None
    suitability: tuple[Suitability, ...]


def sessions(transfers: Iterable[Transfer], *, gap_s: float = 60.0) -> Iterator[Session]:
    """Merges transfers that are in order of their start; one session per peer is open at a time."""
    gap_us = round(gap_s * 1e6)
    open_sessions: dict[str, Session] = {}
    latest_us = -(2**63)
    for transfer in transfers:
        if transfer.start_us < latest_us:
            raise BadInput("a transfer starts before the one above it; sort the log by start")
        latest_us = transfer.start_us
        known = open_sessions.get(transfer.peer)
        if known is not None and transfer.start_us <= known.end_us + gap_us:
            open_sessions[transfer.peer] = known.with_more(transfer)
            continue
        if known is not None:
            yield known
        open_sessions[transfer.peer] = Session(
            transfer.peer, transfer.start_us, _end_us(transfer), 1, transfer.size_bytes
        )
    yield from open_sessions.values()


def threshold_bytes(third_quartile_bps: float, setup_delay_s: float) -> float:
    """The minimum size of a session that suits a circuit."""
    return TIMES_THE_SETUP * setup_delay_s * third_quartile_bps / 8


class SessionStudy:
    """The sessions of a log, with bounded state for each transfer."""

    def __init__(self, *, gap_s: float = 60.0) -> None:
        self._gap_s = gap_s
        self._throughput = LogHistogram()
        self._peers: set[str] = set()
        self._sessions: list[Session] = []
        self._transfers = 0

    def take(self, transfers: Iterable[Transfer]) -> None:
        """Reads a whole log, in order of start."""
        self._sessions.extend(sessions(self._counted(transfers), gap_s=self._gap_s))

    def figures(self, setup_delays_s: Iterable[float]) -> SessionFigures:
        """The figures, with the shares of suitable sessions for each set-up delay."""
        counted = [one for one in self._sessions if one.size_bytes >= SMALLEST_COUNTED_BYTES]
        sizes = np.array([one.size_bytes for one in counted], dtype=np.float64)
        lengths = np.array([one.length_s for one in counted], dtype=np.float64)
        third_quartile_bps = self._throughput.quantile(0.75)
        return SessionFigures(
            transfers=self._transfers,
            peers=len(self._peers),
            sessions=len(self._sessions),
            counted_sessions=len(counted),
            throughput_quantiles_bps={name: self._throughput.quantile(at) for name, at in QUARTILES.items()},
            size_quantiles_bytes=_quantiles(sizes),
            length_quantiles_s=_quantiles(lengths),
            longest=max(self._sessions, key=lambda one: one.length_s, default=None),
            largest=max(self._sessions, key=lambda one: one.size_bytes, default=None),
            suitability=tuple(suitability(counted, third_quartile_bps, delay_s) for delay_s in setup_delays_s),
        )

    def _counted(self, transfers: Iterable[Transfer]) -> Iterator[Transfer]:
        for transfer in transfers:
            self._transfers += 1
            self._peers.add(transfer.peer)
            if transfer.duration_s > 0:
                self._throughput.add(np.array([transfer.size_bytes * 8 / transfer.duration_s]))
            yield transfer


def suitability(counted: list[Session], third_quartile_bps: float, setup_delay_s: float) -> Suitability:
    """The sessions that exceed the threshold."""
    threshold = threshold_bytes(third_quartile_bps, setup_delay_s)
    fit = [one for one in counted if one.size_bytes > threshold]
    return Suitability(
        setup_delay_s=setup_delay_s,
        threshold_bytes=threshold,
        sessions=len(fit),
        share_of_sessions=len(fit) / max(len(counted), 1),
        share_of_transfers=_ratio(sum(one.transfers for one in fit), sum(one.transfers for one in counted)),
        share_of_bytes=_ratio(sum(one.size_bytes for one in fit), sum(one.size_bytes for one in counted)),
    )


def sessions_of_products(at_s: Floats, size_bytes: Floats, *, gap_s: float, rate_bps: float) -> list[Session]:
    """The sessions of a product trace that is sent at a rate: a product is a transfer of its own length."""
    done_s = at_s + size_bytes * 8 / rate_bps
    latest_s = np.maximum.accumulate(done_s)
    starts = np.concatenate([[0], np.flatnonzero(at_s[1:] > latest_s[:-1] + gap_s) + 1]).astype(np.int64)
    ends = np.append(starts[1:], len(at_s))
    return [
        Session(
            peer="",
            start_us=round(at_s[start] * 1e6),
            end_us=round(latest_s[end - 1] * 1e6),
            transfers=int(end - start),
            size_bytes=int(size_bytes[start:end].sum()),
        )
        for start, end in zip(starts, ends, strict=True)
        if end > start
    ]


def _end_us(transfer: Transfer) -> int:
    return transfer.start_us + round(transfer.duration_s * 1e6)


def _quantiles(values: Floats) -> dict[str, float]:
    if len(values) == 0:
        return {}
    return {name: float(np.quantile(values, at)) for name, at in QUARTILES.items()} | {"mean": float(values.mean())}


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


TIMES_THE_SETUP = 10
SMALLEST_COUNTED_BYTES = 100_000_000
"""Smaller sessions are counted but not judged: no rule would give them a circuit."""
QUARTILES = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p75": 0.75, "max": 1.0}
