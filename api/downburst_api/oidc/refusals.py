"""Outcomes of a sign-in at a provider that lead back to the sign-in page, each with its sentence."""

from collections.abc import Mapping
from enum import StrEnum


class Refusal(StrEnum):
    """The code of an outcome: the page's address carries it, and the page shows the hub's sentence."""

    UNREACHABLE = "unreachable"
    DENIED = "denied"
    EXPIRED = "expired"
    UNVERIFIED = "unverified"
    NO_GROUP = "no-group"
    SEVERAL_SITES = "several-sites"
    NO_SITE = "no-site"
    BAD_NAME = "bad-name"
    NAME_TAKEN = "name-taken"
    DISABLED = "disabled"
    TOO_MANY = "too-many"
    FAILED = "failed"


class SignInRefused(Exception):
    """A sign-in that ends without a session; the reason is for the log, and for the audit of a known person."""

    def __init__(self, refusal: Refusal, reason: str) -> None:
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason


def sentences(provider: str) -> Mapping[str, str]:
    """The sentences by code, with the name of the provider."""
    return {code.value: text.format(provider=provider) for code, text in _SENTENCES.items()}


_SENTENCES: Mapping[Refusal, str] = {
    Refusal.UNREACHABLE: "{provider} did not answer the hub. Try again in a minute, or sign in with a password.",
    Refusal.DENIED: "{provider} did not sign you in. Try again, or ask its administrator.",
    Refusal.EXPIRED: "This sign-in took longer than ten minutes, or began in another browser. Start again.",
    Refusal.UNVERIFIED: "The answer of {provider} could not be verified. The hub's log has the reason.",
    Refusal.NO_GROUP: "None of your groups at {provider} has access to this hub. Ask an administrator of the hub.",
    Refusal.SEVERAL_SITES: "Your groups at {provider} belong to several sites, and a user has one. Ask an "
    "administrator of the hub.",
    Refusal.NO_SITE: "This hub does not have the site of your group at {provider}. Ask an administrator of the hub.",
    Refusal.BAD_NAME: "Your name at {provider} can't be a user's name here. Ask an administrator of the hub.",
    Refusal.NAME_TAKEN: "This hub already has a user of your name who does not sign in at {provider}. Ask an "
    "administrator of the hub to remove that user first.",
    Refusal.DISABLED: "Your user is disabled on this hub. Ask an administrator of the hub.",
    Refusal.TOO_MANY: "Too many sign-ins failed from your address. Wait a minute, then try again.",
    Refusal.FAILED: "The hub could not complete the sign-in. Try again; its log has the reason.",
}
