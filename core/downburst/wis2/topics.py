"""Topics of WIS2: the levels of the hierarchy (wmo-im/wis2-topic-hierarchy), read without its lists of codes.

origin/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop
│      │ │    │      │    └ policy of the data       └ sub-topics
│      │ │    │      └ data or metadata
│      │ │    └ centre-id
│      └─┴ version and name of the hierarchy
└ channel: origin, cache or monitor
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from downburst.foundation.errors import BadInput


class Channel(StrEnum):
    """The first level: who publishes."""

    ORIGIN = "origin"
    CACHE = "cache"
    MONITOR = "monitor"


class Policy(StrEnum):
    """WMO's unified data policy, the sixth level of data."""

    CORE = "core"
    RECOMMENDED = "recommended"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic on which a notification came, or is to go."""

    text: str
    channel: Channel
    centre: str
    """The centre-id: a domain's end and a name, such as `de-dwd`."""
    kind: str
    """`data` or `metadata`; of monitor topics whatever follows the centre-id."""
    policy: Policy | None
    """None: of metadata and monitor topics."""

    def on(self, channel: Channel) -> str:
        """The same topic on another channel."""
        return f"{channel}{self.text[len(self.channel) :]}"


def read_topic(text: str) -> Topic:
    """The levels of a topic; one sentence for the first that breaks the hierarchy's form."""
    if len(text) > LONGEST_TOPIC or not _TOPIC.fullmatch(text):
        raise BadInput(f"the topic {text[:120]!r} has other levels than CHANNEL/a/wis2/CENTRE/…, or other characters")
    channel, _, _, centre, *rest = text.split("/")
    if channel not in list(Channel):
        raise BadInput(f"the topic {text[:120]!r} begins with none of {', '.join(Channel)}")
    kind = rest[0] if rest else ""
    if channel == Channel.MONITOR:
        return Topic(text, Channel.MONITOR, centre, kind, None)
    if kind == "metadata" and len(rest) == 1:
        return Topic(text, Channel(channel), centre, kind, None)
    if kind != "data" or len(rest) < LEAST_DATA_LEVELS or rest[1] not in list(Policy):
        raise BadInput(f"the topic {text[:120]!r} is neither …/metadata nor …/data/core/… or …/data/recommended/…")
    return Topic(text, Channel(channel), centre, kind, Policy(rest[1]))


def check_filter(text: str) -> str:
    """A filter for a subscription: a topic in which `+` stands for one level, and `#` at the end for all below."""
    if len(text) > LONGEST_TOPIC or not _FILTER.fullmatch(text):
        raise BadInput(f"{text[:120]!r} is no filter of topics; write one such as {EXAMPLE}")
    if text.split("/", maxsplit=1)[0] not in list(Channel):
        channels = ", ".join(Channel)
        raise BadInput(f"the filter {text[:120]!r} begins with none of {channels}; write one such as {EXAMPLE}")
    return text


def advice_on(text: str) -> str:
    """The reason for which a filter is unwise, as a sentence; empty if there is none (guide 1.2.3)."""
    levels = text.split("/")
    policy = levels[5] if len(levels) > 5 else "#"
    if levels[0] == Channel.ORIGIN and policy in {Policy.CORE, "+", "#"}:
        return f"{text} takes core data from their origins; Global Caches have them: use {Channel.CACHE}/…"
    if levels[0] == Channel.CACHE and policy == Policy.RECOMMENDED:
        return f"{text} brings nothing: Global Caches don't have recommended data; use {Channel.ORIGIN}/…"
    return ""


EXAMPLE = "cache/a/wis2/+/data/core/weather/#"
LONGEST_TOPIC = 500
LEAST_DATA_LEVELS = 3
"""`data`, the policy and a discipline."""
_LEVEL = r"[a-z0-9][a-z0-9_-]*"
_GTS = r"[A-Za-z0-9][A-Za-z0-9_-]*"
"""Gateways from the GTS publish on …/T1/T2/A1/A2/ii/CCCC, in capitals."""
_TOPIC = re.compile(rf"{_LEVEL}/a/wis2/{_LEVEL}(/{_GTS})*")
_FILTER = re.compile(rf"{_LEVEL}(/({_GTS}|\+))*(/#)?")
