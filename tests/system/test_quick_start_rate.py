"""The quick start of a group's rate holds, word by word, on a wire of known rate."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs, needs_punctual_sender
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.page_hub import ROOT
from kit.told import Reader
from kit.whole_hub import DOWNBURST
from kit.wire import Lane, Wire

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]
CAMPUS_BPS = 20_000_000


@pytest.fixture
def pair() -> Iterator[Lab]:
    needs("netns", "veth", "bridge", "tun")
    with Lab(["hub", "campus"]) as made:
        yield made


def test_a_group_follows_the_rate_that_its_campus_carries(pair: Lab, tmp_path: Path) -> None:
    lane = Lane(CAMPUS_BPS, 10.0, buffer_bytes=60_000)
    with Wire(pair, "hub", "campus", to_right=lane, to_left=lane) as wire, ExitStack() as stack:
        pair.output("hub", ["ip", "route", "replace", "239.0.0.0/8", "dev", wire.device])
        operator_home = tmp_path / "operator"
        own = {"INTERFACE": wire.left_address, "SITES": '"unl.edu isu.edu"'}
        operator = Reader(pair, "hub", operator_home, own)
        stack.callback(operator.close)
        told = ROOT / "docs" / "quick-start-multicast-rate.md"
        operator.follow(told, until="The sites")
        for name in ("unl.edu", "isu.edu"):
            site = SiteNode(tmp_path / name, f"{wire.left_address}:7370", prefix=pair.command("campus", []))
            site.directory.mkdir()
            shutil.copy(tmp_path / "operator" / f"{name}.token", site.token_file)
            stack.callback(site.stop)
            site.start()
        try:
            for part in ("The sites", "The probe", "The group's rate"):
                operator.follow(told, part=part)
        except AssertionError as error:
            wire.stop().needs_small_lag()
            found = pair.output("hub", ["env", f"HOME={operator_home}", DOWNBURST, "probe", "list"])
            needs_punctual_sender(f"{error}\n{found}")
            raise
