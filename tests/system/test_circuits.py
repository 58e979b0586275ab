"""Circuits between a hub and a site, on real kernels: set up, measured, cut, left behind by a crash, ended."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from kit.busy import Stalls
from kit.capabilities import needs
from kit.circuit_bed import Bed
from kit.namespaces import Lab
from kit.node import NodeError
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

RATE_BPS = 60_000_000
SHAPED_BPS = 0.9 * RATE_BPS


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with Lab(["hub", "far"]) as lab:
        yield lab


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_circuit_is_made_measured_changed_and_leaves_nothing(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    host = bed.hub.do("circuit-host")
    assert all(host[part]["able"] for part in ("net_admin", "vxlan", "htb")), host
    standing = bed.up()
    assert standing["state"] == "up", standing
    print(f"two ends took {standing['took_ms']} ms")
    assert bed.up()["state"] == "up"
    reach = bed.hub.do("circuit-probe", lease=17, site="far", kind="reach")["probe"]
    assert (reach["sent"], reach["received"]) == (5, 5)
    for direction in ("out", "in"):
        probe = bed.rate(direction)
        print(direction, probe)
        # The train meets only the shaper; the sending speed of a busy machine is not tested.
        assert probe["received_bps"] < 1.03 * SHAPED_BPS
        assert sum(probe["lost_share_by_bin"]) == 0
        assert probe["burst"]["received"] == probe["burst"]["packets"]
    assert "rate 54Mbit ceil 54Mbit" in lab.output("far", ["tc", "class", "show", "dev", "eth0"])
    bed.hub.wait_event(event="circuit", lease=17, site="far", state="up")
    changed = bed.up(rate_out_bps=30_000_000, rate_in_bps=20_000_000)
    assert changed["state"] == "up"
    assert "rate 27Mbit ceil 27Mbit" in lab.output("hub", ["tc", "class", "show", "dev", "eth0"])
    assert "rate 18Mbit ceil 18Mbit" in lab.output("far", ["tc", "class", "show", "dev", "eth0"])
    down = bed.hub.do("circuit-down", lease=17)
    assert down["left"] == []
    assert len(down["removed"]) == 3
    bed.wait_untouched("hub", "far")
    assert bed.hub.do("circuit-down", lease=17) | {"answer": 0} == {
        "answer": 0,
        "ok": True,
        "removed": [],
        "left": [],
    }


def test_the_time_of_a_circuit_ends_it(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    assert bed.up(until_us=int((time.time() + 1.5) * 1e6))["state"] == "up"
    bed.hub.wait_event(event="circuit", lease=17, state="removed", seconds=5)
    bed.wait_untouched("hub", "far")


def test_a_site_that_takes_part_in_none_is_told_with_what_to_do(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack, circuits=False)
    standing = bed.up()
    end = standing["ends"][1]
    assert (standing["state"], end["state"], end["step"]) == ("failed", "failed", "site")
    assert (end["hop"], end["remedy"]) == ("far-eth0 at far", "start its receiver with --circuits eth0")
    bed.wait_untouched("hub", "far")


def test_a_change_that_fails_leaves_what_stood(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    assert bed.up()["state"] == "up"
    stood = [bed.network(host) for host in ("hub", "far")]
    for end, host in ((0, "hub"), (1, "far")):
        wanted = bed.lease(rate_out_bps=90_000_000, rate_in_bps=90_000_000)
        wanted["ends"][end]["interface"] = "lo" if host == "far" else "eth7"
        failed = bed.hub.do("circuit-up", circuit=wanted)
        assert failed["state"] == "failed"
        print(failed["ends"][end]["sentence"])
        assert failed["ends"][end]["hop"] == f"{host}-eth0 at {host}"
        # Nothing was removed and recreated: the interfaces' own addresses are the same.
        assert [bed.network(host) for host in ("hub", "far")] == stood
        assert bed.hub.do("circuit-probe", lease=17, site="far", kind="reach")["probe"]["received"] == 5


def test_what_a_crash_left_is_found_whenever_it_came(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    seed = int(os.environ.get("DOWNBURST_SEED", "0")) or random.randrange(1 << 30)
    print(f"replay: DOWNBURST_SEED={seed} pytest tests/system/test_circuits.py -k crash")
    moments = random.Random(seed)
    bed = Bed(lab, tmp_path, stack)
    for _ in range(4):
        bed.hub.begin("circuit-up", circuit=bed.lease())
        time.sleep(moments.random() * 0.03)
        bed.hub.kill()
        bed.hub.start()
        assert bed.hub.do("circuits", circuits=[])["circuits"] == []
        bed.wait_untouched("hub")
    bed.hub.wait_connected("far")
    wait_for("a circuit that stands whole", lambda: bed.up()["state"] == "up")
    bed.site.kill()
    assert bed.network("far") != bed.before["far"], "a killed site leaves its end"
    bed.hub.do("circuit-down", lease=17)
    bed.site.start()
    bed.wait_untouched("hub", "far")


def test_a_policer_on_the_way_shows_in_the_probe(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    assert bed.up()["state"] == "up"
    # A class with hardly any buffer drops traffic beyond its rate, as a policer does.
    lab.rate("far", down_bps=RATE_BPS // 2, buffer_bytes=16_000)
    probe = bed.rate()
    print(probe)
    assert probe["received_bps"] < 0.62 * RATE_BPS
    assert probe["received"] < probe["sent"]
    # A policer drops and does not queue: packets that pass arrive without delay.
    assert max(probe["lost_share_by_bin"][1:]) > 0.1


def test_products_ride_leave_a_dead_circuit_and_come_back(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    assert bed.up()["state"] == "up"
    bed.ride()
    bed.wait_riding()
    # More than a second of the circuit's rate, so that the cut comes in the middle.
    put = [bed.put("in the middle", 12_000_000)]
    wait_for("bytes on the circuit", lambda: bed.sent_by_circuit() > 1_000_000)
    assert bed.site.received() == {}, "the cut comes in mid-product"
    with Stalls() as stalls:
        lab.loss("far", 100, protocols=("udp",))
        cut_s = time.time()
        while time.time() < cut_s + 3:
            put.append(bed.put(f"after {time.time() - cut_s:.3f} s", 5_000))
            time.sleep(0.05)
        assert sorted(bed.site.wait_received(len(put)).values()) == sorted(put), "nothing is lost or doubled"
        silent_s = longest_silence_s(bed, since_s=cut_s)
        print(f"nothing came for {silent_s:.2f} s after the cut; the machine stood for {stalls.lost_s():.2f} s")
        assert silent_s < 2 + stalls.lost_s()
    down = bed.hub.wait_event(event="circuit", lease=17, site="far", state="down")
    assert down["hop"] == "far-eth0 at far"
    bed.hub.events.clear()
    lab.loss("far", 0, protocols=("udp",))
    bed.hub.wait_event(event="circuit", lease=17, site="far", state="up")
    bed.wait_riding()
    bed.hub.events.clear()
    put.append(bed.put("when it is back", 3_000_000))
    assert sorted(bed.site.wait_received(len(put)).values()) == sorted(put)
    wait_for("what the circuit carried", lambda: bed.sent_by_circuit() > 3_000_000)


def test_one_feed_of_a_site_rides_and_the_other_keeps_the_routed_path(
    lab: Lab, stack: ExitStack, tmp_path: Path
) -> None:
    bed = Bed(lab, tmp_path, stack, feeds=("CONDUIT", "NEXRAD2"))
    assert bed.up()["state"] == "up"
    bed.ride()
    bed.wait_riding()
    put = [bed.put("routed", 8_000_000, feed="NEXRAD2")]
    bed.site.wait_received(1)
    assert bed.sent_by_circuit() < 100_000, "the feed that does not ride has nothing on the circuit"
    put.append(bed.put("rides", 12_000_000))
    wait_for("bytes on the circuit", lambda: bed.sent_by_circuit() > 1_000_000)
    with Stalls() as stalls:
        lab.loss("far", 100, protocols=("udp",))
        cut_s = time.time()
        while time.time() < cut_s + 3:
            put.append(bed.put(f"routed {time.time() - cut_s:.3f} s after", 5_000, feed="NEXRAD2"))
            time.sleep(0.05)
        assert sorted(bed.site.wait_received(len(put)).values()) == sorted(put), "nothing is lost or doubled"
        silent_s = longest_silence_s(bed, since_s=cut_s, feed="NEXRAD2")
        print(f"the routed feed paused for {silent_s:.2f} s; the machine stood for {stalls.lost_s():.2f} s")
        assert silent_s < 0.8 + stalls.lost_s(), "the cut of a circuit is nothing to a feed that does not ride"
    bed.hub.wait_event(event="circuit", lease=17, site="far", state="down")
    assert "products leave a circuit" in bed.hub_log()


def test_a_hub_that_listens_on_one_address_is_reached_by_its_circuits(
    lab: Lab, stack: ExitStack, tmp_path: Path
) -> None:
    bed = Bed(lab, tmp_path, stack, listen=lab.address("hub"))
    assert bed.up()["state"] == "up"
    bed.ride()
    bed.wait_riding()
    product = bed.put("through the circuit's door", 2_000_000)
    assert list(bed.site.wait_received(1).values()) == [product]
    wait_for("what the circuit carried", lambda: bed.sent_by_circuit() > 2_000_000)
    assert bed.up(rate_out_bps=30_000_000)["state"] == "up", "the door stays while the circuit changes"
    bed.hub.do("circuit-down", lease=17)
    wait_for("a door that is shut", lambda: not lab.output("hub", ["ss", "-Hltn", "src", "10.9.0.0"]))
    assert bed.up()["state"] == "up", "and is opened again"


def test_without_privilege_a_declared_circuit_is_kept_to_its_rate_by_pacing(
    lab: Lab, stack: ExitStack, tmp_path: Path
) -> None:
    bed = Bed(lab, tmp_path, stack, rate_bps=30_000_000, privileged=False)
    assert not bed.hub.do("circuit-host")["net_admin"]["able"]
    made = bed.up()
    assert (made["state"], made["ends"][0]["step"]) == ("failed", "privilege")
    # An external party made this one: the ports themselves.
    declared = bed.lease(driver="declared", vni=None)
    for end, host in zip(declared["ends"], ("hub", "far"), strict=True):
        end |= {"underlay": None, "address": f"{lab.address(host)}/24"}
    assert bed.hub.do("circuit-up", circuit=declared)["state"] == "up"
    assert bed.network("hub") == bed.before["hub"]
    bed.ride()
    wait_for("products on the circuit", lambda: "products go by a circuit" in bed.hub_log())
    wait_for(
        "a connection that is paced", lambda: "pacing_rate" in lab.output("hub", ["ss", "-Htni", "sport", "7370"])
    )
    bed.put("opens the way", 1_000_000)
    bed.site.wait_received(1)
    began_s = time.time()
    bed.put("two seconds of it", 6_000_000)
    bed.site.wait_received(2)
    took_s = max(path.stat().st_mtime for path in bed.files()) - began_s
    print(f"{6e6 * 8 / took_s / 1e6:.1f} Mb/s")
    assert took_s > 6e6 * 8 / (0.95 * bed.rate_bps)


def test_a_multicast_leg_leaves_by_a_circuit_at_its_rate(lab: Lab, stack: ExitStack, tmp_path: Path) -> None:
    bed = Bed(lab, tmp_path, stack)
    assert bed.up()["state"] == "up"
    bed.hub.multicast("CONDUIT", 1, 8, RATE_BPS, ["far"], circuit=17)
    bed.hub.wait_event(event="leg", leg=8, state="joined")
    bed.hub.events.clear()
    product = bed.put("to all", 2_000_000)
    assert list(bed.site.wait_received(1).values()) == [product]
    wait_for("what the circuit carried", lambda: bed.sent_by_circuit() > 2_000_000)
    legs = [leg for event in bed.hub.events_named("traffic") for leg in event["legs"] if leg["leg"] == 8]
    assert sum(leg["egress_bytes"] for leg in legs) > 2_000_000
    with pytest.raises(NodeError, match="circuit 99, which is not up"):
        bed.hub.multicast("CONDUIT", 2, 9, RATE_BPS, ["far"], circuit=99)


def longest_silence_s(bed: Bed, *, since_s: float, feed: str = "") -> float:
    """The longest period from a moment on without a product (of a feed) at the site, by the stamps of its files."""
    files = [path for path in bed.files() if feed in path.parts or not feed]
    stood_s = sorted([since_s, *(path.stat().st_mtime for path in files)])
    return max(after - before for before, after in pairwise(stood_s) if before >= since_s)
