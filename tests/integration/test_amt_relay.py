"""The relay of `downburst-node amt-relay` on loopback, asked by a gateway of a few lines."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.settings.hub import Settings
from downburst.settings.multicast import MulticastSettings
from downburst_app.cli.hub.doctor import amt_answer_s, examine
from kit.amt import AmtRelay, report, request
from kit.capabilities import needs
from kit.node import node_binary
from kit.patience import wait_for

GROUP, SOURCE = "232.77.9.74", "127.0.0.1"


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[AmtRelay]:
    needs("root")
    options = ("--listen", "127.0.0.1:0", "--metrics", str(tmp_path / "amt.prom"), "--groups", "232.77.0.0/16")
    relay = AmtRelay(tmp_path / "relay.log", interface="lo", arguments=options)
    relay.start()
    yield relay
    relay.stop()


def port_of(relay: AmtRelay) -> int:
    return int(relay.lines("AMT relay is ready")[0].split('address="127.0.0.1:')[1].split('"')[0])


def joined(relay: AmtRelay, group: str) -> socket.socket:
    """A gateway's socket after its update for the group."""
    gateway = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    gateway.settimeout(5)
    gateway.connect(("127.0.0.1", port_of(relay)))
    gateway.send(request(7))
    query = gateway.recv(2_000)
    assert (query[0], query[8:12], len(query)) == (4, (7).to_bytes(4, "big"), 66)
    gateway.send(b"\x05\x00" + query[2:12] + report(group, SOURCE))
    return gateway


def send(number: int) -> None:
    """A datagram to the group over loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(SOURCE))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
        sender.sendto(b"datagram %d" % number, (GROUP, 5_001))


def test_a_gateway_receives_the_groups_datagrams_once_and_as_they_were_sent(relay: AmtRelay) -> None:
    with joined(relay, GROUP) as gateway:
        wait_for("the group", lambda: relay.lines("group joined"))
        for number in range(20):
            send(number)
        heard = [gateway.recv(2_000) for _ in range(20)]
        assert [message[2 + 28 :] for message in heard] == [b"datagram %d" % number for number in range(20)]
        assert all(message[:2] == b"\x06\x00" and message[2 + 8] == 7 for message in heard), "one hop less"
        gateway.settimeout(0.3)
        with pytest.raises(TimeoutError):
            gateway.recv(2_000)


def test_a_group_that_is_not_carried_is_refused(relay: AmtRelay) -> None:
    with joined(relay, "232.78.0.1"):
        wait_for("the refusal", lambda: relay.lines("the group is none that this relay carries"))
    assert not relay.lines("group joined")


def test_figures_are_in_the_file_and_doctor_asks_the_relay(relay: AmtRelay, tmp_path: Path) -> None:
    file = tmp_path / "amt.prom"
    wait_for("the file", file.exists)
    assert "downburst_amt_tunnels 0\n" in file.read_text()
    port = port_of(relay)
    assert (amt_answer_s("127.0.0.1", port) or 9) < 1
    settings = Settings(data_dir=tmp_path, multicast=MulticastSettings(amt_relays=[f"127.0.0.1:{port}"]))
    (found,) = [one for one in examine(settings) if one.about == "amt"]
    assert (found.state, found.sentence.startswith(f"the AMT relay 127.0.0.1:{port} answers within ")) == ("ok", True)
    relay.stop()
    (found,) = [one for one in examine(settings) if one.about == "amt"]
    assert (found.state, "does not answer" in found.sentence) == ("weak", True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--interface", "no-such"], "this host has no interface with the name"),
        (["--interface", "lo", "--groups", "x/8"], "has no IP address"),
        (["--interface", "lo", "--query-seconds", "0"], "0 is not in 1..=127"),
        (["--interface", "lo", "--listen", "192.0.2.254:2268"], "the relay can't listen at 192.0.2.254:2268"),
    ],
)
def test_a_relay_that_can_not_work_says_why(options: list[str], sentence: str) -> None:
    needs("root")
    argv = [node_binary(), "amt-relay", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
