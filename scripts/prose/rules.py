"""Wording that stays out of everything that people read; facts and figures are for readers to judge."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prose.found import HOLE


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of words, and a better wording."""

    pattern: re.Pattern[str]
    instead: str


def broken(text: str) -> Iterator[Rule]:
    """The rules that a text breaks."""
    return (rule for rule in RULES if rule.pattern.search(text))


def phrases(text: str) -> Iterator[Rule]:
    """Of the phrases that a review replaced, those that a whole source file has again."""
    flat = re.sub(r"[\s#/*]*\n[\s#/*!]*|['\"]\s*\n\s*f?['\"]", " ", text)
    return (rule for rule in PHRASES if rule.pattern.search(flat))


def _rule(pattern: str, instead: str, *, cased: bool = False) -> Rule:
    return Rule(re.compile(pattern, 0 if cased else re.IGNORECASE), instead)


_OPENING = rf"(?:^|(?<=[.!?] ))[\"'(]*(?:{re.escape(HOLE)}: )?"
_NO_QUESTION = r"\b(?![^.!?]*\?)"
WORDS = (
    _rule(r"\bsaid\b", "reported, logged, stated"),
    _rule(r"\btold\b", "notified, reported"),
    _rule(r"\bnobody\b", "none, no user, no site"),
    _rule(r"\bwhat is none\b", "the noun: malformed lines"),
    _rule(rf"{_OPENING}What(?:ever)?{_NO_QUESTION}", "open with a noun"),
    _rule(rf"{_OPENING}Who(?:ever|m|se)?{_NO_QUESTION}", "open with a noun: the operator, the client, a site"),
    _rule(r"\bat once\b", "immediately, together, or nothing"),
    _rule(r"\bmeanwhile\b", "or nothing, or the time that is meant"),
    _rule(r"\bfor one(?=[,.;:)]|$)", "for example, or nothing"),
)
PHRASES = (
    _rule(r"start at once on brokers without topics", "started together on an empty Kafka cluster"),
    _rule(r"told of nobody first|served by nobody", "unserved until the next reassignment"),
    _rule(r"is no fault of the alarms", "does not count as a fault of the alarm service"),
    _rule(r"who watches takes|standing still, on a clock of its own", "an observer considers a sender dead when"),
    _rule(r"no path that is not taken", "reuses the path of crash recovery"),
    _rule(r"is going to end without being replaced", "an alarm is raised before a credential expires"),
    _rule(r"what a site lost it asks for", "a site requests lost packets over its repair channel"),
    _rule(r"how many rows went one by one|that went as a whole aside", "the number of rows deleted one by one"),
    _rule(r"gives no sequence up to this one", "never assigns this sequence or a lower one"),
    _rule(r"what is none is passed over|for anybody who may push", "malformed lines are ignored"),
    _rule(r"times the p99 that sites measure", "slower than predicted: …, expected …"),
    _rule(r"tell nobody", "create silence"),
    _rule(r"who is told of alarms", "alarm recipients"),
    _rule(r"shut out (?!of\b|for\b)|another password for", "disable …; reset …'s password"),
    _rule(r"nobody works there|no window lies ahead", "no maintenance scheduled"),
    _rule(r"nobody waits for an answer", "no pending requests"),
    _rule(r"hours in which the hub was there", "hours of hub uptime"),
    _rule(r"how they are spread|how long it is silent between", "latency distribution; gaps between products"),
    _rule(r"sign in at (?:the )?hub", "sign in to Downburst"),
    _rule(r"behind by the products that it should have stored", "products due but not yet confirmed"),
    _rule(r"multicast is favoured in|looks in a row", "multicast preferred in … of … required checks"),
    _rule(r"say why a product is not at a site", "explain why a product is missing, or when it arrived"),
    _rule(r"the last metre too", "local processing too"),
)
RULES = WORDS + PHRASES
