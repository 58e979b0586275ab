"""Routes of sign-in at a provider: the ways to sign in, the redirect to the provider, and its answer."""

import logging
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from downburst.domain.access import Caller, User, acting
from downburst.foundation.errors import DownburstError, NotFound, TooMany
from downburst.ledger import Transaction
from downburst.network.addresses import network_of
from downburst_api.border.authorization import cookie_name, shown_by
from downburst_api.http.parameters import Hub
from downburst_api.oidc.admission import Person, admitted, granted, person_of
from downburst_api.oidc.attempts import SECONDS, Attempt
from downburst_api.oidc.provider import Provider
from downburst_api.oidc.refusals import Refusal, SignInRefused, sentences
from downburst_api.runtime import Runtime
from downburst_api.sessions.beginning import begin_session, keep_in_browser
from downburst_contract.access import SignInProvider, SignInWays

router = APIRouter(prefix="/v1/session", tags=["access"])


def provider_of(request: Request) -> Provider | None:
    """The provider of this hub; None if its users have passwords only."""
    found: Provider | None = request.app.state.provider
    return found


AnyProvider = Annotated[Provider | None, Depends(provider_of)]


@router.get("/ways")
async def ways_to_sign_in(provider: AnyProvider) -> SignInWays:
    """The ways to sign in: by password, and at the hub's provider of OpenID Connect, if it has one."""
    if provider is None:
        return SignInWays(provider=None, refusals={})
    name = provider.settings.display_name
    shown = SignInProvider(name=name, problem=await provider.problem())
    return SignInWays(provider=shown, refusals=dict(sentences(name)))


@router.get("/oidc", include_in_schema=False)
async def begin(
    request: Request, provider: AnyProvider, at: Annotated[str, Query(max_length=300)] = ""
) -> RedirectResponse:
    """Leads a browser to the provider; afterwards it returns to the place `at` on the page."""
    there, attempt = _existing(provider), Attempt.begun(at)
    try:
        answer = RedirectResponse(await there.sign_in_url(attempt, _callback(request, there)), 303)
    except SignInRefused as error:
        return _refused(request, error)
    answer.set_cookie(
        _cookie(request),
        attempt.cookie,
        max_age=SECONDS,
        httponly=True,
        # The answer comes by a link from the provider's page, with which a browser sends no cookie marked strict.
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return answer


class ProviderAnswer(BaseModel):
    """The parameters with which a provider leads a browser back (RFC 6749, 4.1.2; RFC 9207)."""

    state: Annotated[str, Field(max_length=200)] = ""
    code: Annotated[str, Field(max_length=4_096)] = ""
    error: Annotated[str, Field(max_length=200)] = ""
    iss: Annotated[str, Field(max_length=500)] | None = None


@router.get("/oidc/callback", include_in_schema=False)
async def end(
    hub: Hub, request: Request, provider: AnyProvider, answer: Annotated[ProviderAnswer, Query()]
) -> RedirectResponse:
    """Takes the provider's answer, begins a session, and leads the browser back to the page."""
    there, network = _existing(provider), network_of(shown_by(request.scope).peer)
    attempt = Attempt.of_cookie(request.cookies.get(_cookie(request)))
    try:
        # Counted before anything is checked, and uncounted if the sign-in succeeds.
        hub.gate.sign_ins_by_peer.take(network)
        back = await _signed_in(hub, request, there, attempt, answer)
    except SignInRefused as refused:
        return _refused(request, refused)
    except TooMany as refused:
        return _refused(request, SignInRefused(Refusal.TOO_MANY, refused.sentence))
    except DownburstError as failed:
        return _refused(request, SignInRefused(Refusal.FAILED, failed.sentence))
    hub.gate.sign_ins_by_peer.give_back(network)
    return back


async def _signed_in(
    hub: Runtime, request: Request, provider: Provider, attempt: Attempt | None, answer: ProviderAnswer
) -> RedirectResponse:
    """The way back to the page, with the cookie of a session."""
    if attempt is None or not attempt.has_state(answer.state):
        raise SignInRefused(Refusal.EXPIRED, "the answer belongs to no attempt of this browser")
    await _check_answer(provider, answer)
    claims = await provider.claims(answer.code, attempt, _callback(request, provider))
    user = await _user(hub, request, person_of(claims, provider.settings), provider)
    begun = await begin_session(hub, request, user, hours=provider.settings.session_hours)
    back = _to_page(attempt.place)
    back.delete_cookie(_cookie(request))
    keep_in_browser(back, request, begun)
    return back


async def _check_answer(provider: Provider, answer: ProviderAnswer) -> None:
    """Refuses an error, an answer without a code, and one of another provider (mix-up, RFC 9207)."""
    if answer.error:
        raise SignInRefused(Refusal.DENIED, f"the provider answers with the error {answer.error!r}")
    if not answer.code:
        raise SignInRefused(Refusal.UNVERIFIED, "the provider's answer has no code")
    metadata = await provider.metadata()
    if answer.iss != metadata.issuer and (answer.iss is not None or metadata.names_itself):
        raise SignInRefused(Refusal.UNVERIFIED, f"the answer is from the issuer {answer.iss!r}")


async def _user(hub: Runtime, request: Request, person: Person, provider: Provider) -> User:
    """The person's user with today's role. The refusal of a known person is recorded in the audit."""
    with acting(Caller(person.name, None, frozenset(), peer=shown_by(request.scope).peer)):
        try:
            grant = granted(person, provider.settings)
            user = await hub.ledger.write(lambda tx: admitted(tx, person, grant))
        except SignInRefused as refused:
            await hub.ledger.write(lambda tx, code=refused.refusal: _recorded(tx, person, code))  # type: ignore[misc]
            raise
    hub.gate.forget()
    return user


def _recorded(tx: Transaction, person: Person, code: Refusal) -> None:
    after = {"issuer": person.issuer, "subject": person.subject, "refusal": code.value}
    tx.access.audit.record("session", person.name, "refused", after=after)


def _existing(provider: Provider | None) -> Provider:
    if provider is None:
        raise NotFound("this hub has no provider for signing in; the setting access.oidc.issuer names one")
    return provider


def _refused(request: Request, refused: SignInRefused) -> RedirectResponse:
    """Leads back to the sign-in page, which shows the sentence for the code; the reason is logged."""
    reason = " ".join(refused.reason.split())
    _LOG.warning("sign-in at the provider refused (%s): %s", refused.refusal.value, reason)
    back = _to_page(f"sign-in-refused={refused.refusal.value}")
    back.delete_cookie(_cookie(request))
    return back


def _to_page(place: str) -> RedirectResponse:
    """The page, relative to the routes here, so that it is found behind a proxy that adds a path."""
    return RedirectResponse(f"{_PAGE}#{place}" if place else _PAGE, 303)


def _callback(request: Request, provider: Provider) -> str:
    """The address for the provider's answer, which is registered at the provider."""
    return f"{base_url(request, provider)}/v1/session/oidc/callback"


def base_url(request: Request, provider: Provider) -> str:
    """The hub's address in browsers, without a slash at its end."""
    return provider.settings.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def _cookie(request: Request) -> str:
    return f"{cookie_name(request.scope)}_oidc"


_LOG = logging.getLogger("downburst.api")
_PAGE = "../../../"
