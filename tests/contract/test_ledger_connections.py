"""Connections of NSI requesters in the ledger, with their correlation ids and the replies to them."""

import pytest

from downburst.foundation.errors import AlreadyThere
from downburst.ledger import Transaction

A, B = "CN=a,O=Example", "CN=b"


def test_connections_are_kept_until_they_end(tx: Transaction) -> None:
    kept = tx.planning.connections
    kept.add("one", A, {"state": "held"})
    kept.save("one", {"state": "committed"})
    kept.add("two", B, {"state": "held"})
    assert kept.all() == [{"state": "committed"}, {"state": "held"}]
    kept.end("one", A, {"state": "ended"})
    assert kept.all()[0] == {"state": "ended"}


def test_a_correlation_id_counts_once_for_each_subject(tx: Transaction) -> None:
    tx.planning.connections.seen(A, "urn:uuid:1")
    tx.planning.connections.seen(B, "urn:uuid:1")
    with pytest.raises(AlreadyThere, match="urn:uuid:1 was used before"):
        tx.planning.connections.seen(A, "urn:uuid:1")


def test_replies_wait_until_they_are_delivered_or_given_up(tx: Transaction) -> None:
    kept = tx.planning.connections
    kept.add("one", A, {})
    reply = kept.reply("one", {"word": "Reserved"}, is_notice=False, reply_to="https://a.example/")
    notice = kept.reply("one", {"word": "HoldExpired"}, is_notice=True, reply_to=None)
    assert kept.undelivered() == [reply]
    kept.tried(reply.number, tries=1, done=False)
    (waiting,) = kept.undelivered()
    assert (waiting.tries, waiting.reply_to) == (1, "https://a.example/")
    kept.tried(reply.number, tries=2, done=True)
    assert kept.undelivered() == []
    assert [one.number for one in kept.replies("one", are_notices=False)] == [reply.number]
    assert kept.replies("one", are_notices=True) == [notice]
