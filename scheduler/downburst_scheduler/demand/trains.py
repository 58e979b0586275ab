"""The trains of one feed: when a circuit is needed, by the node's signs and by the feed's habit.

Times are seconds of the wall clock, as in the arrival stamps of products.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from downburst_scheduler.models.demand.habit import Expected, Habit
from downburst_scheduler.models.demand.terms import DemandTerms


@dataclass(frozen=True, slots=True)
class Need:
    """A train that a circuit is for."""

    began_s: float
    """Its first product, or the moment at which that is expected."""
    reason: str


@dataclass(slots=True)
class Trains:
    """Begin and end of a feed's trains."""

    habit: Habit = field(default_factory=Habit)
    start_s: float | None = None
    """The first product of the last train whose beginning was seen."""
    _began_s: float | None = None
    _last_s: float | None = None
    """The last product of a train that has gone silent; None while it is on."""
    _due: dict[float, Expected | None] = field(default_factory=dict)
    """By the end of the last train; sites may have different hold times."""
    _is_doubtful: bool = False
    """True until the next product: it may belong to a train that began before."""

    @classmethod
    def learnt(cls, starts_s: Sequence[float]) -> "Trains":
        """The trains that a scheduler before this one has seen, in order of time; the last one may be over."""
        last_s = starts_s[-1] if starts_s else None
        return cls(Habit.of(starts_s), last_s, _began_s=last_s, _last_s=last_s, _is_doubtful=bool(starts_s))

    def stirred(self, at_s: float) -> None:
        """A product came after a silence, or as the first one that is watched."""
        is_start = self._began_s is None or self._last_s is not None
        if is_start and not self._is_doubtful:
            self.habit.seen(at_s)
            self.start_s = at_s
        self._began_s, self._last_s, self._is_doubtful = at_s, None, False

    def silent(self, last_s: float) -> None:
        """No product came for the watched time since the last one."""
        if self._began_s is not None and (self._last_s is None or last_s > self._last_s):
            self._last_s = last_s
            self._due.clear()

    def resumed(self, now_s: float) -> None:
        """A scheduler that has just started keeps circuits for the hold time, as if a product had come now."""
        self._began_s = self._began_s if self._began_s is not None else now_s
        self._last_s, self._is_doubtful = now_s, True

    def doubted(self, now_s: float) -> None:
        """Signs may be missing: a train that is on counts as if its last product had come now, until the next one."""
        if self._began_s is not None and self._last_s is None:
            self.resumed(now_s)

    def need(self, terms: DemandTerms, now_s: float) -> Need | None:
        """The train that needs a circuit at this moment; None while a circuit would be given back."""
        if self._began_s is None:
            return None
        if self._last_s is None or now_s < self._last_s + held_s(terms):
            return Need(self._began_s, "a train of products has begun")
        return self._ahead(terms, self._last_s + held_s(terms), now_s) if terms.ahead else None

    def _ahead(self, terms: DemandTerms, end_s: float, now_s: float) -> Need | None:
        """The habit is consulted once, at the end of a train; an order for a train that does not come is the last."""
        if end_s not in self._due:
            self._due[end_s] = self.habit.next_after(end_s)
        due = self._due[end_s]
        if due is None or not due.at_s - due.early_s - terms.setup_s <= now_s < self._given_up_s(due, terms):
            return None
        return Need(due.at_s, f"a train is due in {max(due.at_s - now_s, 0):.3g} s by the feed's habit")

    @staticmethod
    def _given_up_s(due: Expected, terms: DemandTerms) -> float:
        return due.at_s + due.early_s + held_s(terms)


def held_s(terms: DemandTerms) -> float:
    """The silence after which a circuit is given back: one that takes longer to set up would not be back in time."""
    return max(terms.hold_s, terms.setup_s)
