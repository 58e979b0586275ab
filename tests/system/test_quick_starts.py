"""The quick starts hold, word by word: their commands are typed, and their stated output appears."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs, skip
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.page_hub import ROOT
from kit.slow_disk import slow_disk
from kit.told import Reader
from kit.wire import Lane, Wire

pytestmark = pytest.mark.system
DOCS = ROOT / "docs"


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("netns", "veth", "bridge")
    with Lab(["hub", "site"]) as made:
        yield made


@pytest.fixture
def operator(lab: Lab, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(lab, "hub", tmp_path / "operator")
    yield reader
    reader.close()


def test_an_operator_has_a_hub_with_a_site_that_receives(operator: Reader) -> None:
    operator.follow(DOCS / "quick-start-operator.md")


@pytest.mark.smoke
def test_from_a_clone_to_a_site_whose_latency_is_seen(operator: Reader) -> None:
    operator.follow(ROOT / "README.md", part="From a clone to your first site's latency")


@pytest.mark.smoke
def test_an_administrator_receives_and_a_viewer_reads_how_late_it_was(
    lab: Lab, operator: Reader, tmp_path: Path
) -> None:
    scene = tmp_path / "scene.md"
    scene.write_text(SCENE)
    operator.follow(scene)
    own = {"HUB": f"{lab.address('hub')}:7370", "TOKEN": str(tmp_path / "operator" / "unl.edu.token")}
    administrator = Reader(lab, "site", tmp_path / "administrator", own)
    try:
        administrator.follow(DOCS / "quick-start-site.md")
    finally:
        administrator.close()
    token = (tmp_path / "operator" / "viewer.token").read_text().strip()
    own = {"HUB": f"http://{lab.address('hub')}:7371", "TOKEN": token}
    viewer = Reader(lab, "site", tmp_path / "viewer", own)
    viewer.follow(DOCS / "quick-start-viewer.md")


@pytest.mark.parametrize("congestion", ["reno", pytest.param("bbr", marks=pytest.mark.nightly)])
def test_the_cause_of_a_slow_site_is_found_and_mended(lab: Lab, tmp_path: Path, congestion: str) -> None:
    needs("tun")
    lanes = Lane(RATE_BPS, DELAY_MS), Lane(RATE_BPS, DELAY_MS)
    own = {"SITE": "unl.edu", "FEED": "NGRID", "PRODUCT": "grid/1"}
    with Wire(lab, "hub", "site", to_right=lanes[0], to_left=lanes[1]) as wire, ExitStack() as stack:
        operator = Reader(lab, "hub", tmp_path / "operator", own)
        stack.callback(operator.close)
        scene = tmp_path / "scene.md"
        scene.write_text(SLOW_SCENE)
        operator.follow(scene, part="A hub")
        lab.output("hub", ["sysctl", "-qw", f"net.ipv4.tcp_congestion_control={congestion}"])
        lab.output("site", ["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 16384 16384"])
        token = {"HUB": f"{wire.left_address}:7370", "TOKEN": str(tmp_path / "operator" / "unl.edu.token")}
        administrator = Reader(lab, "site", tmp_path / "administrator", token)
        stack.callback(administrator.close)
        administrator.follow(DOCS / "quick-start-site.md", part="Receive")
        operator.follow(scene, part="Its products")
        told = DOCS / "quick-start-slow-site.md"
        operator.follow(told, until="A larger receive window")
        assert "receive-window" in (tmp_path / "operator" / "slow.html").read_text()
        administrator.follow(told, part="A larger receive window")
        operator.follow(told, part="5. The proof")


def test_a_slow_disk_is_told_from_a_slow_network(lab: Lab, tmp_path: Path) -> None:
    own = {"SITE": "unl.edu", "FEED": "NGRID", "SMALL": "small/3"}
    with slow_disk(tmp_path, DISK_BYTES_PER_S) as disk, ExitStack() as stack:
        operator = Reader(lab, "hub", tmp_path / "operator", own)
        stack.callback(operator.close)
        scene = tmp_path / "scene.md"
        scene.write_text(SLOW_SCENE)
        operator.follow(scene, part="A hub")
        site = SiteNode(disk.directory / "site", f"{lab.address('hub')}:7370", prefix=lab.command("site", []))
        site.directory.mkdir()
        shutil.copy(tmp_path / "operator" / "unl.edu.token", site.token_file)
        stack.callback(site.stop)
        disk.bind(site.start().process.pid)
        operator.follow(scene, part="Its small products")
        operator.follow(scene, part="The site's name")
        operator.follow(DOCS / "quick-start-slow-site.md", part="If it is the disk")


def test_a_feed_of_an_ldm_is_published_to_wis2(lab: Lab, tmp_path: Path) -> None:
    if shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        skip("mosquitto is not installed (apt-get install mosquitto mosquitto-clients)")
    scene = tmp_path / "scene.md"
    scene.write_text(LDM_SCENE)
    with ExitStack() as stack:
        ldm = Reader(lab, "site", tmp_path / "ldm")
        stack.callback(ldm.close)
        ldm.follow(scene, part="An LDM")
        own = {"LDM": lab.address("site"), "CENTRE": "us-unl-test"}
        operator = Reader(lab, "hub", tmp_path / "operator", own)
        stack.callback(operator.close)
        operator.follow(scene, part="A hub")
        operator.follow(DOCS / "quick-start-wis2.md")


@pytest.fixture
def campus() -> Iterator[Lab]:
    needs("netns", "veth", "bridge")
    with Lab(["hub", "relay", *CAMPUS]) as made:
        yield made


def test_a_relay_brings_one_copy_to_a_campus(campus: Lab, tmp_path: Path) -> None:
    told, hub_address = DOCS / "quick-start-relay.md", f"{campus.address('hub')}:7370"
    own = {"RELAY": campus.address("relay"), "SITES": ",".join(CAMPUS), "FEEDS": "NGRID"}
    with ExitStack() as stack:
        operator = Reader(campus, "hub", tmp_path / "operator", own)
        stack.callback(operator.close)
        scene = tmp_path / "scene.md"
        scene.write_text(CAMPUS_SCENE)
        operator.follow(scene)
        for name in CAMPUS:
            site = SiteNode(tmp_path / name, hub_address, prefix=campus.command(name, []))
            site.directory.mkdir()
            shutil.copy(tmp_path / "operator" / f"{name}.token", site.token_file)
            stack.callback(site.stop)
            site.start()
        operator.follow(told, until="At the relay's host")
        administrator = Reader(campus, "relay", tmp_path / "administrator", {"HUB": hub_address})
        stack.callback(administrator.close)
        shutil.copy(tmp_path / "operator" / "campus.token", tmp_path / "administrator")
        administrator.follow(told, part="At the relay's host")
        operator.follow(told, part="The relay at work")
        operator.follow(told, part="The end of a relay")


# Prerequisites: a hub with default rights, incoming products, an approved site, and a token for a viewer.
RATE_BPS, DELAY_MS = 50_000_000, 15.0
DISK_BYTES_PER_S = 500_000
SLOW_SCENE = """\
## A hub
```sh stays
downburst hub --data-dir ~/hub --sites 0.0.0.0:7370
```
```text
page and api at http://127.0.0.1:7371
```
```sh
downburst feeds add NGRID
downburst sites add unl.edu --allow NGRID
downburst sites set unl.edu --data-connections 0
downburst subscriptions add unl.edu NGRID
downburst sites token unl.edu -o unl.edu.token
```
## The site's name
```sh fill in
SITE=unl.edu
FEED=NGRID
```
## Its small products
```sh again
downburst status
```
```text
│ unl.edu │ connected since …
```
```sh stays
while true; do
    head -c 100000 /dev/urandom > small.bin
    downburst put NGRID "small/$((++number))" small.bin
    sleep 0.5
done
```
## Its products
```sh again
downburst status
```
```text
│ unl.edu │ connected since …
```
```sh stays
while true; do
    head -c 400000 /dev/urandom > grid.bin
    downburst put NGRID "grid/$((++number))" grid.bin
    sleep 0.5
done
```
"""
CAMPUS = ("oslo", "bergen", "voss", "moss")
CAMPUS_SCENE = """\
```sh stays
DOWNBURST_TIME_SCALE=20 DOWNBURST_MULTICAST__ENABLED=false downburst hub --data-dir ~/hub --sites 0.0.0.0:7370
```
```text
page and api at http://127.0.0.1:7371
```
```sh
downburst feeds add NGRID
for site in oslo bergen voss moss; do
    downburst sites add $site --allow NGRID
    downburst subscriptions add $site NGRID
    downburst sites token $site -o $site.token
done
```
```sh stays
head -c 400000 /dev/urandom > grid.bin
while true; do downburst put NGRID "grid/$((++number))" grid.bin; sleep 0.3; done
```
"""
LDM_SCENE = """\
## An LDM
```sh stays
DOWNBURST_LDM__LISTEN='["0.0.0.0:388"]' downburst hub --data-dir ~/hub
```
```text
page and api at http://127.0.0.1:7371
```
```sh
downburst feeds add 'IDS|DDPLUS' --ldm-feed-type 'IDS|DDPLUS'
downburst sites add reader --ldm-host '.*'
downburst subscriptions add reader 'IDS|DDPLUS'
```
```sh stays
while true; do
    printf 'SMVX52 TJSJ 2912%02d\\r\\r\\nAAXX 2912%02d\\r\\r\\n' "$number" "$number" > report
    downburst put 'IDS|DDPLUS' "SMVX52 TJSJ 2912$((10 + ++number % 50))" report
    sleep 0.5
done
```
## A hub
```sh stays
downburst hub --data-dir ~/hub
```
```text
page and api at http://127.0.0.1:7371
```
"""
SCENE = """\
```sh stays
downburst hub --data-dir ~/hub --sites 0.0.0.0:7370 --http 0.0.0.0:7371
```
```text
page and api at http://0.0.0.0:7371
```
```sh
downburst feeds add NGRID
downburst sites add unl.edu --allow NGRID
downburst subscriptions add unl.edu NGRID
downburst sites token unl.edu -o unl.edu.token
downburst tokens add anna --role viewer -o viewer.token
```
```sh stays
while true; do downburst put NGRID "readme/$((++number))" README.md; sleep 1; done
```
"""
