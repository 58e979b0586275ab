"""Names that earlier releases accepted and this one refuses: a ledger with such names opens, and they are listed."""

from pathlib import Path

import pytest
from sqlalchemy import text

from downburst.domain.access import Role, User
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import NotFound
from downburst.ledger import Ledger
from downburst.ledger.storage.databases import connect


@pytest.fixture
def old(tmp_path: Path, clock: FakeClock) -> Ledger:
    """A ledger with good names, and with a subscribed feed `..`, a limit on a feed `*` and a user `local`."""
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    ledger = Ledger.open(url, clock)
    with ledger.transaction() as tx:
        for feed in ("NGRID", "OLD"):
            tx.feeds.add(Feed(feed))
            tx.sites.find("unl.edu") or tx.sites.add(Site("unl.edu"))
            tx.subscriptions.add(Subscription(0, "unl.edu", feed))
        tx.access.users.add(User("anna", Role.VIEWER))
        tx.access.users.add(User("bert", Role.ADMIN))
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
    with old.transaction() as tx:
        assert [feed.name for feed in tx.feeds.all()] == ["NGRID"]
        assert [wish.feed for wish in tx.subscriptions.all()] == ["NGRID"]
        assert tx.sites.one("unl.edu").limits == ()
        assert [user.name for user in tx.access.users.all()] == ["anna"]
        assert tx.access.users.find("local") is None, "the hub's own user is called so"
        assert (tx.feeds.misnamed(), tx.access.users.misnamed()) == ([".."], ["local"])
        with pytest.raises(NotFound):
            tx.feeds.one("..")
    old.close()


def test_they_can_be_removed(old: Ledger) -> None:
    with old.transaction() as tx:
        tx.feeds.remove("..")
        tx.access.users.remove("local")
    with old.transaction() as tx:
        assert (tx.feeds.misnamed(), tx.access.users.misnamed()) == ([], [])
    old.close()
