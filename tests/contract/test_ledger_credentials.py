"""Tokens, the credentials that they start, and the replacement of one credential by another."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.credentials import Credential
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import Refused
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.audit import Changes
from factories import site_with_token


def test_a_token_enrols_one_receiver_once(tx: Transaction) -> None:
    site_with_token(tx, "secret")
    for _ in range(2):
        assert tx.enrolment.tokens.consume("secret", "credential", peer="192.0.2.1:5").name == "unl.edu"
    assert [credential.sha256 for credential in tx.enrolment.credentials.of("unl.edu")] == ["credential"]
    with pytest.raises(Refused, match=r"another receiver at 192\.0\.2\.1:5; ask the operator"):
        tx.enrolment.tokens.consume("secret", "other", peer="192.0.2.9:5")
    assert len(tx.enrolment.credentials.of("unl.edu")) == 1


def test_a_credential_belongs_to_one_site(tx: Transaction) -> None:
    site_with_token(tx, "secret")
    tx.enrolment.tokens.add("unl.edu", "second", lifetime=timedelta(hours=1))
    tx.enrolment.tokens.consume("secret", "credential", peer="p")
    with pytest.raises(Refused, match="enrolled already"):
        tx.enrolment.tokens.consume("second", "credential", peer="p")


def test_a_token_expires(ledger: Ledger, clock: FakeClock) -> None:
    with ledger.transaction() as tx:
        site_with_token(tx, "secret")
    clock.advance(3600)
    with ledger.transaction() as tx, pytest.raises(Refused, match=r"expired at 2026-01-01 01:00 UTC"):
        tx.enrolment.tokens.consume("secret", "credential", peer="p")


def test_a_revoked_credential_is_not_usable(tx: Transaction) -> None:
    site_with_token(tx, "secret")
    tx.enrolment.tokens.consume("secret", "credential", peer="p")
    assert tx.enrolment.credentials.revoke("unl.edu", "other") == 0
    assert len(tx.enrolment.credentials.usable()) == 1
    assert tx.enrolment.credentials.revoke("unl.edu") == 1
    assert tx.enrolment.credentials.usable() == []
    assert not tx.enrolment.credentials.of("unl.edu")[0].usable_at(tx.clock.now())


def test_a_credential_ends_when_its_token_said_so(tx: Transaction, clock: FakeClock) -> None:
    tx.sites.add(Site("unl.edu"))
    tx.enrolment.tokens.add("unl.edu", "t", lifetime=timedelta(hours=1), credential_lifetime=timedelta(days=2))
    tx.enrolment.tokens.consume("t", "c", peer="192.0.2.1:5")
    (credential,) = tx.enrolment.credentials.of("unl.edu")
    assert credential.expires_at == clock.now() + timedelta(days=2)
    assert credential.usable_at(clock.now() + timedelta(days=1))
    assert not credential.usable_at(clock.now() + timedelta(days=2))


LIFETIME = timedelta(days=90)


def offer(tx: Transaction, current: str, offered: str) -> Credential:
    return tx.enrolment.credentials.replace("unl.edu", current, offered, peer="q", lifetime=LIFETIME)


def usable(tx: Transaction) -> list[str]:
    return [one.sha256 for one in tx.enrolment.credentials.usable()]


@pytest.fixture
def enrolled(tx: Transaction) -> Transaction:
    tx.sites.add(Site("unl.edu"))
    tx.enrolment.tokens.add("unl.edu", "t", lifetime=timedelta(hours=1), credential_lifetime=timedelta(days=9))
    tx.enrolment.tokens.consume("t", "one", peer="p")
    return tx


def test_both_are_good_until_the_new_one_is_shown(enrolled: Transaction, clock: FakeClock) -> None:
    (first,) = enrolled.enrolment.credentials.usable()
    assert first.renews_at == clock.now() + timedelta(days=6)
    clock.advance(6 * 86_400)
    made = offer(enrolled, "one", "two")
    assert (made.replaces, made.expires_at) == ("one", clock.now() + timedelta(days=9)), (
        "as long as the former lasted"
    )
    assert offer(enrolled, "one", "two") == made, "said twice, it is answered the same way"
    assert usable(enrolled) == ["one", "two"]
    assert enrolled.enrolment.credentials.taken("unl.edu", "two")
    assert usable(enrolled) == ["two"]
    assert not enrolled.enrolment.credentials.taken("unl.edu", "two"), "no news"
    former = next(one for one in enrolled.enrolment.credentials.of("unl.edu") if one.sha256 == "one")
    assert (former.replaced_at, former.usable_at(clock.now())) == (clock.now(), False)
    done = [change.action for change in enrolled.access.audit.page(Changes(kind="credential"))]
    assert done == ["replaced", "replacement kept", "enrolled"]


def test_what_was_never_shown_makes_room_for_another_offer(enrolled: Transaction) -> None:
    offer(enrolled, "one", "lost")
    offer(enrolled, "one", "two")
    assert usable(enrolled) == ["one", "two"]
    assert not enrolled.enrolment.credentials.taken("unl.edu", "lost")
    with pytest.raises(Refused, match="already known"):
        offer(enrolled, "one", "lost")


def test_who_offers_another_one_shows_its_own(enrolled: Transaction) -> None:
    """The report of the second one's use was lost: its own offer proves that use as well."""
    offer(enrolled, "one", "two")
    offer(enrolled, "two", "three")
    assert usable(enrolled) == ["three", "two"]


