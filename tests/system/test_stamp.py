"""Our sender against our reflector: on loopback, and over a path whose two directions differ."""

import json
import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.ports import free_ports
from kit.programs import built
from kit.stamp import reflector, sent
from kit.whole_hub import WholeHub
from kit.wire import Lane, Wire

pytestmark = pytest.mark.system

MS = 1_000_000
"""Nanoseconds."""


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0"])
@pytest.mark.parametrize("authenticated", [False, True])
def test_each_request_is_answered(tmp_path: Path, listen: str, authenticated: bool) -> None:
    key = tmp_path / "key"
    key.write_text("a secret of sixteen octets or more\n")
    options = ["--key-file", key] if authenticated else []
    with reflector(listen, *options) as address:
        report = sent(address, "--count", 20, "--interval-ms", 5, "--location", "--padding", 200, *options)
    assert (report["sent"], report["answered"], report["lost"], report["duplicated"]) == (20, 20, 0, 0)
    assert report["directions"] == {
        "known": "yes",
        "forward_lost": 0,
        "backward_lost": 0,
        "either_lost": 0,
        "forward_reordered": 0,
        "backward_reordered": 0,
    }
    assert report["seen_as"] == report["from"]
    assert (report["unrecognized_extensions"], report["refused_extensions"]) == (0, 0)
    assert 0 < report["round_trip_ns"]["min"] <= report["round_trip_ns"]["median"]
    assert report["excluded"] == 0
    # One clock: its offset from itself is within the bound.
    assert abs(report["offset"]["offset_ns"]) <= report["offset"]["bound_ns"]


def test_a_shifted_clock_is_found_within_the_bound_and_spoils_no_round_trip() -> None:
    with reflector("127.0.0.1:0", "--shift-clock-us", 250_000) as address:
        report = sent(address, "--count", 20, "--interval-ms", 5, "--ptp")
    offset = report["offset"]
    assert abs(offset["offset_ns"] - 250 * MS) <= offset["bound_ns"]
    assert report["forward_ns"]["median"] > 240 * MS
    assert report["backward_ns"]["median"] < 0, "negative values are shown"
    assert report["clocks"]["standing"] == "not-known"
    assert report["round_trip_ns"]["min"] < 50 * MS


def test_a_key_is_needed_and_nobody_answers_without_one(tmp_path: Path) -> None:
    key, other, short = (tmp_path / name for name in ("key", "other", "short"))
    key.write_text("a secret of sixteen octets or more")
    other.write_text("another secret of sixteen octets")
    short.write_text("short")
    run = ("--count", 2, "--interval-ms", 5, "--wait-ms", 300)
    with reflector("127.0.0.1:0", "--key-file", key) as address:
        assert sent(address, *run, code=1)["answered"] == 0
        assert sent(address, *run, "--key-file", other, code=1)["answered"] == 0
        report = sent(address, *run, "--key-file", key)
    assert report["answered"] == 2
    argv = [str(built("downburst-node")), "stamp", "send", "--to", address, "--key-file", str(short)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "at least 16" in done.stderr) == (2, True)


def test_a_source_beyond_its_budget_is_not_answered() -> None:
    with reflector("127.0.0.1:0", "--requests-per-second", 5) as address:
        report = sent(address, "--count", 30, "--interval-ms", 1, "--wait-ms", 300)
    assert 5 <= report["answered"] < 15
    assert report["lost"] == 30 - report["answered"]


def test_no_answer_is_larger_than_what_was_asked() -> None:
    with reflector("127.0.0.1:0") as address, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        host, _, port = address.rpartition(":")
        asker.settimeout(10)
        asker.connect((host, int(port)))
        for octets in (b"", b"x", bytes(40)):
            asker.send(octets)
        for octets in (bytes(41), bytes(44), bytes(1400)):
            asker.send(octets)
            assert len(asker.recv(65_536)) == len(octets)


def test_hub_and_site_answer_where_their_operators_want_it(tmp_path: Path) -> None:
    at_hub, at_site = (f"127.0.0.1:{port}" for port in free_ports(2))
    hub = WholeHub(tmp_path / "hub", top=f'stamp_listen = "{at_hub}"').start()
    hub.ask("POST", "/v1/sites", json={"site": "unl.edu"})
    token = tmp_path / "token"
    token.write_text(hub.ask("POST", "/v1/sites/unl.edu/tokens")["token"])
    argv = [built("downburst-node"), "receive", "--hub", hub.sites, "--token-file", token, "--dir", tmp_path / "site"]
    with subprocess.Popen([*map(str, argv), "--stamp-listen", at_site]) as site:
        try:
            for address in (at_hub, at_site):
                answers = partial(_answered, address)
                assert wait_for(f"answers at {address}", answers, 60) == 3
        finally:
            site.terminate()
    assert hub.stop() == 0


def _answered(address: str) -> int:
    """The answers to three requests."""
    argv = [str(built("downburst-node")), "stamp", "send", "--to", address, "--json", "--count", "3"]
    done = subprocess.run([*argv, "--wait-ms", "300"], capture_output=True, text=True, timeout=60, check=False)
    answered: int = json.loads(done.stdout)["answered"]
    return answered


@pytest.mark.root
@pytest.mark.alone
def test_a_path_of_10_and_60_ms_is_within_the_bound_and_its_losses_have_directions() -> None:
    needs("root", "netns", "veth", "bridge", "tun")
    # Every tenth data frame is lost on its way to the reflector.
    there, back = Lane(delay_ms=10, every=10), Lane(delay_ms=60)
    with Lab(["here", "there"]) as lab, Wire(lab, "here", "there", to_right=there, to_left=back) as wire:
        place, far = partial(lab.command, "here"), partial(lab.command, "there")
        with reflector(f"{wire.right_address}:8620", inside=far) as address:
            report = sent(address, "--count", 100, "--interval-ms", 10, inside=place)
        carried = wire.stop()
    carried.needs_small_lag()
    assert report["lost"] == carried.to_right.lost_frames > 0
    figures = report["directions"]
    assert (figures["known"], figures["backward_lost"], figures["either_lost"] <= 1) == ("yes", 0, True)
    assert figures["forward_lost"] + figures["either_lost"] == report["lost"]
    assert report["round_trip_ns"]["min"] == pytest.approx(70 * MS, abs=3 * MS)
    # Both ends have one clock, so that these are the true delays; its offset of 0 is within the bound.
    assert report["forward_ns"]["min"] == pytest.approx(10 * MS, abs=2 * MS)
    assert report["backward_ns"]["min"] == pytest.approx(60 * MS, abs=2 * MS)
    assert abs(report["offset"]["offset_ns"]) <= report["offset"]["bound_ns"]
