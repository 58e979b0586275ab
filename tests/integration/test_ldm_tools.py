"""`downburst-node ldm`: the node's tools against a peer that speaks LDM on its own, over TCP."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kit.ldm.peer import FEEDME, NOTIFYME, NULLPROC, golden, ldm_peer
from kit.node import node_binary
from kit.patience import wait_for


def tool(*arguments: str, code: int = 0) -> tuple[str, str]:
    """Runs a tool that must end with ``code``."""
    done = subprocess.run([node_binary(), "ldm", *arguments], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def test_ping_tells_that_a_server_answers_and_how_fast() -> None:
    with ldm_peer({NULLPROC: "nullproc-reply"}) as peer:
        told = json.loads(tool("ping", "--json", peer.address)[0])
        shown, _ = tool("ping", peer.address)
    assert (told["version"], peer.heard) == (6, [(6, NULLPROC)] * 2)
    assert 0 < told["answer_us"] < 60_000_000
    assert shown.startswith(f"{peer.address} answers LDM 6: connected in ")


def test_ping_asks_an_older_server_in_its_version() -> None:
    with ldm_peer({NULLPROC: "5:nullproc-reply"}) as peer:
        assert json.loads(tool("ping", "--json", peer.address)[0])["version"] == 5
    assert peer.heard == [(6, NULLPROC), (5, NULLPROC)]


def test_ping_says_why_a_server_does_not_answer() -> None:
    with ldm_peer({}) as peer:
        assert "does not answer as LDM: the connection was closed" in tool("ping", peer.address, code=1)[1]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "did not answer within 0.3 s" in tool("ping", "--timeout", "0.3", address, code=1)[1]
    assert "can't be reached" in tool("ping", address, code=1)[1]
    assert "--timeout takes" in tool("ping", "--timeout", "0", address, code=2)[1]


def test_notify_prints_what_a_server_gets() -> None:
    with ldm_peer({NOTIFYME: "feed-ok"}, ["nullproc", "notification", "notification", "notification"]) as peer:
        shown, _ = tool("notify", peer.address, "--since", "999999999", "-n", "2", "--json")
        plain, _ = tool("notify", peer.address, "--since", "999999999", "-n", "1")
    first, second = [json.loads(line) for line in shown.splitlines()]
    assert first == second
    assert first == {
        "feed": "EXP",
        "id": "s/00000",
        "size": 2000,
        "created_us": 0x6B01190D * 1_000_000 + 0x000EECA4,
        "origin": "ldm-up.test.org_v_127.0.0.1",
        "sequence": 0,
        "signature": "a5" * 16,
    }
    assert plain.split()[1:] == ["2000", "20261121040741.978", "EXP", "000", "s/00000"]
    assert peer.heard[:2] == [(6, NOTIFYME), (0, 0x22)], "the heartbeat is answered, the one-way calls are not"


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("feed-denied", "ask its administrator for an ALLOW line"),
        ("feed-bad-pattern", "can't use a pattern"),
        ("not-allowed", "does not allow this host"),
    ],
)
def test_notify_says_why_a_server_refuses(answer: str, part: str) -> None:
    with ldm_peer({NOTIFYME: answer}) as peer:
        assert part in tool("notify", peer.address, code=3)[1]


def test_notify_refuses_what_can_not_be_asked() -> None:
    assert "no feed is called NOPE" in tool("notify", "127.0.0.1:1", "--feed", "NOPE", code=2)[1]
    assert "at character 1" in tool("notify", "127.0.0.1:1", "--pattern", "(", code=2)[1]
    assert "can't be reached" in tool("notify", "127.0.0.1:1", code=1)[1]


def test_fetch_writes_products_and_goes_on_behind_the_last(tmp_path: Path) -> None:
    with ldm_peer({FEEDME: "feed-ok"}, ["hereis", "nullproc"]) as peer:
        fetch = ["fetch", peer.address, "--feed", "EXP", "--to", str(tmp_path / "out"), "-n", "1"]
        told = json.loads(tool(*fetch)[0])
        again = json.loads(tool(*fetch)[0])
    assert again == told
    assert Path(told["file"]).name == "a5" * 16 + "_s%2F00000"
    assert Path(told["file"]).read_bytes() == golden("hereis")[-2000:]
    assert peer.requests[0].find(b"SIG=") == -1, "there is nothing to go on from"
    assert b"SIG=" + b"a5" * 16 in peer.requests[1]


def test_fetch_takes_a_product_that_is_asked_about_first(tmp_path: Path) -> None:
    with ldm_peer({FEEDME: "feed-ok"}, ["comingsoon", "blkdata"]) as peer:
        told = json.loads(tool("fetch", peer.address, "--feed", "EXP", "--to", str(tmp_path), "-n", "1")[0])
    assert Path(told["file"]).read_bytes() == golden("hereis")[-2000:]


def test_fetch_makes_a_connection_again_that_breaks_within_a_product(tmp_path: Path) -> None:
    with ldm_peer({FEEDME: "feed-ok"}, ["half of hereis"]) as peer:
        command = [node_binary(), "ldm", "fetch", peer.address, "--feed", "EXP", "--to", str(tmp_path), "-n", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as fetching:
            wait_for("a second request", lambda: len(peer.requests) > 1, 30)
            assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
            peer.calls = ["hereis"]
            out, errors = fetching.communicate(timeout=60)
    assert json.loads(out)["size"] == 2000
    assert "the connection was closed; connecting again" in errors


def typed(*argv: str, code: int = 0) -> tuple[bytes, str]:
    """Runs one of LDM's tools as people do on a command line."""
    environment = {**os.environ, "DOWNBURST_NODE": node_binary()}
    command = [str(Path(sys.executable).with_name("downburst")), *argv]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60, env=environment)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr.decode()


