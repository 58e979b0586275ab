"""The tools for the product log, on logs of real nodes: beside a running writer, after its end, damaged."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO

import pytest

from downburst.foundation.file_names import decode
from kit.node import HubNode, Play, Subscribe, node_binary
from kit.patience import wait_for

pytestmark = [pytest.mark.system]


def tool(*arguments: object, code: int = 0) -> str:
    """Runs a tool that must end with ``code``; returns its output."""
    return raw(*arguments, code=code).decode()


def raw(*arguments: object, code: int = 0) -> bytes:
    done = subprocess.run([node_binary(), "log", *map(str, arguments)], check=False, capture_output=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout if done.stdout or code == 0 else done.stderr


def exported(directory: Path) -> dict[tuple[str, int], tuple[str, str]]:
    """The content of an export: (feed, sequence) to (id, SHA-256)."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    names = [decode(str(path.relative_to(directory))) for path in files]
    return {
        (name.feed, name.sequence): (name.product_id, sha256(path.read_bytes()).hexdigest())
        for name, path in zip(names, files, strict=True)
    }


@contextmanager
def following(*arguments: object, into: IO[bytes]) -> Iterator[None]:
    argv = [node_binary(), "log", "tail", *map(str, arguments), "-f"]
    process = subprocess.Popen(argv, stdout=into)
    try:
        yield
        assert process.poll() is None, "the tail ended by itself"
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_a_running_hub_is_read_without_being_disturbed(node: HubNode, tmp_path: Path) -> None:
    data = node.directory / "data"
    node.feed("NGRID", retention_bytes=40_000_000)
    node.feed("IDS|DDPLUS")
    play = Play(node, "NGRID", seed=31).start()
    play.wait_for_more(50)
    for _ in range(5):
        assert "NGRID" in tool("stat", data)
        assert "NGRID: " in tool("verify", data)
        assert len(tool("tail", data, "-n", 7).splitlines()) == 7
        play.wait_for_more(20)
    play.finish()
    assert node.put("IDS|DDPLUS", "SDUS54 KOUN 161540 /pN0RTLX", b"bulletin")["sequence"] == 1
    stats = {found["feed"]: found for found in json.loads(tool("stat", data, "--json"))}
    newest = max(sequence for _, sequence in play.acknowledged)
    assert stats["NGRID"]["head"] == newest
    assert stats["NGRID"]["products"] + stats["NGRID"]["remembered"] == len(play.acknowledged)
    assert stats["IDS|DDPLUS"]["first"] == stats["IDS|DDPLUS"]["products"] == 1
    assert stats["NGRID"]["segments"] > 1, "nothing was sealed"
    tool("export", data, "--to", tmp_path / "out", "--feed", "NGRID")
    assert exported(tmp_path / "out") == play.acknowledged


def test_a_stopped_hub_is_read_and_every_product_comes_out_again(node: HubNode, tmp_path: Path) -> None:
    data, out = node.directory / "data", tmp_path / "out"
    node.feed("NGRID")
    play = Play(node, "NGRID", seed=32)
    for _ in range(40):
        play.put()
    middle = json.loads(tool("stat", data, "--json"))[0]["newest_stored_us"]
    node.put("NGRID", "a late one", b"late")
    assert node.stop() == 0
    assert tool("verify", data).strip() == "NGRID: 41 intact, 0 remembered without bytes, no damage"
    for (_, sequence), (product_id, digest) in list(play.acknowledged.items())[:5]:
        for choice in (("--sequence", sequence), ("--id", product_id)):
            assert sha256(raw("cat", data, *choice)).hexdigest() == digest
    assert tool("export", data, "--to", out, "--until", middle + 1).startswith("40 written")
    assert exported(out) == play.acknowledged
    assert "40 already there" in tool("export", data, "--to", out)
    only = tmp_path / "only"
    assert tool("export", data, "--to", only, "--pattern", "late", "--from", middle).startswith("1 written")
    assert [name for name, _ in exported(only).values()] == ["a late one"]


def test_a_site_exports_under_the_names_it_received(node: HubNode, subscribe: Subscribe, tmp_path: Path) -> None:
    node.feed("NGRID")
    site = subscribe("one", "NGRID", pattern="[02468]$")
    node.wait_connected("one")
    play = Play(node, "NGRID", seed=33)
    for _ in range(20):
        play.put()
    received = site.wait_received(10)
    tool("export", site.directory, "--to", tmp_path / "out")
    assert exported(tmp_path / "out") == received
    roots = (tmp_path / "out", site.directory / "received")
    first, second = ({path.relative_to(root) for path in root.rglob("*")} for root in roots)
    assert first == second


