"""Keys of requests that are executed only once, on both databases."""

from dataclasses import replace

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.ledger.repositories.answers import KEPT, Answered

KEY = Answered("k" * 64, "r" * 64)


def test_a_key_is_taken_once_until_it_is_given_back_or_a_day_is_over(ledger: Ledger, clock: FakeClock) -> None:
    with ledger.transaction() as tx:
        assert tx.access.answers.begin(KEY) is None
        assert tx.access.answers.begin(KEY) == KEY, "it is under way"
    with ledger.transaction() as tx:
        tx.access.answers.give_back(KEY.key_sha256)
        assert tx.access.answers.begin(KEY) is None
    answered = replace(KEY, status=201, body='{"site": "ü"}', etag='"1"')
    with ledger.transaction() as tx:
        tx.access.answers.end(answered)
    clock.advance(KEPT.total_seconds() - 1)
    with ledger.transaction() as tx:
        assert tx.access.answers.begin(replace(KEY, request_sha256="other")) == answered
    clock.advance(2)
    with ledger.transaction() as tx:
        assert tx.access.answers.begin(KEY) is None
