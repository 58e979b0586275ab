"""Budgets: a limit on holdings at one time. Taken before any wait, so that concurrent requests get no more."""

from collections.abc import Iterator
from contextlib import contextmanager

from downburst.domain.access import Caller
from downburst.foundation.errors import TooMany
from downburst.network.addresses import network_of


class Budget:
    """At most `most` of something for each holder; the unit is whatever is counted."""

    def __init__(self, most: int, *, what: str, retry_after_s: int = 5) -> None:
        self.most = most
        self._what = what
        self._retry_after_s = retry_after_s
        self._held: dict[str, int] = {}

    def take(self, holder: str, amount: int = 1) -> None:
        """Takes this amount; refuses, and takes nothing, if it exceeds the budget."""
        if self.of(holder) + amount > self.most:
            wait_s = self._retry_after_s
            raise TooMany(
                f"too many {self._what} at a time, the limit is {self.most}; end some, or try again in {wait_s} s",
                retry_after_s=wait_s,
            )
        if amount:
            self._held[holder] = self.of(holder) + amount

    def give_back(self, holder: str, amount: int = 1) -> None:
        """Returns this amount."""
        left = self.of(holder) - amount
        if left > 0:
            self._held[holder] = left
        else:
            self._held.pop(holder, None)

    @contextmanager
    def held(self, holder: str, amount: int = 1) -> Iterator[None]:
        """Holds this amount while the block runs."""
        self.take(holder, amount)
        try:
            yield
        finally:
            self.give_back(holder, amount)

    def of(self, holder: str) -> int:
        """The amount that a holder has."""
        return self._held.get(holder, 0)


def tenant_of(caller: Caller) -> str:
    """The holder of a request's budget: a site, with all its users and tokens, else the caller or the address."""
    if caller.site is not None:
        return f"site {caller.site}"
    return f"caller {caller.name}" if caller.known else f"address {network_of(caller.peer)}"
