"""The budgets of an offer: circuit-hours and orders of a day, from midnight UTC.

An open order counts with its whole window, so that no extension of another one can exceed the budget.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from downburst.domain.ordering import OPEN, Budget, DemandOrder, OrderStep
from downburst_scheduler.models.offers import Rest


def refusal(
    budget: Budget, orders: Iterable[DemandOrder], *, begin: datetime, until: datetime, extends: int | None = None
) -> str | None:
    """The reason why the budget allows no circuit from `begin` to `until`; None if it does.

    `orders` are those of the offer. `extends` is the number of the order whose window this is; it replaces its
    present window and is no further order.
    """
    others = [one for one in orders if one.number != extends]
    day = midnight(begin)
    if budget.orders is not None and extends is None:
        count = sum(one.step is not OrderStep.WOULD and one.times.ordered_at >= day for one in others)
        if count >= budget.orders:
            return f"{count} of {budget.orders} orders of the day are used"
    if budget.circuit_hours is None:
        return None
    while day < until:
        hours = sum(_hours(*_window(one), day=day) for one in others) + _hours(begin, until, day=day)
        if hours > budget.circuit_hours:
            used = hours - _hours(begin, until, day=day)
            return f"{used:.3g} of {budget.circuit_hours:g} circuit-hours of the day are used or promised"
        day += DAY
    return None


def rest(budget: Budget, orders: Iterable[DemandOrder], *, now: datetime) -> Rest | None:
    """The rest of the day's circuit-hours after the use so far by these orders; None without such a budget.

    The windows of open orders count up to now: the rest of them is promised, not used, and most of it is given back.
    """
    if budget.circuit_hours is None:
        return None
    day = midnight(now)
    used_h = sum(_hours(begin, min(until, now), day=day) for begin, until in map(_window, orders))
    left_s = max(budget.circuit_hours - used_h, 0.0) * 3_600
    return Rest(left_s, (day + DAY - now).total_seconds())


def midnight(moment: datetime) -> datetime:
    """The beginning of its day in UTC."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


def _window(order: DemandOrder) -> tuple[datetime, datetime]:
    begin = order.times.ordered_at
    if order.step in OPEN:
        return begin, order.times.until
    is_made = order.step not in (OrderStep.WOULD, OrderStep.REFUSED)
    return begin, (order.times.ended_at or order.times.until) if is_made else begin


def _hours(begin: datetime, until: datetime, *, day: datetime) -> float:
    within = min(until, day + DAY) - max(begin, day)
    return max(within.total_seconds(), 0.0) / 3_600


DAY = timedelta(days=1)
