"""STAMP against stamp-suite and twampy, each in both roles; docs/measuring-systems.md has the directory's layout."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.patience import wait_for
from kit.peers.found import prepared
from kit.ports import free_port
from kit.stamp import reflector, sent

pytestmark = pytest.mark.peers

KEY = "00112233445566778899aabbccddeeff"
"""In hex, as stamp-suite takes it."""


@pytest.fixture
def suite() -> Path:
    """stamp-suite."""
    return prepared("stamp-suite/bin/stamp-suite")[0]


@pytest.fixture
def twampy() -> Path:
    """The source of twampy."""
    return prepared("twampy/src")[0]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The key as our programs take it."""
    file = tmp_path / "key"
    file.write_bytes(bytes.fromhex(KEY))
    return file


@contextmanager
def running(argv: Sequence[object], port: int, **environment: str) -> Iterator[str]:
    """A foreign reflector; ready when our sender gets an answer."""
    with subprocess.Popen(
        list(map(str, argv)),
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def measured(address: str, *options: object) -> dict[str, object]:
    """A whole run of our sender, once the reflector listens."""

    def run() -> dict[str, object] | None:
        try:
            report = sent(address, "--count", 10, "--interval-ms", 20, "--wait-ms", 500, *options)
        except AssertionError:
            return None
        # A reflector that begins to listen during the run misses its first requests.
        return report if report["answered"] == 10 else None

    return wait_for("answers of the reflector", run, 60)


def output(argv: Sequence[object], **environment: str) -> str:
    done = subprocess.run(
        list(map(str, argv)),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_our_sender_measures_by_stamp_suite(suite: Path) -> None:
    port = free_port()
    with running([suite, "-i", "-S", "127.0.0.1", "-o", port], port) as address:
        report = measured(address, "--location", "--padding", 64)
    assert (report["answered"], report["lost"], report["excluded"]) == (10, 0, 0)
    assert report["seen_as"] == report["from"]


def test_stamp_suite_takes_our_authenticated_requests(suite: Path, key: Path) -> None:
    port = free_port()
    argv = [suite, "-i", "-S", "127.0.0.1", "-o", port, "-A", "A", "--hmac-key", KEY]
    with running(argv, port) as address:
        report = measured(address, "--key-file", key, "--location")
        assert sent(address, "--count", 2, "--wait-ms", 300, code=1)["answered"] == 0
    assert (report["answered"], report["refused_extensions"]) == (10, 0)
    assert report["seen_as"] == report["from"]


@pytest.mark.parametrize("options", [(), ("--ssid", 7)])
def test_stamp_suite_measures_by_our_reflector(suite: Path, options: tuple[object, ...]) -> None:
    with reflector("127.0.0.1:0") as address:
        said = output([suite, "-r", "127.0.0.1", "-p", address.rpartition(":")[2], "-c", 10, "-d", 20, *options])
    assert "Packets received: 10" in said
    assert re.search(r"Packets lost: 0 ", said)


def test_our_reflector_takes_stamp_suites_authenticated_requests(suite: Path, key: Path) -> None:
    with reflector("127.0.0.1:0", "--key-file", key) as address:
        port = address.rpartition(":")[2]
        said = output([suite, "-r", "127.0.0.1", "-p", port, "-c", 10, "-d", 20, "-A", "A", "--hmac-key", KEY])
    assert "Packets received: 10" in said


def test_our_sender_reads_the_short_answers_of_twampy(twampy: Path) -> None:
    port = free_port()
    argv = [sys.executable, "-m", "twampy", "responder", f"127.0.0.1:{port}", "--padding", 0]
    with running(argv, port, PYTHONPATH=str(twampy)) as address:
        report = measured(address)
    assert (report["answered"], report["lost"], report["excluded"]) == (10, 0, 0)


def test_twampy_measures_by_our_reflector(twampy: Path) -> None:
    with reflector("127.0.0.1:0") as address:
        argv = [sys.executable, "-m", "twampy", "sender", address, f"127.0.0.1:{free_port()}"]
        said = output([*argv, "-c", 10, "-i", 100, "--padding", 30], PYTHONPATH=str(twampy))
    rows = re.findall(r"(Outbound|Inbound|Roundtrip):.* (\S+)%", said)
    assert dict(rows) == {"Outbound": "0.0", "Inbound": "0.0", "Roundtrip": "0.0"}, said
