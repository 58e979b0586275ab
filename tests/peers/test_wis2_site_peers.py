"""What a site announces by its rules, judged and stored by pywis-pubsub; docs/measuring-systems.md has the layout."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from integration.test_wis2_out import RIGHTS
from integration.test_wis2_sites import Scene
from kit.patience import wait_for
from kit.peers.found import prepared
from kit.peers.pywis import Pywis, digests
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.subscriber import Heard

pytestmark = pytest.mark.peers


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of a web server with the files of a directory."""
    directory.mkdir(exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=30)


@pytest.fixture
def pywis() -> Pywis:
    program, home = prepared("pywis-pubsub/venv/bin/pywis-pubsub", "pywis-pubsub/home")
    return Pywis(program, home)


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto(passwords={"node": "secret", "everyone": "everyone"}, rights=RIGHTS) as started:
        yield started


@pytest.fixture
def heard(broker: Mosquitto) -> Iterator[Heard]:
    with Heard(broker) as subscriber:
        yield subscriber


def test_its_suite_passes_what_a_site_announces_and_its_subscriber_stores_it(
    broker: Mosquitto, heard: Heard, pywis: Pywis, tmp_path: Path
) -> None:
    stored, settings, log = tmp_path / "stored", tmp_path / "pywis.yml", tmp_path / "pywis.log"
    settings.write_text(
        f"broker: mqtt://everyone:everyone@127.0.0.1:{broker.port}\nqos: 1\n"
        "subscribe_topics:\n  - origin/a/wis2/#\nverify_data: true\nvalidate_message: true\n"
        f"storage:\n  type: fs\n  options:\n    basedir: {stored}\n"
    )
    with served(tmp_path / "served") as url, pywis.subscribed(settings, log):
        wait_for("its subscription", lambda: b"ubscri" in log.read_bytes())
        scene = Scene(tmp_path, broker, base_url=url)
        contents = scene.put(range(1, 30))
        messages = heard.next(29)
        wanted = sorted(hashlib.sha256(one).hexdigest() for one in contents)
        wait_for("all files", lambda: digests(stored) == wanted)
        scene.stop()
    for number, message in enumerate(messages):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(message))
        assert pywis.judge(file) == {"PASSED": 7, "FAILED": 0, "SKIPPED": 0}
