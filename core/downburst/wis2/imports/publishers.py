"""Publishers of a hub from the datasets of a wis2box."""

from collections.abc import Mapping, Sequence

from downburst.domain.bridges.publishers import Wis2Publisher
from downburst.foundation.errors import BadInput
from downburst.wis2.imports.brokers import StatedBroker
from downburst.wis2.imports.commands import ALL, BYTES, describe_command, instant, publisher_command
from downburst.wis2.imports.datasets import StatedDataset
from downburst.wis2.imports.environment import base_url, own_broker
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.sources import add_feed, free_name
from downburst.wis2.imports.variables import Variable


def add_publishers(made: Imported, found: Sequence[StatedDataset], variables: Mapping[str, Variable]) -> None:
    """Adds a publisher with its feed and commands for each dataset."""
    datasets = _joined(found)
    if not datasets:
        return
    has_box = any(name.startswith("WIS2BOX_") for name in variables)
    broker = own_broker(made, variables) if has_box else None
    for one in datasets:
        line = stated("topic_hierarchy", one.topic)
        if not has_box:
            made.without(one.spot, line, NO_BOX)
        elif one.metadata_id is None:
            made.without(one.spot, line, NO_METADATA)
        elif broker is not None:
            _add(made, one, broker, base_url(variables))


def _joined(found: Sequence[StatedDataset]) -> list[StatedDataset]:
    """Datasets with the plugins that a file of mappings states for the same topic."""
    by_topic: dict[str, StatedDataset] = {}
    kept = []
    for one in sorted(found, key=lambda one: one.metadata_id is None):
        topic = one.topic.replace(".", "/").removeprefix("origin/a/wis2/")
        known = by_topic.setdefault(topic, one)
        if known is one or one.metadata_id is not None:
            kept.append(one)
        else:
            known.patterns = known.patterns or one.patterns
            known.media_type = known.media_type or one.media_type
    return kept


def _add(made: Imported, one: StatedDataset, broker: StatedBroker, url: str) -> None:
    try:
        publisher = _publisher(made, one, broker, url)
    except BadInput as error:
        made.without(one.spot, stated("topic_hierarchy", one.topic), error.sentence)
        return
    add_feed(made, publisher.feed, str(one.spot))
    made.commands.append(publisher_command(publisher, broker))
    if one.dataset is not None:
        made.commands.append(describe_command(publisher.name, one.dataset))
    else:
        why = f"the record can't be described: {one.fault}; downburst publishers describe {publisher.name}"
        made.without(one.spot, stated("metadata.identifier", one.metadata_id), why)
    made.publishers.append(_document(publisher, one, broker))


def _publisher(made: Imported, one: StatedDataset, broker: StatedBroker, url: str) -> Wis2Publisher:
    centre, subtopic = one.place
    if one.centre not in {None, centre}:
        made.without(one.spot, stated("wis2box.centre_id", one.centre), "the topic names another centre, and counts")
    metadata_id = one.metadata_id or ""
    taken = [known["publisher"] for known in made.publishers] + [known["feed"] for known in made.feeds]
    name = free_name(metadata_id.removeprefix(f"urn:wmo:md:{centre}:"), taken, centre)
    pattern = one.patterns[0] if len(one.patterns) == 1 else "|".join(f"(?:{text})" for text in one.patterns) or ALL
    if len(pattern) > LONGEST_PATTERN:
        made.without(one.spot, stated("file-pattern", pattern), "it is too long; all products are announced")
        pattern = ALL
    media_type = one.media_type or BYTES
    return Wis2Publisher(
        name, name, centre, subtopic, metadata_id, broker.broker, url, pattern=pattern, media_type=media_type
    )


def _document(publisher: Wis2Publisher, one: StatedDataset, broker: StatedBroker) -> dict[str, object]:
    facts = one.dataset
    described = facts and {
        "title": facts.title,
        "description": facts.description,
        "organization": facts.organization,
        "email": facts.email,
        "website": facts.website,
        "country": facts.country,
        "keywords": list(facts.keywords),
        "begin": instant(facts.begin),
        "bounds": None if facts.bounds is None else list(facts.bounds),
        "license_url": facts.license_url,
    }
    return {
        "publisher": publisher.name,
        "feed": publisher.feed,
        "centre": publisher.centre,
        "topic": publisher.subtopic,
        "metadata_id": publisher.metadata_id,
        "broker": broker.document(),
        "base_url": publisher.base_url,
        "pattern": publisher.pattern,
        "media_type": publisher.media_type,
        "dataset": described,
        **({"advice": advice} if (advice := _advice(publisher)) else {}),
        "at": str(one.spot),
    }


def _advice(publisher: Wis2Publisher) -> list[str]:
    """What others can't reach."""
    host, place = publisher.broker.host, publisher.base_url.partition("://")[2].partition("/")[0]
    within = f"{host} is a name within the containers' network: name the address by which Global Brokers reach it"
    plain = f"{publisher.base_url} is no public address by HTTPS: put a proxy with TLS before the hub, and name it"
    is_public = publisher.base_url.startswith("https://") and ("." in place or "[" in place)
    return [*([within] if "." not in host and ":" not in host else []), *([] if is_public else [plain])]


LONGEST_PATTERN = 500
NO_BOX = "neither a broker nor an address is in these files: give wis2box.env too"
NO_METADATA = "no metadata of its dataset is in these files: give its metadata control file (MCF) too"
