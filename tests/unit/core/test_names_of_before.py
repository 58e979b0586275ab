"""Names that earlier releases took and this one does not: a ledger that holds some is read, and they are named."""

from pathlib import Path

import pytest
from sqlalchemy import text

from downburst.access import Role, User
from downburst.clock import FakeClock
from downburst.errors import NotFound
from downburst.ledger import Ledger
from downburst.ledger.databases import connect
from downburst.model import Feed, Site, Subscription


@pytest.fixture
def old(tmp_path: Path, clock: FakeClock) -> Ledger:
    """A ledger with a feed `..` that a site subscribes to and is limited in, and a user `+1`, beside good ones."""
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    ledger = Ledger.open(url, clock)
    with ledger.transaction() as book:
        for feed in ("NGRID", "OLD"):
            book.feeds.add(Feed(feed))
            book.sites.find("unl.edu") or book.sites.add(Site("unl.edu"))
            book.subscriptions.add(Subscription(0, "unl.edu", feed))
        book.users.add(User("anna", Role.VIEWER))
        book.users.add(User("bert", Role.ADMIN))
    ledger.close()
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        connection.execute(text("UPDATE feeds SET name = '..' WHERE name = 'OLD'"))
        connection.execute(text("UPDATE subscriptions SET feed = '..' WHERE feed = 'OLD'"))
        connection.execute(text("UPDATE users SET name = 'local' WHERE name = 'bert'"))
        connection.execute(text("""UPDATE sites SET limits = '[{"feed": "*", "pattern": "x"}]'"""))
    engine.dispose()
    return Ledger.open(url, clock)


def test_finding_17_names_of_before_are_set_aside_and_told(old: Ledger) -> None:
    with old.transaction() as book:
        assert [feed.name for feed in book.feeds.all()] == ["NGRID"]
        assert [wish.feed for wish in book.subscriptions.all()] == ["NGRID"]
        assert book.sites.one("unl.edu").limits == ()
        assert [user.name for user in book.users.all()] == ["anna"]
        assert book.users.find("local") is None, "the hub's own user is called so"
        assert (book.feeds.misnamed(), book.users.misnamed()) == ([".."], ["local"])
        with pytest.raises(NotFound):
            book.feeds.one("..")
    old.close()


def test_they_can_be_removed(old: Ledger) -> None:
    with old.transaction() as book:
        book.feeds.remove("..")
        book.users.remove("local")
    with old.transaction() as book:
        assert (book.feeds.misnamed(), book.users.misnamed()) == ([], [])
    old.close()
