"""Public configurations of wis2box, wis2downloader and pywis-pubsub through `import wis2`.

docs/wis2-import.md has the layout and the tables that are printed here.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from downburst.wis2.imports.declared import declare
from downburst.wis2.imports.files import ConfigFile, config_file
from downburst.wis2.imports.result import Imported
from downburst.wis2.imports.variables import counted, read_variables, value_of
from kit.peers.found import prepared

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def configurations() -> dict[str, tuple[dict[str, Any], list[ConfigFile]]]:
    """Name, repository, commit and files of each, with the files."""
    (listing,) = prepared("wis2-configurations/list.json")
    return {one["configuration"]: (one, _files(one)) for one in json.loads(listing.read_text())}


Configurations = dict[str, tuple[dict[str, Any], list[ConfigFile]]]


def test_each_statement_of_ten_public_configurations_has_a_place(configurations: Configurations) -> None:
    assert len(configurations) >= 10
    reasons: Counter[str] = Counter()
    rows = []
    for name, (one, files) in configurations.items():
        made = declare(files)
        assert made.no_equivalent, name
        assert all(entry["why"] and entry["at"].rpartition(":")[2].isdecimal() for entry in made.no_equivalent)
        assert len(made.commands) >= len(made.feeds) + len(made.bridges) + len(made.publishers)
        reasons.update(entry["why"] for entry in made.no_equivalent)
        rows.append((name, f"{one['repository']} at {one['commit'][:7]}", *_counts(made, files)))
        print(f"\n{name}\n" + "\n".join(f"  {' | '.join(entry.values())}" for entry in made.no_equivalent))
    print(_table(HEAD, rows))
    written = (Path(__file__).parents[2] / "docs/wis2-import.md").read_text()
    assert all(_row(row) in written for row in rows), "docs/wis2-import.md has other figures"
    print(_table(("statements", "reason"), [(number, why) for why, number in reasons.most_common()]))


def test_their_brokers_take_the_topics_of_a_session(configurations: Configurations) -> None:
    found = {name: _addresses(declare([*files, SESSION])) for name, (_, files) in configurations.items()}
    assert found["wis2downloader-0.3"] == ["wss://globalbroker.meteo.fr/mqtt"]
    assert found["wis2downloader-2"] == ["wss://globalbroker.meteo.fr/mqtt", "wss://globalbroker.inmet.gov.br/mqtt"]


def test_no_password_of_theirs_is_shown(configurations: Configurations) -> None:
    """Those that are words of their own: some are the name of the user or the program."""
    number = 0
    for name, (_, files) in configurations.items():
        shown = json.dumps(declare(files).document())
        for file in files:
            if file.name.endswith((".env", ".env.example")):
                variables = counted(read_variables(file))
                named = [one for one in variables if "PASSWORD" in one or "SECRET" in one]
                secrets = {value_of(one, variables) or "" for one in named} - COMMON
                number += len(secrets)
                assert not [one for one in secrets if one in shown], name
    assert number > 3


def _files(one: dict[str, Any]) -> list[ConfigFile]:
    (folder,) = prepared(f"wis2-configurations/{one['configuration']}")
    return [config_file(name, (folder / name).read_bytes()) for name in one["files"]]


def _counts(made: Imported, files: list[ConfigFile]) -> tuple[int, ...]:
    with_topics = declare([*files, SESSION])
    described = sum(publisher["dataset"] is not None for publisher in made.publishers)
    brokers = len(_addresses(with_topics))
    return (len(files), brokers, len(made.publishers), described, len(made.carried), len(made.no_equivalent))


def _addresses(made: Imported) -> list[str]:
    return [broker["url"] for bridge in made.bridges for broker in bridge["brokers"]]


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n" + "\n".join(map(_row, lines))


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


HEAD = ("configuration", "repository", "files", "brokers", "publishers", "with record", "carried", "no equivalent")
SESSION = ConfigFile("session", json.dumps({"topics": {"cache/a/wis2/+/data/core/#": "obs"}, "client_id": "a"}))
"""Topics as wis2downloader keeps them; public repositories hold none, as they are made at run time."""
COMMON = {"", "wis2box", "minio123", "everyone"}
