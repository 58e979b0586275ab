"""The hub reports once that its ledger's server is away, and once that it is back."""

from collections.abc import Callable

from downburst.foundation.errors import LedgerAway
from downburst.ledger import Transaction
from downburst.ledger.storage.outage import Outage
from downburst_app.wiring.ledger_watch import LedgerWatch


class Server:
    """A ledger that is away for a number of checks."""

    def __init__(self) -> None:
        self.outage: Outage | None = None
        self.away = False
        self.renewed = 0

    async def renew_hold(self) -> None:
        self.renewed += 1

    async def read(self, _work: Callable[[Transaction], object], *, patience_s: float) -> None:
        assert patience_s == 0
        before = self.outage.seconds if self.outage else 0.0
        self.outage = Outage(before + 2, "nothing listens there") if self.away else None
        if self.outage:
            raise LedgerAway(self.outage.sentence)


async def test_an_outage_is_said_at_its_begin_and_at_its_end() -> None:
    server, said = Server(), []

    async def say(sentence: str, next_step: str) -> None:
        said.append((sentence, next_step))

    watch = LedgerWatch(server, say=say)  # type: ignore[arg-type]
    for away in (False, True, True, True, False, False):
        server.away = away
        await watch.look()
    assert [sentence for sentence, _ in said] == [
        "nothing listens there; products are still received and sent, receipts wait in the data directory, and "
        "settings can't be changed",
        "the ledger is back after 6 s; counts of that time are being stored",
    ]
    assert said[0][1].startswith("restore the server")
    assert server.renewed == 6
