"""Files of a wis2box and a wis2downloader become a hub by the commands that `import wis2` prints, as they are."""

import base64
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.wis2.announced import TOPIC, announcement
from kit.wis2.mosquitto import Mosquitto

pytestmark = pytest.mark.all
PASSWORD = "no # word @ all"
DATASET = """\
wis2box: {topic_hierarchy: xx-example/data/core/weather/surface-based-observations/synop, country: xxx}
mcf: {version: 1.0}
metadata: {identifier: 'urn:wmo:md:xx-example:synop'}
identification:
  title: "Synops; $(reboot) of 'Example'"
  abstract: Surface observations.
  keywords: {default: {keywords: [synop, surface, land]}}
  extents: {spatial: [{bbox: [-10.5, -20, 30, 40], crs: 4326}], temporal: [{begin: 2021-11-29}]}
contact: {host: {organization: Example Met, url: 'https://example.org', email: met@example.org}}
"""


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto(passwords={"anna": PASSWORD}, rights="user anna\ntopic readwrite #\n") as started:
        yield started


def said(hub: RunningHub, *argv: str) -> str:
    """The output of a command that must succeed."""
    done = hub.command(*argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(broker: Mosquitto) -> list[str]:
    """The files of both programs in the current directory."""
    config = {"broker_hostname": "127.0.0.1", "broker_port": broker.port, "broker_protocol": "tcp"}
    signed = {"broker_username": "anna", "broker_password": PASSWORD, "download_dir": "downloads"}
    files = {
        "config.json": json.dumps(config | signed),
        ".session-info.json": json.dumps({"topics": {"cache/a/wis2/+/data/core/#": "core"}, "client_id": "a"}),
        "wis2box.env": f"WIS2BOX_URL=https://wis2.example\nSECRET='{PASSWORD}'\n"
        f"WIS2BOX_BROKER_PUBLIC=mqtt://anna:${{SECRET}}@127.0.0.1:{broker.port}\n",
        "synop.yml": DATASET,
    }
    for name, text in files.items():
        Path(name).write_text(text)
    return list(files)


def test_the_commands_make_the_sources_and_publishers_of_the_files(
    starter: Starter, broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files, hub = written(broker), starter.hub()
    found = json.loads(said(hub, "import", "wis2", "--json", *files))
    assert hub.ask("GET", "/v1/feeds") == [], "shown, not done"
    assert PASSWORD not in json.dumps(found)
    for one in [*found["bridges"][0]["brokers"], found["publishers"][0]["broker"]]:
        Path(one["password_file"]).write_text(f"{PASSWORD}\n")
    for command in found["commands"]:
        said(hub, *shlex.split(command)[1:])
    until("the subscription", lambda: hub.ask("GET", "/v1/bridges/core")["brokers"][0]["bound"] == 1)
    announce(broker, b"METAR EDDF 291650Z")
    until("the product", lambda: hub.ask("GET", "/v1/bridges/core")["products"]["held"] == 1)
    publisher = hub.ask("GET", "/v1/publishers/synop")
    assert (publisher["enabled"], publisher["centre"]) == (False, "xx-example")
    assert publisher["dataset"] == "Synops; $(reboot) of 'Example'"
    kept = {one["feed"]: one["retention_hours"] for one in hub.ask("GET", "/v1/feeds")}
    assert kept == {"core": 24, "synop": 24}


def announce(broker: Mosquitto, content: bytes) -> None:
    """Publishes a notification that holds its product."""
    message = announcement(1, "https://nowhere.example/1", content)
    value = base64.b64encode(content).decode()
    message["properties"]["content"] = {"encoding": "base64", "value": value, "size": len(content)}
    argv = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(broker.port), "-u", "anna", "-P", PASSWORD, "-q", "1"]
    subprocess.run([*argv, "-t", TOPIC, "-l"], input=json.dumps(message), text=True, check=True, timeout=60)
