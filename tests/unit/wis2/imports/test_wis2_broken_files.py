"""Files of any content end in a result or in one sentence, in bounded time."""

import json
import random
import re
import time

import pytest

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.declared import declare
from downburst.wis2.imports.files import LARGEST_FILE_BYTES, ConfigFile, config_file
from downburst.wis2.imports.result import Imported
from unit.wis2.imports.test_wis2_box import BOX, DATASET, MAPPINGS
from unit.wis2.imports.test_wis2_sources_imported import COMPOSE, LISTED, PYWIS, SYNOP

FILES = {
    "box": BOX,
    "synop": DATASET,
    "mappings": MAPPINGS,
    "compose": COMPOSE,
    "pywis": PYWIS,
    "listed": str(LISTED).replace("'", '"').replace("None", "null"),
}
PARTS = (
    "",
    " ",
    "\n",
    ":",
    "{",
    "[",
    "- ",
    '"',
    "'",
    "#",
    "//",
    "@",
    "null",
    "${A}",
    "&a ",
    "*a",
    "é",
    "\t",
    "0",
    "!!x",
)


def changed(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PARTS) + text[at + rng.choice((0, 0, 1, 5, 40)) :]
    return text or "x"


def ended(files: list[ConfigFile]) -> tuple[Imported, str | None]:
    """The result, or the sentence of a refusal."""
    try:
        return declare(files), None
    except BadInput as error:
        return Imported(), error.sentence


@pytest.mark.parametrize("seed", range(20))
def test_changed_files_end_in_a_result_or_a_sentence(seed: int) -> None:
    rng = random.Random(seed)
    files = [ConfigFile(name, changed(text, rng) if rng.random() < 0.5 else text) for name, text in FILES.items()]
    made, sentence = ended(files)
    assert sentence is None or re.split("[: ]", sentence)[0] in FILES
    for one in made.no_equivalent + made.carried:
        assert one["at"].partition(":")[0] in FILES
        assert one.get("why") or one.get("as")


@pytest.mark.parametrize("value", ["[[1]]", "null", "{a: {b: c}}"])
def test_each_key_may_have_a_value_of_another_kind(value: str) -> None:
    lines = DATASET.splitlines()
    for number, line in enumerate(lines):
        if line.strip().endswith(":") or ": " not in line:
            continue
        start = line[: line.index(": ")]
        text = "\n".join([*lines[:number], f"{start}: {value}", *lines[number + 1 :]])
        _, sentence = ended([ConfigFile("box", BOX), ConfigFile("synop", text)])
        assert sentence is None or sentence.startswith(("synop:", "synop "))


@pytest.mark.all
@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"topic": SYNOP, "target": f"a{'!' * (one % 9)}{one}"} for one in range(2_500)]),
        "{" + ", ".join('"a": "b"' for _ in range(9_000)) + ', "topics": {}}',
        "A=1\n" * 50_000 + "WIS2BOX_URL=a",
    ],
)
def test_large_files_take_seconds(text: str) -> None:
    file = config_file("large", text.encode()[:LARGEST_FILE_BYTES])
    began = time.process_time()
    broker = ConfigFile("config", '{"broker_url": "gb.example", "download_dir": "a"}')
    declare([broker, file])
    assert time.process_time() - began < 30
