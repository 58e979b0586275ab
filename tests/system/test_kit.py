"""The test kit proves itself: its effects on packets are measured at both ends."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from kit import busy, running
from kit.capabilities import needs, reasons
from kit.namespaces import Lab, delete_namespaces, namespaces, sweep_abandoned_labs
from kit.patience import wait_for
from kit.wire import Lane, Wire, WireReport

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "nft-numgen", "htb")
    with Lab(["hub", "near", "far"]) as built:
        yield built


def test_every_capability_is_known_or_has_a_reason() -> None:
    found = reasons()
    links = {"netns", "veth", "bridge", "tun", "vxlan", "8021q"}
    assert {"root", *links, "htb", "nft-numgen", "nft-egress", "chromium"} == set(found)
    assert not [name for name in namespaces() if name.endswith("xprobe") and str(os.getpid()) in name]


def test_hosts_reach_each_other_and_multicast_reaches_all(lab: Lab) -> None:
    assert "0% packet loss" in lab.output("hub", ["ping", "-c1", "-W2", lab.address("far")])
    listeners = [listen(lab, host, group="239.77.0.9") for host in ("near", "far")]
    send(lab, "hub", "239.77.0.9", datagrams=50)
    assert [received(listener) for listener in listeners] == [50, 50]


def test_a_lab_leaves_nothing_behind_and_touches_no_rule_of_the_machine() -> None:
    needs("root", "netns", "veth", "bridge", "nft-numgen")
    before = machine_state()
    sleepers = []

    def fail_inside_a_lab() -> None:
        with Lab(["a", "b"]) as built:
            sleepers.append(built.run("a", ["sleep", "1000"]))
            built.loss("a", 5)
            built.rate("b", down_bps=1_000_000)
            assert machine_state() != before, "the lab's namespaces must be visible while it exists"
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail_inside_a_lab()
    assert sleepers[0].wait(timeout=5) != 0
    assert machine_state() == before


def test_a_lab_whose_run_was_killed_is_swept() -> None:
    needs("root", "netns", "veth", "bridge")
    code = "import os, signal, kit.namespaces as n; n.Lab(['a']).__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": "tests"}, check=False)
    assert killed.returncode == -9
    assert [name for name in namespaces() if re.match(r"db\d+x\w{4}-a$", name)]
    sweep_abandoned_labs()
    assert not [name for name in namespaces() if re.match(r"db\d+x\w{4}-a$", name)]


def test_a_failed_build_leaves_nothing_behind() -> None:
    needs("root", "netns", "veth", "bridge")
    before = machine_state()
    with pytest.raises(RuntimeError, match="ended with"), Lab(["good", "bad/name"]):
        pytest.fail("a name with a slash can't be a namespace")
    assert machine_state() == before


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(ValueError, match="no host 'nowhere' in this lab; it has a, b"):
        Lab(["a", "b"]).namespace("nowhere")
    delete_namespaces([])


def test_loss_takes_its_share_of_datagrams(lab: Lab) -> None:
    lab.loss("near", 5)
    listeners = {host: listen(lab, host, group="239.77.0.9") for host in ("near", "far")}
    send(lab, "hub", "239.77.0.9", datagrams=20_000, gap_us=20)
    arrived = {host: received(listener) for host, listener in listeners.items()}
    lost = lab.lost_packets("near")
    # Five standard deviations of a binomial with n = 20,000 and p = 0.05 are 154; end markers are dropped too.
    assert 1_000 - 165 < lost < 1_000 + 165
    assert arrived["far"] == 20_000
    assert 0 <= arrived["near"] + lost - 20_000 <= 40


def test_loss_can_be_taken_away(lab: Lab) -> None:
    lab.loss("near", 100)
    lab.loss("near", 0)
    listener = listen(lab, "near", group="239.77.0.9")
    send(lab, "hub", "239.77.0.9", datagrams=200)
    assert received(listener) == 200


def test_rate_limits_what_reaches_a_host_and_what_it_sends(lab: Lab) -> None:
    lab.rate("near", down_bps=20_000_000, up_bps=5_000_000)
    busy.needs_quiet_machine()
    assert goodput_bps(lab, "hub", "near") == pytest.approx(20_000_000 * GOODPUT_SHARE, rel=0.1)
    assert goodput_bps(lab, "near", "hub") == pytest.approx(5_000_000 * GOODPUT_SHARE, rel=0.1)
    assert goodput_bps(lab, "hub", "far", byte_count=20_000_000) > 100_000_000, "others are not slowed"


def test_the_wire_delays(lab: Lab) -> None:
    needs("tun")
    busy.needs_quiet_machine()
    with Wire(lab, "hub", "far", to_right=Lane(delay_ms=30), to_left=Lane(delay_ms=20)) as wire:
        answer = lab.output("hub", ["ping", "-c10", "-i0.05", "-W2", wire.right_address])
        wire.stop().needs_small_lag()
    shortest_ms, mean_ms = (float(text) for text in re.findall(r"= ([\d.]+)/([\d.]+)/", answer)[0])
    assert shortest_ms >= 50
    assert mean_ms < 58


def test_the_wire_has_the_rate_of_each_direction(lab: Lab) -> None:
    needs("tun")
    busy.needs_quiet_machine()
    slow = Lane(rate_bps=5_000_000, buffer_bytes=64_000)
    with Wire(lab, "hub", "far", to_right=Lane(rate_bps=20_000_000, buffer_bytes=64_000), to_left=slow) as wire:
        to_right_bps = goodput_bps(lab, "hub", "far", address=wire.right_address)
        to_left_bps = goodput_bps(lab, "far", "hub", address=wire.left_address)
        wire.stop().needs_small_lag()
    assert to_right_bps == pytest.approx(20_000_000 * GOODPUT_SHARE, rel=0.1)
    assert to_left_bps == pytest.approx(5_000_000 * GOODPUT_SHARE, rel=0.1)


def test_the_wire_loses_every_kth_data_frame_and_drops_what_its_buffer_cannot_hold(lab: Lab) -> None:
    needs("tun")
    with Wire(lab, "hub", "far", to_right=Lane(every=10)) as wire:
        report = report_of_datagrams(lab, wire, datagrams=1_000)
    assert report.to_right.lost_frames == 1_000 // 10
    assert report.to_right.overflowed_frames == 0

    with Wire(lab, "hub", "far", to_right=Lane(rate_bps=1_000_000, buffer_bytes=10_000)) as wire:
        report = report_of_datagrams(lab, wire, datagrams=1_000)
    assert report.to_right.overflowed_frames > 500


def test_the_wire_loses_at_random(lab: Lab) -> None:
    needs("tun")
    with Wire(lab, "hub", "far", to_right=Lane(loss=0.1), seed=7) as wire:
        report = report_of_datagrams(lab, wire, datagrams=5_000)
    # Five standard deviations of a binomial with n = 5,000 and p = 0.1 are 106.
    assert 500 - 106 < report.to_right.lost_frames < 500 + 106


def report_of_datagrams(lab: Lab, wire: Wire, *, datagrams: int) -> WireReport:
    # The neighbour is resolved first: the kernel would drop datagrams that are queued behind its resolution.
    lab.output("hub", ["ping", "-c1", "-W5", wire.right_address])
    send(lab, "hub", wire.right_address, datagrams=datagrams, gap_us=50, markers=0)
    return wire.stop()


def listen(lab: Lab, host: str, *, group: str) -> subprocess.Popen[str]:
    """Start counting datagrams to the group at a host; returns once it listens."""
    argv = [sys.executable, "-c", LISTENER, group, lab.address(host)]
    process = lab.run(host, argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "listening\n"
    return process


def received(listener: subprocess.Popen[str]) -> int:
    printed, _ = listener.communicate(timeout=60)
    return int(printed)


def send(lab: Lab, host: str, to: str, *, datagrams: int, gap_us: int = 0, markers: int = 40) -> None:
    lab.output(host, [sys.executable, "-c", SENDER, to, str(datagrams), str(gap_us), str(markers)])


def goodput_bps(lab: Lab, source: str, target: str, *, address: str = "", byte_count: int = 2_500_000) -> float:
    """Send bytes over one TCP connection and return the rate at which the target took them."""
    to = address or lab.address(target)
    sink = lab.run(target, [sys.executable, "-c", SINK, to, str(byte_count)], stdout=subprocess.PIPE)
    assert sink.stdout is not None
    assert sink.stdout.readline() == "listening\n"
    lab.output(source, [sys.executable, "-c", SOURCE, to, str(byte_count)])
    printed, _ = sink.communicate(timeout=60)
    return byte_count * 8 / float(printed)


def machine_state() -> list[str]:
    """All state of the machine's own network that a lab might disturb, and the list of namespaces."""
    commands = (
        ["ip", "-brief", "link"],
        ["ip", "rule"],
        ["ip", "route"],
        ["nft", "list", "ruleset"],
        ["tc", "qdisc"],
    )
    return [subprocess.check_output(argv, text=True) for argv in commands] + namespaces()


