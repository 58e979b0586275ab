"""Known callers stay admitted while the ledger's server is away; all others are refused."""

from collections.abc import Callable
from typing import Any

import pytest

from downburst.domain.access import TOKEN_PREFIX, Caller, Role, Scope
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import LedgerAway, NotSignedIn
from downburst.ledger import Transaction
from downburst_api.border.authentication import REMEMBERED_S, Gate, Shown

SOURCE = Caller("token 1 (decoder)", Role.OPERATOR, frozenset({Scope.INGEST}))


class Away:
    """A ledger that knows one token, or is away."""

    def __init__(self) -> None:
        self.away = False
        self.knows: Caller | None = SOURCE
        self.patience_s: list[float] = []

    async def read(self, _work: Callable[[Transaction], Any], *, patience_s: float) -> Caller | None:
        self.patience_s.append(patience_s)
        if self.away:
            raise LedgerAway("nothing listens there")
        return self.knows


async def test_an_outage_of_the_ledger_shuts_no_source_out(clock: FakeClock) -> None:
    ledger = Away()
    gate = Gate(ledger, clock)  # type: ignore[arg-type]
    known = Shown(f"{TOKEN_PREFIX}known", None, "192.0.2.1")
    assert (await gate.caller(known)).name == SOURCE.name
    ledger.away = True
    for _ in range(3):
        clock.advance(REMEMBERED_S + 1)
        assert (await gate.caller(known)).name == SOURCE.name
    assert ledger.patience_s[1:] == [0, 0, 0], "a source is not kept waiting"
    with pytest.raises(LedgerAway):
        await gate.caller(Shown(f"{TOKEN_PREFIX}other", None, "192.0.2.1"))
    ledger.away, ledger.knows = False, None
    clock.advance(REMEMBERED_S + 1)
    with pytest.raises(NotSignedIn):
        await gate.caller(known)