def test_notifyme_feedme_and_ldmping_take_the_options_that_people_type() -> None:
    ago = ["-o", "999999999"]
    with ldm_peer({NOTIFYME: "feed-ok"}, ["notification", "notification"]) as peer:
        told, _ = typed("notifyme", "-v", "-l-", "-h", peer.address, "-f", "EXP", "-p", "^s", *ago, "-n", "2")
        assert [line.split()[1:] for line in told.decode().splitlines()] == [
            ["2000", "20261121040741.978", "EXP", "000", "s/00000"]
        ] * 2
        assert typed("notifyme", "-h", peer.address, "-T", "0.5", *ago)[0].count(b"s/00000") == 2
    with ldm_peer({FEEDME: "feed-ok"}, ["hereis"]) as peer:
        content, said = typed("feedme", "-v", "-h", peer.address, "-f", "EXP", "-n", "1", *ago)
    assert content == golden("hereis")[-2000:]
    assert said.split()[-5:] == ["2000", "20261121040741.978", "EXP", "000", "s/00000"]
    with ldm_peer({NULLPROC: "nullproc-reply"}) as peer:
        shown, _ = typed("ldmping", "-i", "0", peer.address)
    head, line = shown.decode().splitlines()
    assert head.split()[3:] == ["State", "Elapsed", "Port", "Remote_Host", "rpc_stat"]
    assert line.split()[3] == "RESPONDING"
    assert line.split()[5:] == [peer.address.rpartition(":")[2], "127.0.0.1"]


def test_ldms_tools_say_why_they_fail() -> None:
    assert "no feed is called NOPE" in typed("notifyme", "-h", "127.0.0.1:1", "-f", "NOPE", code=2)[1]
    assert "can't be reached" in typed("feedme", "-h", "127.0.0.1:1", code=1)[1]
    assert b"NAMED" in typed("ldmping", "127.0.0.1:1", code=1)[0]
    with ldm_peer({NOTIFYME: "feed-denied"}) as peer:
        assert "ask its administrator" in typed("notifyme", "-h", peer.address, code=1)[1]
