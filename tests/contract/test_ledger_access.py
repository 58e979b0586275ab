"""Users, tokens, sessions, links and the audit, on every database."""

from datetime import timedelta

import pytest

from downburst.domain.access import AccessToken, Caller, LinkKind, Role, Scope, User, acting, hashed
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound, Refused
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.audit import Changes

ANNA = Caller("anna", Role.OPERATOR, frozenset({Scope.OPERATE}), peer="192.0.2.1")
HOUR = timedelta(hours=1)


def test_a_user_is_kept_changed_and_removed_with_the_sessions(tx: Transaction) -> None:
    tx.sites.add(Site("unl.edu"))
    tx.access.users.add(User("anna", Role.SITE, "unl.edu"))
    tx.access.sessions.add("1" * 64, "anna", lifetime=HOUR)
    session, user = tx.access.sessions.find("1" * 64) or (None, None)
    assert session is not None
    assert user is not None
    assert (user.role, user.site) == (Role.SITE, "unl.edu")
    tx.access.users.change(User("anna", Role.VIEWER))
    assert tx.access.sessions.find("1" * 64) is None
    with pytest.raises(AlreadyThere):
        tx.access.users.add(User("anna", Role.ADMIN))
    with pytest.raises(NotFound, match="no site"):
        tx.access.users.add(User("bo", Role.SITE, "nowhere.edu"))
    tx.access.users.remove("anna")
    assert tx.access.users.all() == []


def test_a_site_takes_its_users_and_tokens_with_it(tx: Transaction, clock: FakeClock) -> None:
    tx.sites.add(Site("unl.edu"))
    tx.access.users.add(User("anna", Role.SITE, "unl.edu"))
    now = clock.now()
    tx.access.tokens.add(AccessToken(0, "x", "2" * 64, Role.SITE, (Scope.OWN,), "unl.edu", now, "me", now + HOUR))
    tx.sites.remove("unl.edu")
    assert (tx.access.users.all(), tx.access.tokens.all()) == ([], [])


def test_a_link_is_used_once_and_in_time(tx: Transaction, clock: FakeClock) -> None:
    key = hashed("a link")
    tx.access.links.add(key, LinkKind.FIRST, lifetime=HOUR)
    tx.access.links.add(hashed("a newer one"), LinkKind.FIRST, lifetime=HOUR)
    with pytest.raises(Refused, match="unknown here"):
        tx.access.links.use(key)
    assert tx.access.links.use(hashed("a newer one")).kind is LinkKind.FIRST
    with pytest.raises(Refused, match="used already"):
        tx.access.links.use(hashed("a newer one"))
    tx.access.links.add(key, LinkKind.SIGN_IN, lifetime=HOUR)
    clock.advance(3600)
    with pytest.raises(Refused, match="ended at"):
        tx.access.links.use(key)


def test_a_change_is_undone_with_its_audit(ledger: Ledger) -> None:
    with pytest.raises(AlreadyThere), ledger.transaction() as tx, acting(ANNA):
        _add_twice(tx)
    with ledger.transaction(writes=False) as tx:
        assert tx.access.audit.page(Changes()) == []


def _add_twice(tx: Transaction) -> None:
    for _ in range(2):
        tx.feeds.add(Feed("NGRID"))


def test_changes_are_found_by_who_what_and_when(tx: Transaction, clock: FakeClock) -> None:
    with acting(ANNA):
        feed = tx.feeds.add(Feed("NGRID"))
        clock.advance(60)
        tx.feeds.change(feed)
        tx.feeds.change(Feed("NGRID", retention_hours=6))
    tx.sites.add(Site("unl.edu"))
    changed, added = tx.access.audit.page(Changes(who="anna"))
    assert (changed.action, changed.before, changed.after) == (
        "changed",
        {"retention_hours": 2.0},
        {"retention_hours": 6.0},
    )
    assert (added.action, added.before, added.role, added.peer) == ("added", None, "operator", "192.0.2.1")
    assert [one.subject for one in tx.access.audit.page(Changes(kind="site"))] == ["unl.edu"]
    assert tx.access.audit.page(Changes(end=clock.now())) == [added]
    assert tx.access.audit.page(Changes(), before=changed.number) == [added]
    assert tx.access.audit.forget_before(clock.now()) == 1


async def test_who_acts_is_known_on_the_writing_thread(ledger: Ledger) -> None:
    with acting(ANNA):
        await ledger.write(lambda tx: tx.feeds.add(Feed("NGRID")))
    await ledger.write(lambda tx: tx.sites.add(Site("unl.edu")))
    found = await ledger.read(lambda tx: tx.access.audit.page(Changes()))
    assert [(one.who, one.kind) for one in found] == [("hub", "site"), ("anna", "feed")]
