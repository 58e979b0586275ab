"""A site processes its products by its rules, with files and programs, also over crashes."""

import hashlib
import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.node import HubNode, Line, SiteNode, node_binary
from kit.patience import wait_for

pytestmark = [pytest.mark.system]

RULES = """\
# feed	pattern	action
IDS	^SAUS ([0-9]+)$	FILE	filed.txt
IDS	^SAUS ([0-9]+)$	PIPE	sh -c "cat >> piped.txt"
IDS	^SAUS ([0-9]+)$	EXEC	-wait sh -c "echo \\1 >> started.txt"
IDS	^bad	EXEC	-wait sh -c "test -e mended || { echo no station table; exit 3; }"
ANY	^_ELSE_$	FILE	-overwrite -close	rest/\\0
"""
METADATA = struct.Struct("=I16sIQiII")
"""Length, signature, size, seconds, microseconds, feed type, number; then the identifier and the origin."""
IDS = 8
KILLS = 3
PLACES = ("filed.txt", "piped.txt", "started.txt")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubNode]:
    hub = HubNode(tmp_path / "hub").start()
    hub.feed("IDS")
    yield hub
    hub.stop()


@pytest.fixture
def site(hub: HubNode, tmp_path: Path) -> Iterator[SiteNode]:
    rules = tmp_path / "pqact.conf"
    rules.write_text(RULES)
    arguments = ("--actions", str(rules), "--action-attempts", "1")
    site = SiteNode(tmp_path / "site", hub.address, arguments=arguments)
    hub.site("one", {"feed": "IDS", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    hub.wait_connected("one")
    yield site
    site.stop()


def test_products_go_to_files_and_programs_and_what_fails_waits_for_a_person(
    hub: HubNode, site: SiteNode, tmp_path: Path
) -> None:
    for number in range(20):
        hub.put("IDS", f"SAUS {number}", b"%d\n" % number)
    hub.put("IDS", "other", b"rest")
    wanted = [str(number) for number in range(20)]
    for place in PLACES:
        wait_for_lines(site, place, wanted)
        assert lines(site, place) == wanted
    wait_for("the rest", (site.directory / "data/rest/other").is_file)

    hub.put("IDS", "bad product", b"content")
    failed = wait_for("a word of the failed action", lambda: failed_action(hub))
    assert failed["product"] == "bad product"
    assert failed["exit"] == 3
    assert failed["rule"].endswith("pqact.conf:5")
    assert "no station table" in failed["last_error"]
    listed = tool(site, "failed", "--json", code=1)["failed"]
    assert [(one["product"]["id"], one["exit"]) for one in listed] == [("bad product", 3)]
    (site.directory / "data/mended").touch()
    tool(site, "retry", code=0)
    assert tool(site, "failed", "--json", code=0) == {"failed": []}
    wait_for("the end of that word", lambda: failed_action(hub) is None)

    shown = tool(site, "run", "--dry-run", "--last", "1d", "--json", str(tmp_path / "pqact.conf"), code=0)
    assert shown["products"] == 22
    assert [rule["products"] for rule in shown["rules"]] == [20, 20, 20, 1, 1]
    assert shown["rules"][4]["examples"] == [{"id": "other", "does": "rest/other"}]


def test_rules_are_read_again_and_wrong_ones_leave_those_before_in_force(
    hub: HubNode, site: SiteNode, tmp_path: Path
) -> None:
    rules = tmp_path / "pqact.conf"
    rules.write_text("IDS\t(\tFILE\tx\n")
    site.process.send_signal(signal.SIGHUP)
    wait_for("a word of what is wrong", lambda: "stay in force" in site.log())
    assert f"{rules}:1: " in site.log()
    hub.put("IDS", "SAUS 1", b"1\n")
    wait_for("the product in its file", lambda: lines(site, "filed.txt") == ["1"])
    rules.write_text('IDS\t^new.*\tEXEC\tsh -c "echo & >> new.txt"\n')
    site.process.send_signal(signal.SIGHUP)
    wait_for("the other rules", lambda: "read again" in site.log())
    hub.put("IDS", "new one", b"")
    wait_for("what they want", lambda: lines(site, "new.txt") == ["new one"])


def test_finding_21_a_receiver_starts_beside_a_rule_that_it_does_not_understand(hub: HubNode, tmp_path: Path) -> None:
    rules = tmp_path / "odd.conf"
    rules.write_text(
        "IDS\t^(KW|KWBC)\tFILE\t-shut -close -removewmo \\1.txt\nIDS\t^bad\tFIEL\tx\nANY\t^_ELSE_$\tFILE\trest.txt\n"
    )
    site = SiteNode(tmp_path / "odd", hub.address, arguments=("--actions", str(rules)))
    hub.site("one", {"feed": "IDS", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    try:
        hub.wait_connected("one")
        hub.put("IDS", "bad", b"none\n")
        hub.put("IDS", "KWBC 1", b"****0000000042****\nSAUS70 KWBC 291200\r\r\nMETAR KDEN\n")
        hub.put("IDS", "other", b"rest\n")
        wait_for("the product of the rest", lambda: lines(site, "rest.txt") == ["rest"])
        assert lines(site, "KWBC.txt") == ["METAR KDEN"], "by the longest alternative, without what stood before"
        assert f"{rules}:2: " in site.log()
        assert "(the rule is set aside, the others work)" in site.log()
        assert f"{rules}:1: FILE has no option -shut, so it is ignored" in site.log()
    finally:
        site.stop()


def test_no_product_is_left_out_over_crashes(hub: HubNode, site: SiteNode) -> None:
    products = 40 * KILLS
    for number in range(products):
        hub.put("IDS", f"SAUS {number}", b"%d\n" % number)
        if number % 40 == 25:
            wait_for_lines(site, "started.txt", [str(done) for done in range(number // 2)])
            site.kill()
            site.start()
    wanted = [str(number) for number in range(products)]
    for place in PLACES:
        wait_for_lines(site, place, wanted)
        assert len(lines(site, place)) <= products + KILLS, f"{place}: only what was at work is done again"
    for place in ("filed.txt", "started.txt"):
        assert list(dict.fromkeys(lines(site, place))) == wanted, "in their order"


def test_metadata_goes_before_the_data_as_decoders_read_it(hub: HubNode, site: SiteNode, tmp_path: Path) -> None:
    rules = (
        'IDS\t^meta\tFILE\t-overwrite -metadata filed.bin\nIDS\t^meta\tPIPE\t-close -metadata sh -c "cat > piped"\n'
    )
    (tmp_path / "pqact.conf").write_text(rules)
    site.process.send_signal(signal.SIGHUP)
    wait_for("the rules", lambda: "read again" in site.log())
    sequence = hub.put("IDS", "meta", b"data\n")["sequence"]
    for place in ("filed.bin", "piped"):
        written = whole(site.directory / "data" / place, b"data\n")
        length, signature, size, seconds, micros, feed_type, number = METADATA.unpack_from(written)
        assert (signature, size) == (hashlib.md5(b"data\n", usedforsecurity=False).digest(), 5)
        assert abs(time.time() - (seconds + micros / 1e6)) < 3600
        assert (feed_type, number) == (IDS, sequence)
        texts, rest = [], written[METADATA.size :]
        for _ in range(2):
            (size,) = struct.unpack_from("=I", rest)
            texts.append(rest[4 : 4 + size].decode())
            rest = rest[4 + size :]
        assert texts[0] == "meta"
        assert (length, rest) == (len(written) - 5, b"data\n")


def whole(path: Path, end: bytes) -> bytes:
    """Waits until a file has this end; returns its content."""
    wait_for(f"the end of {path.name}", lambda: path.exists() and path.read_bytes().endswith(end))
    return path.read_bytes()


def test_a_receiver_removes_old_files_and_no_others(hub: HubNode, tmp_path: Path) -> None:
    site = SiteNode(tmp_path / "tidy", hub.address)
    data = site.directory / "data"
    (data / "radar").mkdir(parents=True)
    for name, age_days in (("radar/old.nids", 3), ("radar/new.nids", 0), ("radar/old.txt", 3), ("old.nids", 3)):
        (data / name).write_bytes(b"x")
        os.utime(data / name, (time.time() - age_days * 86_400,) * 2)
    rules = tmp_path / "scour.conf"
    rules.write_text("radar\t2\t*.nids\n")
    site.arguments = ("--scour", str(rules), "--scour-every", "1s")
    hub.site("tidy", {"feed": "IDS", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    try:
        wait_for("the old file to go", lambda: not (data / "radar/old.nids").exists())
        os.utime(data / "radar/new.nids", (time.time() - 3 * 86_400,) * 2)
        wait_for("what grew old to go", lambda: not (data / "radar/new.nids").exists())
        assert (data / "radar/old.txt").exists()
        assert (data / "old.nids").exists()
        hub.put("IDS", "still received", b"x")
        site.wait_received(1)
    finally:
        site.stop()


@pytest.mark.long(31)
def test_a_rule_that_does_not_keep_up_is_told_until_it_does(hub: HubNode, tmp_path: Path) -> None:
    rules = tmp_path / "slow.conf"
    rules.write_text('IDS\t.\tEXEC\t-wait sh -c "until test -e go; do sleep 0.1; done"\n')
    site = SiteNode(tmp_path / "slow", hub.address, arguments=("--actions", str(rules), "--action-lag", "1s"))
    hub.site("one", {"feed": "IDS", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    try:
        hub.wait_connected("one")
        for number in range(3):
            hub.put("IDS", f"SAUS {number}", b"x")
        told = wait_for("a word of the rule", lambda: failed_action(hub), seconds=60)
        assert told["rule"].startswith("exec sh -c until test -e go")
        assert "up to 3 products wait" in told["last_error"]
        assert (told["product"], told["exit"]) == ("SAUS 0", None)
        assert "up to 3 products wait" in site.log()
        (site.directory / "data/go").touch()
        wait_for("the end of that word", lambda: failed_action(hub) is None, seconds=60)
    finally:
        site.stop()


def wait_for_lines(site: SiteNode, place: str, wanted: list[str]) -> None:
    """Waits until a file has all these lines."""
    wait_for(f"all products in {place}", lambda: set(wanted) <= set(lines(site, place)), seconds=60)


def lines(site: SiteNode, place: str) -> list[str]:
    path = site.directory / "data" / place
    return path.read_text().splitlines() if path.exists() else []


def failed_action(hub: HubNode) -> Line | None:
    """The latest failure of the site's actions that the hub's node reported."""
    said = [
        feed.get("action_failed")
        for event in hub.events_named("traffic")
        for session in event["sessions"]
        for feed in session["feeds"]
        if session["site"] == "one"
    ]
    return said[-1] if said else None


def tool(site: SiteNode, *arguments: str, code: int) -> Any:
    """Runs ``downburst-node actions``; returns its JSON, if it prints some."""
    command = [node_binary(), "actions", arguments[0], "--dir", str(site.directory), *arguments[1:]]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return json.loads(ran.stdout) if "--json" in arguments else None