@pytest.mark.parametrize("end", ["revoked", "replaced", "expired", "unknown", "of another site"])
def test_a_credential_that_is_not_good_is_not_replaced(enrolled: Transaction, clock: FakeClock, end: str) -> None:
    site, current = "unl.edu", "one"
    match end:
        case "revoked":
            enrolled.enrolment.credentials.revoke("unl.edu")
        case "replaced":
            offer(enrolled, "one", "two")
            enrolled.enrolment.credentials.taken("unl.edu", "two")
        case "expired":
            clock.advance(9 * 86_400)
        case "unknown":
            current = "never seen"
        case _:
            site = enrolled.sites.add(Site("other.edu")).name
    with pytest.raises(Refused, match="no longer valid"):
        enrolled.enrolment.credentials.replace(site, current, "new", peer="q", lifetime=LIFETIME)
    assert "new" not in usable(enrolled)


def test_a_receiver_is_revoked_by_any_credential_that_it_ever_had(enrolled: Transaction) -> None:
    enrolled.enrolment.tokens.add("unl.edu", "u", lifetime=timedelta(hours=1))
    enrolled.enrolment.tokens.consume("u", "other receiver", peer="p")
    offer(enrolled, "one", "two")
    enrolled.enrolment.credentials.taken("unl.edu", "two")
    offer(enrolled, "two", "three")
    assert enrolled.enrolment.credentials.revoke("unl.edu", "one") == 2, (
        "what it shows, and what it has been offered for it"
    )
    assert usable(enrolled) == ["other receiver"]
    assert not enrolled.enrolment.credentials.taken("unl.edu", "three"), "what was revoked stays so"


def test_a_receiver_is_asked_before_its_time(enrolled: Transaction, clock: FakeClock) -> None:
    clock.advance(60)
    assert [one.sha256 for one in enrolled.enrolment.credentials.ask("unl.edu")] == ["one"]
    (asked,) = enrolled.enrolment.credentials.usable()
    assert asked.renews_at == clock.now()
    offer(enrolled, "one", "two")
    asked_again = [one.sha256 for one in enrolled.enrolment.credentials.ask("unl.edu")]
    assert asked_again == ["two"], "the one that is on its way out is not"
    enrolled.enrolment.credentials.revoke("unl.edu")
    assert enrolled.enrolment.credentials.ask("unl.edu") == []


def test_one_of_a_release_before_they_ended_is_due_and_ends_from_then_on(
    enrolled: Transaction, clock: FakeClock
) -> None:
    enrolled.enrolment.tokens.add("unl.edu", "u", lifetime=timedelta(hours=1))
    enrolled.enrolment.tokens.consume("u", "endless", peer="p")
    endless = next(one for one in enrolled.enrolment.credentials.usable() if one.sha256 == "endless")
    assert (endless.expires_at, endless.renews_at) == (None, clock.now())
    assert offer(enrolled, "endless", "new").expires_at == clock.now() + LIFETIME
    assert replace(endless, revoked_at=clock.now()).is_kept is False
