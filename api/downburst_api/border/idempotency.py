"""Idempotent POSTs: a repeat with the same `Idempotency-Key` gets the first answer again, for a day.

The key is stored in the ledger before the request is carried out. If the hub stops in between, the outcome is
unknown, and the second request is answered so. Answers that hold a secret are not stored.
"""

import hashlib
from dataclasses import replace

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from downburst.foundation.errors import BadInput, DownburstError, KeyOfAnother, OutcomeUnknown
from downburst.ledger import Ledger
from downburst.ledger.repositories.answers import Answered
from downburst_api.border.budgets import tenant_of
from downburst_api.border.problems import refusal


class Idempotency:
    """The middleware; runs behind the guard, which finds the caller."""

    def __init__(self, app: ASGIApp, ledger: Ledger) -> None:
        self._app = app
        self._ledger = ledger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carries a request out, or repeats its answer."""
        key = Headers(scope=scope).get(HEADER) if scope["type"] == "http" and scope["method"] == "POST" else None
        if key is None or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        try:
            if not 1 <= len(key) <= LONGEST_KEY:
                raise BadInput(
                    f"{HEADER}: 1 to {LONGEST_KEY} characters are allowed, not {len(key)}; a UUID does well"
                )
            body = await _body(receive)
            wanted = _wanted(scope, key, body)
            before = await self._ledger.write(lambda tx: tx.access.answers.begin(wanted))
            answer = None if before is None else _again(before, wanted)
        except DownburstError as error:
            answer = refusal(error)
        if answer is not None:
            await answer(scope, receive, send)
            return
        await self._carry_out(wanted, scope, _replayed(body), send)

    async def _carry_out(self, wanted: Answered, scope: Scope, receive: Receive, send: Send) -> None:
        told = _Told(send)
        try:
            await self._app(scope, receive, told)
        finally:
            if told.status is None or told.status >= NOT_DONE:
                await self._ledger.write(lambda tx: tx.access.answers.give_back(wanted.key_sha256))
            else:
                answered = told.answered(wanted, secret=_tells_a_secret(scope["path"]))
                await self._ledger.write(lambda tx: tx.access.answers.end(answered))
        await told.let_go()


class _Told:
    """Buffers an answer until it is stored, so that a repeat never gets a different one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._messages: list[Message] = []
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self._messages.append(message)

    async def let_go(self) -> None:
        """Sends the buffered answer."""
        for message in self._messages:
            await self._send(message)

    def answered(self, wanted: Answered, *, secret: bool) -> Answered:
        """The record to store."""
        body = b"".join(message.get("body", b"") for message in self._messages)
        headers = Headers(raw=self._messages[0]["headers"])
        kept = None if secret or len(body) > LONGEST_ANSWER else body.decode()
        return replace(wanted, status=self.status, body=kept, etag=headers.get("etag", ""))


def _again(before: Answered, wanted: Answered) -> Response:
    if before.request_sha256 != wanted.request_sha256:
        raise KeyOfAnother(f"this {HEADER} was used with another request before; use another key")
    if before.status is None:
        raise OutcomeUnknown(
            "the request with this key is in progress, or the hub stopped during it; check the result before "
            "you repeat it with another key"
        )
    if before.body is None:
        raise OutcomeUnknown(
            "the request with this key was carried out, and its answer has a secret that is shown once; create "
            "another one with another key, and revoke the first"
        )
    answer = Response(before.body, before.status, media_type="application/json" if before.body else None)
    headers = MutableHeaders(raw=answer.raw_headers)
    headers["idempotency-replayed"] = "true"
    if before.etag:
        headers["etag"] = before.etag
    return answer


def _wanted(scope: Scope, key: str, body: bytes) -> Answered:
    caller = scope["downburst_caller"]
    who = f"{caller.name}\n{caller.peer if not caller.known else ''}\n{key}"
    request = hashlib.sha256(f"{scope['path']}?{scope['query_string'].decode('latin-1')}\n".encode() + body)
    return Answered(hashlib.sha256(who.encode()).hexdigest(), request.hexdigest(), tenant=tenant_of(caller))


async def _body(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadInput("the request was cut off; send it again")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
        if size > LONGEST_REQUEST:
            raise BadInput(f"a request with a key may have {LONGEST_REQUEST} bytes; send it without {HEADER}")
    return b"".join(parts)


def _replayed(body: bytes) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _tells_a_secret(path: str) -> bool:
    return path in SECRET_PATHS or path.endswith(SECRET_ENDS) or path.startswith("/v1/session")


HEADER = "Idempotency-Key"
LONGEST_KEY = 200
LONGEST_REQUEST = 1_000_000
LONGEST_ANSWER = 100_000
NOT_DONE = 400
"""Status from which on nothing is stored: refusals and failures change nothing, so the same key may try again."""
SECRET_PATHS = frozenset({"/v1/users", "/v1/access-tokens", "/v1/access-requests", "/v1/access-requests/state"})
SECRET_ENDS = ("/tokens", "/invitations", "/approval")
