"""`downburst doctor` and `watch` on a real machine, beside a running hub."""

import json

from integration.conftest import Starter


def test_the_machine_is_looked_at_and_products_are_watched(starter: Starter) -> None:
    hub = starter.hub()
    directory = str(hub.directory)
    told = hub.command("doctor", "--data-dir", directory, "--json")
    findings = json.loads(told.stdout)
    assert {one["about"] for one in findings} == {
        *("system", "clock", "multicast", "buffers", "privileges", "disk", "ports", "versions")
    }
    bad = [one for one in findings if one["state"] == "bad"]
    assert told.returncode == (1 if bad else 0), told.stdout
    assert [one["sentence"] for one in findings if one["about"] == "versions" and one["state"] == "bad"] == []
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    hub.ask("PUT", "/v1/feeds/NGRID/products/YAAA85 KWBH", 201, content=b"some bytes")
    seen = hub.command("watch", "--data-dir", directory, "-f", "NGRID", "-p", "^YAAA", "-n", "5", "-c", "1")
    assert seen.returncode == 0, seen.stderr
    time, who, level, size, _, feed, number, *product = seen.stdout.split()
    assert (who, level, size, feed, number, product) == (
        "watch",
        "INFO",
        "10",
        "NGRID",
        "000000001",
        ["YAAA85", "KWBH"],
    )
    assert time.endswith("Z")
