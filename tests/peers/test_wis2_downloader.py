"""wis2downloader takes the announcements of a hub, pywcmp the record of its dataset; metrics have WMO's names.

docs/measuring-systems.md has the layout of the programs.
"""

import csv
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from integration.conftest import Starter, until
from integration.test_wis2_out import RIGHTS, content, hub_that_publishes, put
from kit.peers.found import prepared
from kit.peers.pywis import digests
from kit.ports import free_port
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.played import PUBLISHER
from unit.api.test_bridge_metrics import HIERARCHY

pytestmark = pytest.mark.peers


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto(passwords={"node": "secret", "everyone": "everyone"}, rights=RIGHTS) as started:
        yield started


@contextmanager
def downloader(directory: Path, broker: Mosquitto) -> Iterator[Path]:
    """wis2downloader, subscribed to everything that nodes announce; the directory into which it stores."""
    (gunicorn,) = prepared("wis2downloader/bin/gunicorn")
    stored, port = directory / "stored", free_port()
    stored.mkdir(parents=True)
    url = f"http://127.0.0.1:{port}"
    settings = {
        "base_url": url, "broker_hostname": "127.0.0.1", "broker_port": broker.port, "broker_username": "everyone",
        "broker_password": "everyone", "broker_protocol": "tcp", "download_workers": 2, "download_dir": str(stored),
        "min_free_space": 0, "validate_topics": False, "log_level": "DEBUG", "save_logs": False,
        "log_path": str(directory), "mqtt_session_info": str(directory / "session.json"), "flask_host": "127.0.0.1",
        "flask_port": port,
    }  # fmt: skip
    (directory / "config.json").write_text(json.dumps(settings))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["WIS2DOWNLOADER_CONFIG"] = str(directory / "config.json")
    argv = [str(gunicorn), "--bind", f"127.0.0.1:{port}", "wis2downloader.app:app"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment, cwd=directory)
    try:
        until("wis2downloader", lambda: _answers(f"{url}/health"))
        httpx.post(f"{url}/subscriptions", json={"topic": "origin/a/wis2/#"}, timeout=30).raise_for_status()
        yield stored
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=30).is_success
    except httpx.TransportError:
        return False


def test_wis2downloader_stores_everything_that_is_published_with_equal_bytes(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        stored = stack.enter_context(downloader(tmp_path / "downloader", broker))
        hub = hub_that_publishes(Starter(tmp_path, stack), broker)
        contents = [content(number) for number in range(1, 30)]
        for number, product in enumerate(contents, 1):
            put(hub, f"SMVX{number:02} TJSJ 291200", product)
        wanted = sorted(hashlib.sha256(one).hexdigest() for one in contents)
        until("all files", lambda: digests(stored) == wanted)
        published = hub.ask("GET", "/v1/publishers/synop")["products"]
        assert (published["announced"], published["waiting"]) == (29, 0)


def test_pywcmp_passes_the_record_of_the_dataset(broker: Mosquitto, tmp_path: Path) -> None:
    program, home = prepared("pywcmp/bin/pywcmp", "pywcmp-home")
    file = tmp_path / "record.json"
    with ExitStack() as stack:
        hub = hub_that_publishes(Starter(tmp_path, stack), broker)
        hub.ask("PATCH", "/v1/publishers/synop", json={"dataset": PUBLISHER["dataset"]})
        file.write_bytes(until("a record", lambda: _record(f"http://{hub.http}/wis2/synop/record.json")))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HOME": str(home)}
    argv = [str(program), "ets", "validate", str(file)]
    found = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    print(found.stdout, found.stderr)
    report = json.loads(found.stdout[found.stdout.index("{") : found.stdout.rindex("}") + 1])
    summary = report["summary"]
    assert summary["PASSED"] == 12
    assert summary["FAILED"] == 0


def test_metrics_of_downloads_are_those_of_the_hierarchy() -> None:
    (listed,) = prepared("wis2-metric-hierarchy/metrics/gc.csv")
    with listed.open(encoding="utf-8", newline="") as file:
        assert {row["Name"] for row in csv.DictReader(file)} == HIERARCHY


def _record(url: str) -> bytes | None:
    answer = httpx.get(url, timeout=30)
    return answer.content if answer.is_success else None
