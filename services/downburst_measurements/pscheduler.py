"""A client of pScheduler's REST interface: bounded answers, time-outs, verified TLS, no redirections."""

import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from downburst.foundation.errors import BadInput, Failure, NotFound
from downburst_measurements.tasks import Task


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task."""

    url: str
    state: str
    """pScheduler's name: pending, on-deck, running, finished, failed, missed, nonstart and others."""
    starts: str
    ends: str
    error: str
    """The error that pScheduler names; empty: none."""


class PScheduler:
    """The pScheduler of one test point."""

    def __init__(
        self,
        url: str,
        *,
        login: tuple[str, str] | None = None,
        ca_file: Path | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`url`: such as https://ps.example.edu/pscheduler; `login`: user and password, never over plain HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.username is not None:
            raise BadInput(f"{url!r} is no address of a pScheduler; write https://HOST/pscheduler")
        if login is not None and parts.scheme != "https":
            raise BadInput("a password is not sent over plain HTTP; use https://")
        self._url = url.rstrip("/")
        self._client = httpx.Client(
            auth=login,
            verify=ssl.create_default_context(cafile=ca_file),
            timeout=STEP_S,
            follow_redirects=False,
            transport=transport,
        )

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the connections."""
        self._client.close()

    def tests(self) -> list[str]:
        """The types of tests that the test point has."""
        found = self._ask("GET", f"{self._url}/tests")
        return sorted(_name(one) for one in _sequence(found, "a list of tests"))

    def add(self, task: Task) -> str:
        """Starts a task; returns its address."""
        made = self._ask("POST", f"{self._url}/tasks", body=task.body())
        if not isinstance(made, str):
            raise self._unexpected("the address of a task")
        return self._within(made)

    def end(self, task_url: str) -> None:
        """Ends a task: no further run begins."""
        self._ask("DELETE", self._within(task_url), has_answer=False)

    def runs(self, task_url: str, *, limit: int = 10) -> list[Run]:
        """The first runs of a task by their start, at most `limit`."""
        found = self._ask("GET", f"{self._within(task_url)}/runs", params={"limit": limit})
        addresses = _sequence(found, "a list of runs")[:limit]
        return [self._run(one) for one in addresses if isinstance(one, str)]

    def _run(self, url: str) -> Run:
        found = self._ask("GET", self._within(url))
        if not isinstance(found, dict):
            raise self._unexpected("a run")
        result = found.get("result-merged")
        error = result.get("error") if isinstance(result, dict) else None
        values = (found.get(name) for name in ("state", "start-time", "end-time"))
        state, starts, ends = (value[:40] if isinstance(value, str) else "" for value in values)
        return Run(
            url, state or "not known", starts, ends, " ".join(error.split())[:300] if isinstance(error, str) else ""
        )

    def _within(self, url: str) -> str:
        """An address below this pScheduler: no answer leads the client elsewhere."""
        if not url.startswith(f"{self._url}/tasks/"):
            raise Failure(f"{self._url} names the address {url[:200]!r}, which is not below its own tasks")
        return url

    def _ask(
        self,
        method: str,
        url: str,
        *,
        body: object = None,
        params: dict[str, int] | None = None,
        has_answer: bool = True,
    ) -> Any:
        try:
            with self._client.stream(method, url, json=body, params=params) as answer:
                text = _read(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Failure(
                f"the pScheduler {self._url} can't be asked: {str(error) or type(error).__name__}"
            ) from None
        if not answer.is_success:
            raise self._refused(answer.status_code, text)
        if not has_answer:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._unexpected("JSON") from None

    def _refused(self, status: int, text: bytes) -> Failure | NotFound:
        said = " ".join(text.decode(errors="replace").split())[:500]
        kind = NotFound if status == httpx.codes.NOT_FOUND else Failure
        return kind(f"the pScheduler {self._url} refuses with {status}{f': {said}' if said else ''}")

    def _unexpected(self, wanted: str) -> Failure:
        return Failure(f"the answer of {self._url} is not {wanted}; check that the address is that of a pScheduler")


def _read(answer: httpx.Response) -> bytes:
    gathered = bytearray()
    for part in answer.iter_bytes():
        gathered += part
        if len(gathered) > MOST_BYTES:
            raise Failure(f"the answer of {answer.url.host} has more than {MOST_BYTES:,} bytes, and is not read")
    return bytes(gathered)


def _sequence(found: object, wanted: str) -> Sequence[object]:
    if not isinstance(found, list):
        raise Failure(f"the answer of the pScheduler is not {wanted}")
    return found[:MOST_ITEMS]


def _name(test: object) -> str:
    name = test.get("name") if isinstance(test, dict) else test
    return str(name).rstrip("/").rpartition("/")[2][:64]


STEP_S = 20.0
"""Seconds for a connection, and for each read: pScheduler checks a task with all participants before it answers."""
MOST_BYTES = 2_097_152
MOST_ITEMS = 1_000
