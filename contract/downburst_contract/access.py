"""Who may do what: users, access tokens, sessions, one-time links, requests for access, and the audit."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from downburst.domain import access
from downburst.domain.access import RequestState, Role, Scope
from downburst_contract.base import Answer, OffsetTime, Shape, Text, members

_Password = Annotated[str, Field(min_length=1, max_length=2048)]
_Name = Annotated[str, Field(min_length=1, max_length=64)]
_Site = Annotated[str, Field(max_length=63)]
_Feeds = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=100)]


class SignIn(Shape):
    """A user's name and password."""

    user: _Name
    password: _Password
    bearer: bool = False
    """Programs get the session's secret in the answer; browsers get it as a cookie that pages can't read."""


class LinkUse(Shape):
    """A one-time link, and what it asks for: name and password of the first administrator, or a new password."""

    link: Annotated[str, Field(min_length=1, max_length=200)]
    user: _Name | None = None
    password: _Password | None = None


class PasswordChange(Shape):
    """The own password."""

    old: _Password
    new: _Password


class UserChange(Shape):
    """Properties of a user; those left out stay."""

    role: Role | None = None
    site: _Site | None = None
    active: bool | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class UserNew(Shape):
    """A user to invite."""

    user: Annotated[str, Field(max_length=64)]
    role: Role
    site: _Site | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class AccessTokenNew(Shape):
    """An access token to make."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    role: Role
    scopes: Annotated[list[Scope], Field(max_length=20)] | None = None
    """Fewer than the role has; all of the role's if left out."""
    site: _Site | None = None
    days: Annotated[float, Field(gt=0, le=3_660)] = 365

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class RequestNew(Shape):
    """A site that asks to be served, with its endpoint."""

    site: Annotated[str, Field(min_length=1, max_length=63)]
    organisation: Annotated[str, Field(min_length=1, max_length=500)]
    contact: Annotated[str, Field(min_length=3, max_length=500)]
    place: Text = ""
    multicast_interface: Annotated[str, Field(max_length=64)] = ""
    access_rate_bps: Annotated[float, Field(gt=0, le=1e15)] | None = None
    feeds: _Feeds | None = None
    note: Annotated[str, Field(max_length=2000)] = ""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"access_rate_bps"}


class RequestSecret(Shape):
    """What an asker was told when asking."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


class Approval(Shape):
    """Which feeds the site may take; what it asked for, if left out."""

    allow: _Feeds | None = None
    answer: Text = ""


class Refusal(Shape):
    """Why not, for the asker to read."""

    answer: Annotated[str, Field(min_length=1, max_length=500)]


class Rights(Answer):
    """Somebody's rights; without a login `user` is null."""

    user: str | None
    role: Role | None
    site: str | None
    """The one site of a user with the role `site`."""
    scopes: list[Scope]


class Who(Rights):
    """The caller of a hub."""

    hub: str


class SessionBegun(Rights):
    """A session; its secret is told to programs that ask for it."""

    expires_at: OffsetTime
    session: str | None = None
    """Left out for browsers, which get a cookie."""


class SignedOut(Answer):
    """The end of a session."""

    continue_at: str | None
    """The provider's page on which the user signs out there as well; null: there is none."""


class SignInProvider(Answer):
    """The provider of OpenID Connect at which users of a hub may sign in."""

    name: str
    problem: str | None
    """Why signing in there fails at present, in one sentence; null: it answers."""


class SignInWays(Answer):
    """The ways to sign in to a hub: by password, and by its provider if it has one."""

    provider: SignInProvider | None
    refusals: dict[str, str]
    """Sentences by the codes with which a sign-in at the provider leads back: `#sign-in-refused=CODE`."""


class SignInLink(Answer):
    """A link that signs a browser in once: what follows the page's address."""

    fragment: str
    expires_at: datetime


class Invitation(Answer):
    """A link to choose a password: what follows the page's address."""

    fragment: str
    link_expires_at: datetime


class User(Answer):
    """A person who signs in with a password, or at a provider of OpenID Connect."""

    user: str
    role: Role
    site: str | None
    active: bool
    has_password: bool
    """False until the invitation was accepted, and for users of a provider."""
    created_at: datetime | None
    issuer: str | None
    """The provider at which the user signs in; null: a local user."""

    @classmethod
    def of(cls, user: access.User, /, **more: Any) -> Self:
        """A user for clients."""
        kept = members(user, without=("password_hash", "subject"), user="name")
        return cls(**kept, has_password=user.password_hash is not None, **more)


class UserInvited(User):
    """A user with an invitation, which is shown only here."""

    fragment: str
    link_expires_at: datetime


class AccessToken(Answer):
    """A program's right to use the API until it expires or is revoked; without its secret."""

    number: int
    name: str
    """What it is for, in the words of whoever made it."""
    role: Role
    scopes: list[Scope]
    site: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: access.AccessToken, /, **more: Any) -> Self:
        """A token for clients."""
        return cls(**members(token, without=("sha256",)), **more)


class AccessTokenMade(AccessToken):
    """An access token with its text, which is shown only here."""

    token: str


class RequestMade(Answer):
    """A request for access; the secret gives access to its state, and is shown only here."""

    number: int
    secret: str
    fragment: str


class RequestStateShown(Answer):
    """What became of a request; once approved, with a link to choose a password, until one is chosen."""

    number: int
    site: str
    state: RequestState
    answer: str
    asked_at: datetime | None
    user: str | None
    fragment: str | None


class Applicant(Answer):
    """A site that is not served yet, with the endpoint that it registers."""

    site: str
    organisation: str
    contact: str
    place: str
    multicast_interface: str
    access_rate_bps: float | None
    feeds: list[str]
    note: str


class AccessRequest(Applicant):
    """A site that asks to be served, with the decision about it."""

    number: int
    peer: str
    asked_at: datetime | None
    state: RequestState
    decided_at: datetime | None
    decided_by: str
    answer: str
    invites: str | None
    """The user that its approval made, while that one is kept."""

    @classmethod
    def of(cls, request: access.AccessRequest) -> Self:
        """A request for operators."""
        return cls(**members(request, without=("secret_sha256", "decision")), **members(request.decision))


class Change(Answer):
    """One change; `before` and `after` hold what differs, or the whole of what was added or removed."""

    number: int
    at: datetime
    who: str
    role: str | None
    peer: str
    action: str
    kind: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ChangePage(Answer):
    """A page of changes."""

    items: list[Change]
    next: int | None
    """The cursor of the next page; null: there is none."""
