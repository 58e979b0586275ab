"""Users, tokens, sessions, links and the audit, on every database."""

from datetime import timedelta

import pytest

from downburst.access import AccessToken, Caller, LinkKind, Role, Scope, User, acting, hashed
from downburst.clock import FakeClock
from downburst.errors import AlreadyThere, NotFound, Refused
from downburst.ledger import Book, Ledger
from downburst.ledger.audit import Changes
from downburst.model import Feed, Site

ANNA = Caller("anna", Role.OPERATOR, frozenset({Scope.OPERATE}), peer="192.0.2.1")
HOUR = timedelta(hours=1)


def test_a_user_is_kept_changed_and_removed_with_the_sessions(book: Book) -> None:
    book.sites.add(Site("unl.edu"))
    book.users.add(User("anna", Role.SITE, "unl.edu"))
    book.login_sessions.add("1" * 64, "anna", lifetime=HOUR)
    session, user = book.login_sessions.find("1" * 64) or (None, None)
    assert session is not None
    assert user is not None
    assert (user.role, user.site) == (Role.SITE, "unl.edu")
    book.users.change(User("anna", Role.VIEWER))
    assert book.login_sessions.find("1" * 64) is None
    with pytest.raises(AlreadyThere):
        book.users.add(User("anna", Role.ADMIN))
    with pytest.raises(NotFound, match="no site"):
        book.users.add(User("bo", Role.SITE, "nowhere.edu"))
    book.users.remove("anna")
    assert book.users.all() == []


def test_a_site_takes_its_users_and_tokens_with_it(book: Book, clock: FakeClock) -> None:
    book.sites.add(Site("unl.edu"))
    book.users.add(User("anna", Role.SITE, "unl.edu"))
    now = clock.now()
    book.access_tokens.add(AccessToken(0, "x", "2" * 64, Role.SITE, (Scope.OWN,), "unl.edu", now, "me", now + HOUR))
    book.sites.remove("unl.edu")
    assert (book.users.all(), book.access_tokens.all()) == ([], [])


def test_a_link_is_used_once_and_in_time(book: Book, clock: FakeClock) -> None:
    key = hashed("a link")
    book.login_links.add(key, LinkKind.FIRST, lifetime=HOUR)
    book.login_links.add(hashed("a newer one"), LinkKind.FIRST, lifetime=HOUR)
    with pytest.raises(Refused, match="unknown here"):
        book.login_links.use(key)
    assert book.login_links.use(hashed("a newer one")).kind is LinkKind.FIRST
    with pytest.raises(Refused, match="used already"):
        book.login_links.use(hashed("a newer one"))
    book.login_links.add(key, LinkKind.SIGN_IN, lifetime=HOUR)
    clock.advance(3600)
    with pytest.raises(Refused, match="ended at"):
        book.login_links.use(key)


def test_a_change_is_undone_with_its_audit(ledger: Ledger) -> None:
    with pytest.raises(AlreadyThere), ledger.transaction() as book, acting(ANNA):
        _add_twice(book)
    with ledger.transaction(writes=False) as book:
        assert book.audit.page(Changes()) == []


def _add_twice(book: Book) -> None:
    for _ in range(2):
        book.feeds.add(Feed("NGRID"))


def test_changes_are_found_by_who_what_and_when(book: Book, clock: FakeClock) -> None:
    with acting(ANNA):
        feed = book.feeds.add(Feed("NGRID"))
        clock.advance(60)
        book.feeds.change(feed)
        book.feeds.change(Feed("NGRID", retention_hours=6))
    book.sites.add(Site("unl.edu"))
    changed, added = book.audit.page(Changes(who="anna"))
    assert (changed.action, changed.before, changed.after) == (
        "changed",
        {"retention_hours": 2.0},
        {"retention_hours": 6.0},
    )
    assert (added.action, added.before, added.role, added.peer) == ("added", None, "operator", "192.0.2.1")
    assert [one.subject for one in book.audit.page(Changes(kind="site"))] == ["unl.edu"]
    assert book.audit.page(Changes(end=clock.now())) == [added]
    assert book.audit.page(Changes(), before=changed.number) == [added]
    assert book.audit.forget_before(clock.now()) == 1


async def test_who_acts_is_known_on_the_writing_thread(ledger: Ledger) -> None:
    with acting(ANNA):
        await ledger.write(lambda book: book.feeds.add(Feed("NGRID")))
    await ledger.write(lambda book: book.sites.add(Site("unl.edu")))
    found = await ledger.read(lambda book: book.audit.page(Changes()))
    assert [(one.who, one.kind) for one in found] == [("hub", "site"), ("anna", "feed")]
