"""Sources of a hub from brokers and topics: one for each directory of files, which becomes a feed."""

import itertools
import re
from collections.abc import Collection, Sequence

from downburst.domain.bridges.sources import MOST_BROKERS, MOST_FILTERS, Wis2Source
from downburst.foundation.errors import BadInput
from downburst.wis2.imports.brokers import StatedBroker
from downburst.wis2.imports.commands import RETENTION_HOURS, bridge_command, feed_command
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.subscriptions import Subscribed, Topic
from downburst.wis2.topics import Channel, Policy, advice_on, check_filter


def add_sources(made: Imported, found: Sequence[Subscribed]) -> None:
    """Adds the sources with their feeds and commands."""
    for one in found:
        topics = _usable(made, one.topics)
        brokers = _of_one_user(made, one.brokers)
        if topics and not brokers:
            for topic in topics:
                made.without(topic.spot, stated("topic", topic.text), NO_BROKER)
        elif brokers and not one.topics and one.advice:
            for advice in one.advice:
                made.without(*advice)
        elif brokers and not one.topics:
            made.without(brokers[0].spot, stated("broker", brokers[0].broker.url), NO_TOPIC)
        elif brokers:
            _add_all(made, topics, brokers)


def add_feed(made: Imported, feed: str, at: str) -> None:
    """Adds a feed once, with the command that creates it."""
    if all(one["feed"] != feed for one in made.feeds):
        made.feeds.append({"feed": feed, "retention_hours": RETENTION_HOURS, "at": at})
        made.commands.append(feed_command(feed))


def free_name(text: str, taken: Collection[str], otherwise: str) -> str:
    """A name of lower-case letters, digits, dots and hyphens that is not taken."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:55].strip("-.") or otherwise
    names = (plain if number == 1 else f"{plain}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


def _add_all(made: Imported, topics: Sequence[Topic], brokers: Sequence[StatedBroker]) -> None:
    by_target: dict[str, list[Topic]] = {}
    for one in topics:
        by_target.setdefault((one.target or "").strip("./"), []).append(one)
    for target, of_target in by_target.items():
        for begin in range(0, len(of_target), MOST_FILTERS):
            _add(made, target, of_target[begin : begin + MOST_FILTERS], brokers)


def _add(made: Imported, target: str, topics: Sequence[Topic], brokers: Sequence[StatedBroker]) -> None:
    if len(made.bridges) >= MOST_SOURCES:
        for one in topics:
            made.without(one.spot, stated("topic", one.text), f"at most {MOST_SOURCES} sources are made of an import")
        return
    taken = [one["bridge"] for one in made.bridges] + [one["feed"] for one in made.feeds]
    name = free_name(target, taken, WIS2)
    filters = tuple(one.text for one in topics)
    recommended = any(_brings_recommended(one) for one in filters)
    try:
        source = Wis2Source(name, name, tuple(one.broker for one in brokers), filters, recommended)
    except BadInput as error:
        made.without(topics[0].spot, stated("topic", topics[0].text), error.sentence)
        return
    at = ", ".join(dict.fromkeys(str(one.spot) for one in topics))
    add_feed(made, name, at)
    advice = [text for one in filters if (text := advice_on(one))]
    made.bridges.append(
        {
            "bridge": name,
            "feed": name,
            "brokers": [one.document() for one in brokers],
            "topics": list(filters),
            "takes_recommended": recommended,
            **({"advice": advice} if advice else {}),
            "at": at,
        }
    )
    made.commands.append(bridge_command(source, brokers[0]))


def _of_one_user(made: Imported, brokers: Sequence[StatedBroker]) -> list[StatedBroker]:
    """Brokers once each, with the user of the first one: the command line gives one user for all."""
    kept = list({one.broker.url: one for one in reversed(brokers)}.values())[::-1]
    for one in kept:
        if not _is_like(one, kept[0]):
            made.without(one.spot, stated("broker", one.broker.url), OTHER_USER)
    same = [one for one in kept if _is_like(one, kept[0])]
    for one in same[MOST_BROKERS:]:
        made.without(one.spot, stated("broker", one.broker.url), f"a source has at most {MOST_BROKERS} brokers")
    return same[:MOST_BROKERS]


def _is_like(one: StatedBroker, other: StatedBroker) -> bool:
    mine, theirs = one.broker, other.broker
    return (mine.user, mine.mqtt, one.digest) == (theirs.user, theirs.mqtt, other.digest)


def _usable(made: Imported, topics: Sequence[Topic]) -> list[Topic]:
    """The topics that a source takes; each once for a directory."""
    kept: dict[tuple[str, str | None], Topic] = {}
    for one in topics:
        try:
            _check(one.text)
        except BadInput as error:
            made.without(one.spot, stated("topic", one.text), error.sentence)
            continue
        if (one.text, one.target) in kept:
            made.without(one.spot, stated("topic", one.text), "the same topic and directory are given before it")
        kept.setdefault((one.text, one.target), one)
    return list(kept.values())


def _check(text: str) -> None:
    """Refuses what is no filter, and topics that WIS2 does not have (any more)."""
    levels = check_filter(text).split("/")
    for level, wanted in zip(levels[1:3], ("a", "wis2"), strict=False):
        if level == "#":
            return
        if level not in {wanted, "+"}:
            raise BadInput("topics of WIS2 begin with CHANNEL/a/wis2/; others bring nothing")
    if len(levels) > PILOT and "-" not in levels[3] and levels[3] not in {"+", "#"} and levels[4] not in KINDS:
        raise BadInput("the topic has the form of the pilot phase, COUNTRY/CENTRE; write CHANNEL/a/wis2/CENTRE-ID/…")


def _brings_recommended(text: str) -> bool:
    """True if recommended data match, which come from their origins alone."""
    levels = text.split("/")
    policy = levels[5] if len(levels) > 5 else "#" if levels[-1] == "#" else ""
    return levels[0] == Channel.ORIGIN and policy in {Policy.RECOMMENDED, "+", "#"}


MOST_SOURCES = 100
WIS2 = "wis2"
PILOT = 4
KINDS = {"data", "metadata", "+", "#"}
NO_BROKER = "no broker is in these files: give the config.json, wis2box.env or compose file with it too"
NO_TOPIC = "no topic is in these files: give the file with its subscriptions too"
OTHER_USER = "bridges add has one user, password and version for all brokers; POST /v1/bridges takes one for each"
