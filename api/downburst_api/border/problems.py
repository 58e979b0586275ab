"""Refusals as problem documents (RFC 9457): type, title, status, detail, code, and further fields."""

import errno
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from downburst.foundation.errors import DiskFull, DownburstError, NotSignedIn, TooMany
from downburst.supervision import FAULTS


def install(app: FastAPI) -> None:
    """Makes the application answer every error with a problem document."""
    app.add_exception_handler(DownburstError, _refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(OSError, _system)
    app.add_exception_handler(Exception, _unexpected)


def problem(status: int, *, title: str, detail: str, code: str, **extra: object) -> JSONResponse:
    """One problem document."""
    body = {"type": f"urn:downburst:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}
    return JSONResponse(body | extra, status, media_type=MEDIA_TYPE)


def refusal(error: DownburstError) -> JSONResponse:
    """The problem document of a refusal."""
    extra = {name: value for name, value in error.extra.items() if name not in _OWN_WORDS}
    answer = problem(error.status, title=error.title, detail=error.sentence, code=error.code, **extra)
    if isinstance(error, NotSignedIn):
        answer.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooMany):
        answer.headers["Retry-After"] = str(error.extra["retry_after_s"])
    return answer


async def _refusal(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, DownburstError):
        raise error
    return refusal(error)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    what = str(first["msg"]).removeprefix("Value error, ")
    detail = f"{where}: {what}; correct it, /docs has the format"
    return problem(400, title="The request can't be used", detail=detail, code="bad-request", field=where)


async def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    title = HTTPStatus(error.status_code).phrase
    detail = f"{request.method} {request.url.path}: {error.detail}; /docs lists all paths"
    answer = problem(error.status_code, title=title, detail=detail, code=title.lower().replace(" ", "-"))
    answer.headers.update(error.headers or {})
    return answer


async def _system(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return await _refusal(
            request, DiskFull("the hub's disk is full, so nothing was stored; free some space and send it again")
        )
    return await _unexpected(request, error)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    FAULTS.caught("api.request", error, f"the request {request.method} {request.url.path}")
    detail = f"the hub failed to handle this request ({type(error).__name__}); try again, and see its log"
    return problem(500, title="The hub failed", detail=detail, code="error")


_OWN_WORDS = frozenset({"type", "title", "status", "detail", "code"})
MEDIA_TYPE = "application/problem+json"
