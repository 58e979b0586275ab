"""The contents of a demonstration: feeds, sites with their subscriptions, and the products to play.

All sites take all feeds, with two exceptions that demonstrate subscriptions: the quietest feed goes to the first site
alone, and the last site takes only part of one feed, by pattern.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from downburst.domain.feeds import FeedClass
from downburst.foundation.errors import BadInput, BadName
from downburst.foundation.names import check_product_id
from downburst.recordings.traces import parse
from downburst_app.play.generator import built_in_feeds
from downburst_app.play.playing import FileBody, Planned, at_speed, before, from_generator, from_trace, together


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """A feed to be created."""

    name: str
    feed_class: FeedClass


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription: products of a feed with ids that match one pattern and not the other."""

    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class SiteSpec:
    """A site to be created, and its subscriptions."""

    name: str
    subscriptions: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """The full description of a demonstration before its start."""

    title: str
    feeds: tuple[FeedSpec, ...]
    sites: tuple[SiteSpec, ...]
    products: Callable[[], Iterator[Planned]]
    time_scale: float
    """Divides the scheduler's windows; the speed of the play if there is one."""
    total_bytes: int | None
    """Bytes of all products once; None: without a known end."""


def generated_scene(*, sites: int, seconds: float | None, speed: float, seed: int, play: int) -> Scene:
    """The built-in feeds for this number of real seconds, or without end."""
    feeds = built_in_feeds()

    def products() -> Iterator[Planned]:
        streams = [from_generator(feed.products(seed=seed), feed=feed.name, play=play) for feed in feeds]
        planned = at_speed(together(*streams), speed=speed)
        return planned if seconds is None else before(planned, seconds=seconds)

    return Scene(
        title="built-in feeds" + ("" if seconds is None else f" for {seconds:g} s"),
        feeds=tuple(FeedSpec(feed.name, feed.feed_class) for feed in feeds),
        sites=_sites(sites, [feed.name for feed in feeds], quiet=_QUIET, part=Wish("NGRID", r"/(NAM|RAP)_")),
        products=products,
        time_scale=max(speed, SHORT_PLAY_TIME_SCALE),
        total_bytes=None if seconds is None else sum(product.body.size_bytes for product in products()),
    )


def trace_scene(trace: Path, *, sites: int, minutes: float | None, speed: float, seed: int, play: int) -> Scene:
    """A feed after a trace, taken whole by all sites, and rare warnings for one site."""
    feed = FeedSpec(_feed_of(re.split(r"[-_.]", trace.name)[0]), FeedClass.GRID)
    warnings = next(generated for generated in built_in_feeds() if generated.name == _QUIET.feed)
    arrivals = list(parse(trace))
    if not arrivals:
        raise BadInput(f"the trace {trace} holds no arrival; give one that does")
    trace_s = (arrivals[-1].at_us - arrivals[0].at_us) / 1e6 + 1
    trace_s = trace_s if minutes is None else min(trace_s, 60 * minutes)

    def products() -> Iterator[Planned]:
        traced = at_speed(from_trace(arrivals, feed=feed.name, label=trace.stem, play=play), speed=speed)
        beside = from_generator(warnings.products(seed=seed), feed=warnings.name, play=play)
        return before(together(traced, beside), seconds=trace_s / speed)

    return Scene(
        title=f"{trace.name}, {trace_s / 60:.1f} minutes at {speed:g} times their speed",
        feeds=(feed, FeedSpec(warnings.name, warnings.feed_class)),
        sites=_sites(sites, [feed.name, warnings.name], quiet=_QUIET, part=None),
        products=products,
        time_scale=max(speed, 1.0),
        total_bytes=sum(product.body.size_bytes for product in products()),
    )


def data_scene(data: Path, *, sites: int, seconds: float, seed: int) -> Scene:
    """Every file below a directory, once: the top directory is the feed, the relative path the product id."""
    files = _files(data)
    sizes: Counter[str] = Counter()
    by_feed: dict[str, list[str]] = defaultdict(list)
    for relative, body in files.items():
        by_feed[_feed_of_path(relative)].append(relative)
        sizes[_feed_of_path(relative)] += body.size_bytes
    names = sorted(by_feed, key=lambda feed: -sizes[feed])
    quiet = Wish(names[-1]) if len(names) > 1 else None
    return Scene(
        title=f"{len(files)} files below {data} over {seconds:g} s",
        feeds=tuple(FeedSpec(name, _CLASSES.get(name, FeedClass.BULK)) for name in names),
        sites=_sites(sites, names, quiet=quiet, part=_part_of(by_feed, but_not=names[0])),
        products=lambda: iter(_spread(by_feed, files, seconds=seconds, seed=seed)),
        time_scale=SHORT_PLAY_TIME_SCALE,
        total_bytes=sum(sizes.values()),
    )