def test_the_tail_has_the_layout_of_ldm_and_follows(node: HubNode, tmp_path: Path) -> None:
    data = node.directory / "data"
    node.feed("NGRID")
    made_us = 1_709_251_198_123_456
    node.put("NGRID", "before", b"12345", created_us=made_us)
    (line,) = tool("tail", data).splitlines()
    layout = r"\d{8}T\d{6}\.\d{6}Z +5 (\d{14}\.\d{3}) +NGRID 001  before"
    found = re.fullmatch(layout, line)
    assert found, line
    assert found[1] == "20240229235958.123"
    output = tmp_path / "tail"
    with output.open("wb") as into, following(data, "-n", 1, into=into):

        def ids() -> list[str]:
            return [line.split("  ")[-1] for line in output.read_text().splitlines()]

        wait_for("the first line", lambda: ids() == ["before"])
        for number in range(30):
            node.put("NGRID", f"product {number}", b"x" * number)
        wait_for("all lines", lambda: ids() == ["before", *(f"product {number}" for number in range(30))])
        node.feed("LATER")
        node.put("LATER", "in a feed made since", b"x")
        wait_for("the line of the other feed", lambda: ids()[-1] == "in a feed made since")


def test_damage_is_told_with_file_and_offset_and_never_handed_out(node: HubNode, tmp_path: Path) -> None:
    data = node.directory / "data"
    node.feed("NGRID")
    for number in range(5):
        node.put("NGRID", f"product {number}", f"content of {number}".encode() * 10)
    assert node.stop() == 0
    (segment,) = (data / "log" / "NGRID").glob("*.segment")
    offset = segment.read_bytes().index(b"content of 3")
    with segment.open("r+b") as file:
        file.seek(offset + 4)
        file.write(b"X")
    said = tool("verify", data, code=1)
    assert f"{segment}: offset {offset}: sequence 4:" in said
    assert "4 intact" in said
    assert "1 place damaged" in said
    assert raw("cat", data, "--sequence", 4, code=1) != b""
    assert "1 damaged and left out" in tool("export", data, "--to", tmp_path / "out", code=1)
    assert {name for name, _ in exported(tmp_path / "out").values()} == {f"product {n}" for n in (0, 1, 2, 4)}


def test_bad_use_ends_with_two_and_a_sentence(node: HubNode, tmp_path: Path) -> None:
    data = node.directory / "data"
    assert "no product log" in tool("stat", tmp_path / "hub", code=2)
    assert "not a directory" in tool("verify", tmp_path / "gone", code=2)
    for feed in ("A", "B"):
        node.feed(feed)
    assert "--feed: A, B" in tool("cat", data, "--sequence", 1, code=2)
    assert "there are: A, B" in tool("cat", data, "--feed", "C", "--sequence", 1, code=2)
    assert "no product with sequence 9" in tool("cat", data, "--feed", "A", "--sequence", 9, code=1)
    assert "not a time" in tool("export", data, "--to", tmp_path / "out", "--from", "noon", code=2)
    assert "at character" in tool("export", data, "--to", tmp_path / "out", "--pattern", "(", code=2)
    assert not (tmp_path / "out").exists()


def test_the_hub_command_reads_its_data_directory(node: HubNode) -> None:
    node.feed("NGRID")
    node.put("NGRID", "one", b"the bytes")
    environment = os.environ | {"DOWNBURST_NODE": str(Path(node_binary()).absolute())}

    def downburst(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        argv = [sys.executable, "-c", "from downburst_app.cli import main; main()", "log", *arguments]
        data = str(node.directory / "data")
        return subprocess.run(
            [*argv, "--data-dir", data], env=environment, check=False, capture_output=True, timeout=60
        )

    assert json.loads(downburst("stat", "--json").stdout)[0]["feed"] == "NGRID"
    assert downburst("cat", "--sequence", "1").stdout == b"the bytes"
    assert downburst("tail", "-n", "1").stdout.endswith(b"NGRID 001  one\n")
    assert downburst("cat", "--sequence", "2").returncode == 1
    assert downburst("cat").returncode == 2
