"""Configurations of wis2box, wis2downloader and pywis-pubsub as sources and publishers of a hub."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.datasets import StatedDataset, read_dataset, read_mappings
from downburst.wis2.imports.environment import is_environment, read_compose, subscribed
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.judging import judge_variables
from downburst.wis2.imports.kinds import Kind, is_environment_file, kind_of
from downburst.wis2.imports.publishers import add_publishers
from downburst.wis2.imports.reasons import ENVIRONMENT
from downburst.wis2.imports.result import Imported
from downburst.wis2.imports.sources import add_sources
from downburst.wis2.imports.subscriptions import Subscribed, read_downloader, read_pywis, read_subscriptions
from downburst.wis2.imports.tree import Table, Tree, read_tree
from downburst.wis2.imports.variables import Variable, counted, read_variables


@dataclass(slots=True)
class _Found:
    """The statements of all files."""

    variables: list[Variable] = field(default_factory=list)
    documents: list[tuple[ConfigFile, Kind, Tree]] = field(default_factory=list)
    alone: list[Subscribed] = field(default_factory=list)
    """Files with brokers and topics."""
    together: Subscribed = field(default_factory=Subscribed)
    """Brokers of some files, whose topics are in others."""
    datasets: list[StatedDataset] = field(default_factory=list)


def declare(files: Sequence[ConfigFile]) -> Imported:
    """All statements of the files; each is converted, carried or listed as without an equivalent."""
    made, found = Imported(), _Found()
    for file in files:
        _sort(file, found)
    variables = counted(found.variables)
    judge_variables(made, found.variables, ENVIRONMENT)
    found.together.add(subscribed(made, variables))
    for file, kind, tree in found.documents:
        _read(made, (file, kind, tree), found)
    add_sources(made, [*found.alone, found.together])
    add_publishers(made, found.datasets, variables)
    made.sort([file.name for file in files])
    return made


def _sort(file: ConfigFile, found: _Found) -> None:
    """Environment files come first, as other files use their variables."""
    if not is_environment_file(file):
        tree = read_tree(file)
        found.documents.append((file, kind_of(file, tree), tree))
        return
    variables = read_variables(file)
    if not is_environment(counted(variables)):
        raise BadInput(f"{file.name} has no variable of wis2box or wis2downloader; name another file")
    found.variables += variables


def _read(made: Imported, one: tuple[ConfigFile, Kind, Tree], found: _Found) -> None:
    file, kind, tree = one
    if kind is Kind.SUBSCRIPTIONS:
        found.together.add(read_subscriptions(made, file, tree))
        return
    document = tree if isinstance(tree, Table) else Table(1, ())
    match kind:
        case Kind.DOWNLOADER:
            _keep(read_downloader(made, file, document), found)
        case Kind.PYWIS:
            found.alone.append(read_pywis(made, file, document))
        case Kind.COMPOSE:
            for service in read_compose(made, file, document, counted(found.variables)):
                found.together.add(service)
        case Kind.MAPPINGS:
            found.datasets += read_mappings(made, file, document)
        case Kind.DATASET:
            dataset = read_dataset(made, file, document)
            found.datasets += [dataset] if dataset is not None else []


def _keep(subscription: Subscribed, found: _Found) -> None:
    """A file with brokers and topics stands alone; others complete each other."""
    if subscription.brokers and subscription.topics:
        found.alone.append(subscription)
    else:
        found.together.add(subscription)