# TCP payload of a full segment (1,448 bytes with time stamps) over its Ethernet frame (1,514 bytes).
GOODPUT_SHARE = 1_448 / 1_514

LISTENER = textwrap.dedent("""
    import socket, sys
    group, address = sys.argv[1:]
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE: above the machine's limit
    listener.bind((group, 17000))
    membership = socket.inet_aton(group) + socket.inet_aton(address)
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    print("listening", flush=True)
    listener.settimeout(30)
    count = 0
    while listener.recv(2000) != b"end":
        count += 1
    print(count)
""")

SENDER = textwrap.dedent("""
    import socket, sys, time
    to, datagrams, gap_us, markers = sys.argv[1], *map(int, sys.argv[2:])
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    due = time.perf_counter()
    for _ in range(datagrams):
        sender.sendto(b"x" * 200, (to, 17000))
        due += gap_us / 1e6
        while time.perf_counter() < due:
            pass
    for _ in range(markers):
        sender.sendto(b"end", (to, 17000))
""")

SINK = textwrap.dedent("""
    import socket, sys, time
    address, byte_count = sys.argv[1], int(sys.argv[2])
    server = socket.create_server((address, 17001))
    print("listening", flush=True)
    connection, _ = server.accept()
    started, taken = time.perf_counter(), 0
    while taken < byte_count:
        taken += len(connection.recv(1 << 16))
    print(time.perf_counter() - started)
""")

SOURCE = textwrap.dedent("""
    import socket, sys
    address, byte_count = sys.argv[1], int(sys.argv[2])
    with socket.create_connection((address, 17001)) as connection:
        connection.sendall(bytes(byte_count))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
""")


def test_what_a_failed_test_left_running_is_ended_with_its_pipes() -> None:
    closed = []
    for _ in range(2):
        process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.note(process, lambda: closed.append("once it ended"))
    ended = subprocess.Popen(["true"])
    running.note(ended)
    ended.wait()
    assert running.end_what_is_left() == ["['sleep', '60']"] * 2
    assert process.returncode == -signal.SIGKILL
    assert process.stdin
    assert process.stdin.closed
    assert closed == ["once it ended"] * 2
    assert running.end_what_is_left() == []


def test_a_wait_counts_no_time_in_which_the_test_itself_stood_still() -> None:
    looks = iter(range(4))

    def probe() -> bool:
        time.sleep(0.3)
        return next(looks) == 3

    assert wait_for("fourth look", probe, seconds=0.5)
    with pytest.raises(AssertionError, match=r"no miracle within 0\.2 s"):
        wait_for("miracle", lambda: None, seconds=0.2)
