"""One-time links with which users choose a password."""

from datetime import timedelta

from downburst.domain.access import LinkKind, User, hashed
from downburst.foundation.errors import Refused
from downburst.ledger import Transaction
from downburst_contract.access import Invitation


def invited(tx: Transaction, user: User, secret: str) -> Invitation:
    """Stores a link for a local user, and records its creation in the audit log."""
    if not user.is_local:
        raise Refused(f"{user.name} signs in at {user.issuer} and has no password here; no invitation is needed")
    link = tx.access.links.add(hashed(secret), LinkKind.INVITATION, lifetime=INVITATION, user=user.name)
    tx.access.audit.record("invitation", user.name, "added", after={"expires_at": link.expires_at})
    return Invitation(fragment=f"#invitation={secret}", link_expires_at=link.expires_at)


INVITATION = timedelta(days=7)
