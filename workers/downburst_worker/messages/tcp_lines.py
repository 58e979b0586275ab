"""The lines about TCP profiles, from and to the types of the model."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from downburst.domain.tcp.profiles import (
    BUFFER_BYTES,
    CONGESTION,
    CONNECTIONS,
    NAME,
    PACING_BPS,
    AppliedProfile,
    ProfileState,
    TcpKnobs,
    TcpProfile,
    TcpTrial,
    TrialStep,
)
from downburst.domain.tcp.transfers import Transfer
from downburst.foundation.bounds import INTEGER_MAX, OutOfBounds, count, entries, integer, maybe, sentence, shown

Line = dict[str, Any]
Word = TypeVar("Word", bound=StrEnum)


def tcp_profiles_job(profiles: Iterable[TcpProfile]) -> Line:
    """The job with the whole list of profiles."""
    return {"profiles": [_profile(one) for one in profiles]}


def tcp_trial(line: Line, *, at: datetime, sender: str = "") -> TcpTrial:
    """The report of a step of a trial; `at`: the time of the report."""
    return TcpTrial(
        profile=_name(line["name"]),
        step=_one_of(line["step"], TrialStep),
        knobs=_knobs(line["knobs"]),
        before=_knobs(line["before"]),
        canaries=integer(line["canaries"], least=0, most=MOST_CONNECTIONS),
        others=integer(line["others"], least=0, most=MOST_CONNECTIONS),
        canary_bps=maybe(line.get("canary_bps"), count),
        others_bps=maybe(line.get("others_bps"), count),
        windows=integer(line["windows"], least=0, most=MOST_WINDOWS),
        reason=sentence(line["reason"])[:REASON_CHARS],
        at=at,
        sender=sender,
    )


def applied_profile(value: object) -> AppliedProfile:
    """The profile that applies to a session."""
    if not isinstance(value, dict):
        raise OutOfBounds(f"{shown(value)} is no TCP profile of a session")
    return AppliedProfile(_name(value["name"]), _one_of(value["state"], ProfileState), _knobs(value["knobs"]))


def transfers(value: object) -> tuple[Transfer, ...]:
    """Single products on their way to a site."""
    return tuple(map(_transfer, entries(value, most=MOST_TRANSFERS)))


def _transfer(line: Any) -> Transfer:
    return Transfer(count(line["bytes"]), integer(line["took_us"], least=1, most=INTEGER_MAX))


def _profile(profile: TcpProfile) -> Line:
    return {
        "name": profile.name,
        "prefix": profile.prefix,
        "mode": profile.mode.value,
        "knobs": asdict(profile.knobs),
        "learnt": None if profile.learnt is None else asdict(profile.learnt),
    }


def _knobs(value: Any) -> TcpKnobs:
    if not isinstance(value, dict):
        raise OutOfBounds(f"{shown(value)} are no values of a TCP profile")
    return TcpKnobs(
        congestion=maybe(value.get("congestion"), _congestion),
        send_buffer_bytes=maybe(value.get("send_buffer_bytes"), _buffer),
        receive_buffer_bytes=maybe(value.get("receive_buffer_bytes"), _buffer),
        pacing_bps=maybe(value.get("pacing_bps"), _pacing),
        connections=maybe(value.get("connections"), _connections),
    )


def _name(value: object) -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    raise OutOfBounds(f"{shown(value)} is not the name of a TCP profile")


def _congestion(value: object) -> str:
    if isinstance(value, str) and CONGESTION.fullmatch(value):
        return value
    raise OutOfBounds(f"{shown(value)} is not the name of a congestion control")


def _buffer(value: object) -> int:
    return _between(value, BUFFER_BYTES)


def _pacing(value: object) -> int:
    return _between(value, PACING_BPS)


def _connections(value: object) -> int:
    return _between(value, CONNECTIONS)


def _between(value: object, bounds: tuple[int, int]) -> int:
    return integer(value, least=bounds[0], most=bounds[1])


def _one_of(value: object, words: type[Word]) -> Word:
    found = next((word for word in words if word == value), None)
    if found is None:
        raise OutOfBounds(f"{shown(value)} is none of {', '.join(words)}")
    return found


MOST_CONNECTIONS = 2**31 - 1
MOST_TRANSFERS = 64
"""Of a session in a second; the node reports a few."""
MOST_WINDOWS = 2**31 - 1
REASON_CHARS = 500
"""The node's sentences are shorter; the ledger keeps the last one of each profile."""
