"""Requests to parts in other processes: a call with typed arguments goes over the bus, and so does its answer.

A part that is working on an answer reports it every second, so that the caller can tell a slow answer from a dead
part. Arguments and answers may be longer than a record of the brokers: they are sent in pieces.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter, create_model
from pydantic_core import to_jsonable_python

from downburst.bus.local import BusSubscription
from downburst.bus.port import Bus
from downburst.domain.access import THE_HUB, acting, who_acts
from downburst.domain.events import PartAnswered, PartAsked
from downburst.foundation.errors import DownburstError, Failure, PartAway
from downburst.parts.names import Part, SenderPart
from downburst.supervision import FAULTS, call, start

T = TypeVar("T")
Method = Callable[..., Awaitable[T]]
Answer = Callable[[str], Awaitable[str]]
"""From the arguments to the result of a method, both as JSON."""


class Remote:
    """A part in another process, from the caller's side."""

    def __init__(self, bus: Bus, part: Part | SenderPart) -> None:
        self._bus = bus
        self._part = part

    async def ask(self, method: Method[T], **arguments: Any) -> T:
        """Returns or raises the result of the part's method; raises `PartAway` if the part does not respond."""
        spoken = _spoken(method)
        asked = uuid.uuid4().hex
        caller = None if who_acts() is THE_HUB else who_acts()
        content = await asyncio.to_thread(spoken.write, arguments)
        records = [
            PartAsked(asked, self._part, spoken.name, piece, number, pieces, caller)
            for number, piece, pieces in _pieces(content)
        ]
        with self._bus.subscribe(PartAnswered, limit=WAITING) as events:
            text, refused = await self._whole(events, records)
        if refused:
            raise _raised(text)
        result: T = await asyncio.to_thread(spoken.read_result, text)
        return result

    async def _whole(self, events: BusSubscription, records: Sequence[PartAsked]) -> tuple[str, bool]:
        """The text of an answer, and True if it is a refusal."""
        found: dict[int, str] = {}
        answer = await self._first_sign(events, records)
        while answer is not None:
            if answer.pieces:
                found[answer.piece] = answer.content
            if answer.pieces and len(found) == answer.pieces:
                return "".join(found[number] for number in range(answer.pieces)), answer.refused
            answer = await _sign(events, records[0].ask, within_s=SIGN_S)
        raise PartAway(
            f"the {self._part} does not answer; start it again: downburst {self._part.command}, then check what "
            "became of this request"
        )

    async def _first_sign(self, events: BusSubscription, records: Sequence[PartAsked]) -> PartAnswered | None:
        """Sends the request until the part confirms it: a standby may be taking over at that moment."""
        for _ in range(ASKED_TIMES):
            for record in records:
                self._bus.publish(record)
            sign = await _sign(events, records[0].ask, within_s=SIGN_S / ASKED_TIMES)
            if sign is not None:
                return sign
        return None


async def answer_for_good(bus: Bus, part: Part | SenderPart, answers: Mapping[str, Answer]) -> None:
    """Answers the requests to a part until cancelled, several at a time; a repeated request is answered once."""
    waiting: dict[str, dict[int, str]] = {}
    known: dict[str, None] = {}
    with bus.subscribe(PartAsked, limit=WAITING) as questions:
        async for asked in questions:
            if not isinstance(asked, PartAsked) or asked.part != part or asked.ask in known:
                continue
            pieces = waiting.setdefault(asked.ask, {})
            pieces[asked.piece] = asked.content
            if len(pieces) == asked.pieces:
                del waiting[asked.ask]
                known[asked.ask] = None
                bus.publish(PartAnswered(asked.ask))
                content = "".join(pieces[number] for number in range(asked.pieces))
                start("parts.answer", _answer(bus, asked, content, answers.get(asked.question)))
            for kept, most in ((waiting, MOST_INCOMPLETE), (known, MOST_KNOWN)):
                while len(kept) > most:
                    del kept[next(iter(kept))]