def site_names(count: int) -> list[str]:
    """site-1, site-2 and so on."""
    return [f"site-{number}" for number in range(1, count + 1)]


def _sites(count: int, feeds: Sequence[str], *, quiet: Wish | None, part: Wish | None) -> tuple[SiteSpec, ...]:
    names = site_names(count)
    return tuple(
        SiteSpec(name, tuple(_wishes(feeds, quiet=quiet, part=part, first=name == names[0], last=name == names[-1])))
        for name in names
    )


def _wishes(
    feeds: Sequence[str], *, quiet: Wish | None, part: Wish | None, first: bool, last: bool
) -> Iterator[Wish]:
    for feed in feeds:
        if quiet is not None and feed == quiet.feed:
            if first:
                yield quiet
        elif part is not None and feed == part.feed and last and not first:
            yield part
        else:
            yield Wish(feed)


def _files(data: Path) -> Mapping[str, FileBody]:
    if not data.is_dir():
        raise BadInput(f"{data} is not a directory; name one that holds the files to deliver")
    files = {}
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        relative = path.relative_to(data).as_posix()
        try:
            check_product_id(relative)
        except BadName as error:
            raise BadInput(f"{path} can't be delivered: {error.sentence}") from error
        files[relative] = FileBody(path, path.stat().st_size)
    if not files:
        raise BadInput(f"there is no file below {data}; name a directory that holds some")
    return files


def _spread(
    by_feed: Mapping[str, Sequence[str]], files: Mapping[str, FileBody], *, seconds: float, seed: int
) -> list[Planned]:
    """Each feed's files at even intervals with some jitter, in an order that mixes large and small ones."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    planned = []
    for feed, ids in sorted(by_feed.items()):
        gap_s = seconds / len(ids)
        for number, product_id in enumerate(dice.sample(list(ids), len(ids))):
            at_s = (number + dice.random() * 0.8) * gap_s
            planned.append(Planned(at_s, feed, product_id, files[product_id]))
    return sorted(planned, key=lambda product: product.at_s)


def _part_of(by_feed: Mapping[str, Sequence[str]], *, but_not: str) -> Wish | None:
    """Of the feed with most files (the largest feed aside), the directory that holds most of them but not all."""
    feed = max((feed for feed in by_feed if feed != but_not), key=lambda feed: len(by_feed[feed]), default=None)
    if feed is None:
        return None
    directories = Counter("/".join(path.split("/")[:2]) for path in by_feed[feed] if path.count("/") >= 2)
    largest = next(islice(directories.most_common(), 1), None)
    if largest is None or largest[1] == len(by_feed[feed]):
        return None
    return Wish(feed, f"^{re.escape(largest[0])}/")


def _feed_of_path(relative: str) -> str:
    top, slash, _ = relative.partition("/")
    return _feed_of(top) if slash else "OTHER"


def _feed_of(text: str) -> str:
    """A feed's name from any text: upper case, unusual characters replaced by dashes."""
    return re.sub(r"[^A-Z0-9|]+", "-", text.upper()).strip("-")[:64] or "OTHER"


SHORT_PLAY_TIME_SCALE = 20.0
"""A play of a minute is too short for windows of minutes; they shrink, and the scheduler still decides."""

_QUIET = Wish("WARNINGS", r"^W[FUW]US", r" K[A-Z]{2}[AEIOU] ")
_CLASSES = {
    "BUFR": FeedClass.OBSERVATION,
    "GOES-GLM": FeedClass.OBSERVATION,
    "GRIB2": FeedClass.GRID,
    "NEXRAD2": FeedClass.OBSERVATION,
    "NEXRAD3": FeedClass.OBSERVATION,
    "TEXT": FeedClass.OBSERVATION,
    "WIS2": FeedClass.OBSERVATION,
}
