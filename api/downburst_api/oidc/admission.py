"""Admission: from the verified claims of a person to a user of this hub, with the role of a group."""

from dataclasses import dataclass, replace
from typing import Any

from downburst.domain.access import Grant, SeveralSites, User, grant_of
from downburst.foundation.errors import NotFound
from downburst.foundation.names import is_user_name
from downburst.ledger import Transaction
from downburst.settings.oidc import OidcSettings
from downburst_api.oidc.refusals import Refusal, SignInRefused


@dataclass(frozen=True, slots=True)
class Person:
    """A person as the provider knows one."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]


def person_of(claims: dict[str, Any], settings: OidcSettings) -> Person:
    """The person in verified claims; raises `SignInRefused` for a name or subject that no user can have."""
    subject, name = claims["sub"], claims.get(settings.name_claim)
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise SignInRefused(Refusal.UNVERIFIED, f"the claim sub is no text of 1 to {LONGEST_SUBJECT} characters")
    if not isinstance(name, str) or not is_user_name(name):
        shown = str(name)[:80]
        raise SignInRefused(Refusal.BAD_NAME, f"{settings.name_claim} is {shown!r}, which can't be a user's name")
    return Person(settings.issuer, subject, name, _groups(claims.get(settings.groups_claim)))


def granted(person: Person, settings: OidcSettings) -> Grant:
    """The grant of the person's groups; raises `SignInRefused` without one."""
    try:
        found = grant_of(person.groups, settings.grants)
    except SeveralSites as error:
        raise SignInRefused(Refusal.SEVERAL_SITES, error.sentence) from error
    if found is None:
        count = len(person.groups)
        reason = f"none of {count} groups in the claim {settings.groups_claim} is in access.oidc.roles"
        raise SignInRefused(Refusal.NO_GROUP, reason)
    return found


def admitted(tx: Transaction, person: Person, grant: Grant) -> User:
    """The person's user, who gets the grant's role; raises `SignInRefused` if there can't be one.

    A user is found by issuer and subject, never by name: names at a provider change owners.
    """
    users = tx.access.users
    kept = users.of_identity(person.issuer, person.subject)
    try:
        if kept is None:
            return _added(tx, person, grant)
        if not kept.active:
            raise SignInRefused(Refusal.DISABLED, f"the user {kept.name} is disabled")
        if (kept.role, kept.site) == (grant.role, grant.site):
            return kept
        return users.change(replace(kept, role=grant.role, site=grant.site))
    except NotFound as error:
        raise SignInRefused(Refusal.NO_SITE, error.sentence) from error


def _added(tx: Transaction, person: Person, grant: Grant) -> User:
    if tx.access.users.find(person.name) is not None:
        reason = f"the user {person.name} exists and has another identity, or signs in with a password"
        raise SignInRefused(Refusal.NAME_TAKEN, reason)
    user = User(person.name, grant.role, grant.site, issuer=person.issuer, subject=person.subject)
    return tx.access.users.add(user)


def _groups(claim: object) -> tuple[str, ...]:
    """The groups in a claim, which some providers write as a single text; other values count as none."""
    given = [claim] if isinstance(claim, str) else claim
    if not isinstance(given, list):
        return ()
    return tuple(group for group in given[:MOST_GROUPS] if isinstance(group, str))


LONGEST_SUBJECT = 255
MOST_GROUPS = 10_000