def answers_of(target: object, *methods: Method[Any]) -> dict[str, Answer]:
    """The answers of an object to calls of methods, named by the class known to the caller."""
    return {_spoken(method).name: _spoken(method).answered_by(target) for method in methods}


class _Spoken:
    """The encoding of a method's calls: arguments and result as JSON of their types."""

    def __init__(self, method: Method[Any]) -> None:
        hints = get_type_hints(method)
        self._result: TypeAdapter[Any] = TypeAdapter(hints.pop("return"))
        fields: dict[str, Any] = {name: (hint, ...) for name, hint in hints.items()}
        self._arguments: type[BaseModel] = create_model(method.__qualname__, **fields)
        self._method = method.__name__
        self.name = method.__qualname__

    def write(self, arguments: Mapping[str, Any]) -> str:
        return self._arguments.model_construct(**arguments).model_dump_json()

    def read_result(self, text: str) -> Any:
        return self._result.validate_json(text)

    def answered_by(self, target: object) -> Answer:
        method = getattr(target, self._method)

        async def answer(content: str) -> str:
            given = await asyncio.to_thread(self._arguments.model_validate_json, content)
            result = await method(**{name: getattr(given, name) for name in type(given).model_fields})
            return (await asyncio.to_thread(self._result.dump_json, result)).decode()

        return answer


@cache
def _spoken(method: Method[Any]) -> _Spoken:
    return _Spoken(method)


async def _sign(events: BusSubscription, asked: str, *, within_s: float) -> PartAnswered | None:
    """The next answer, or sign of work on it; None after a timeout."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while (event := await events.next()) is not None:
                if isinstance(event, PartAnswered) and event.ask == asked:
                    return event
    return None


async def _answer(bus: Bus, asked: PartAsked, content: str, answer: Answer | None) -> None:
    with acting(asked.caller or THE_HUB):
        working = start("parts.answer", _text(asked, content, answer or _unknown(asked)))
    while not (await asyncio.wait({working}, timeout=WORKING_S))[0]:
        bus.publish(PartAnswered(asked.ask))
    text, refused = await working
    for number, piece, pieces in _pieces(text):
        bus.publish(PartAnswered(asked.ask, piece, number, pieces, refused))


def _unknown(asked: PartAsked) -> Answer:
    async def refuse(_content: str) -> str:
        raise Failure(f"the {asked.part} does not know the question {asked.question}; both need the same release")

    return refuse


async def _text(asked: PartAsked, content: str, answer: Answer) -> tuple[str, bool]:
    """The text of an answer, and True if it is a refusal."""
    try:
        return await call("parts.answer", partial(answer, content)), False
    except DownburstError as error:
        return _refusal(error), True
    except Exception as error:  # noqa: BLE001
        FAULTS.caught("parts.answer", error, f"the question {asked.question}")
        return _refusal(Failure(f"the {asked.part} met an unexpected error; its log has the reason")), True


def _refusal(error: DownburstError) -> str:
    told = {"kind": type(error).__name__, "sentence": error.sentence, "extra": to_jsonable_python(error.extra)}
    return json.dumps(told)


def _raised(text: str) -> DownburstError:
    told = json.loads(text)
    kind = next((kind for kind in _kinds(DownburstError) if kind.__name__ == told["kind"]), Failure)
    return kind(told["sentence"], **told["extra"])


def _kinds(kind: type[DownburstError]) -> Iterator[type[DownburstError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _pieces(text: str) -> Iterator[tuple[int, str, int]]:
    """Number, content and count of the pieces of a text."""
    pieces = [text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)] or [""]
    for number, piece in enumerate(pieces):
        yield number, piece, len(pieces)


WAITING = 4_096
MOST_INCOMPLETE = 64
"""Incomplete requests: those of processes that ended halfway."""
MOST_KNOWN = 4_096
"""Requests remembered so that none is answered twice."""
ASKED_TIMES = 4
PIECE = 200_000
"""Characters; quoted once more as JSON they stay below the megabyte that brokers accept by default."""
WORKING_S = 1.0
SIGN_S = 8.0
"""A busy machine takes seconds even for a trivial answer."""
