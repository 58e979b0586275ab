"""Recommended data from origins that ask for a login: by the real node, and never to another server."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from integration.conftest import Starter, until
from integration.test_wis2_hub import Scene
from kit.wis2.files import FileServer
from kit.wis2.mosquitto import Mosquitto

BASIC = f"Basic {base64.b64encode(b'me:sesame').decode()}"


@pytest.fixture
def servers() -> Iterator[tuple[FileServer, FileServer]]:
    with FileServer() as one, FileServer() as two:
        yield one, two


def test_logins_go_to_their_own_server_and_to_no_other(
    starter: Starter, servers: tuple[FileServer, FileServer]
) -> None:
    guarded, other = servers
    with ExitStack() as stack:
        brokers = stack.enter_context(Mosquitto()), stack.enter_context(Mosquitto())
        scene = Scene(starter, brokers, guarded)
        host = guarded.url.removeprefix("http://")
        scene.bridge(logins=[{"host": host, "user": "me", "password": "sesame"}])
        first, moved, wrong = (scene.serve(number, b"%d" % number * 999) for number in range(3))
        guarded.wants = {"/0": BASIC, "/1": BASIC, "/2": "Bearer abc"}
        guarded.failures["/0"] = ["/0"]
        guarded.failures["/1"] = [f"{other.url}/1"]
        other.files["/1"] = guarded.files["/1"]
        scene.announce(first, moved, wrong)
        until("their ends", lambda: scene.counts() == (0, 2, 1))
        (failed,) = scene.hub.ask("GET", "/v1/bridges/dwd/failed")
        assert failed["reason"].startswith("the server answers with status 401")
        assert set(guarded.authorizations) == {BASIC}
        assert (other.asked["/1"], other.authorizations) == (1, [])
        scene.hub.ask("PATCH", "/v1/bridges/dwd", json={"logins": [{"host": host, "token": "abc"}]})
        assert scene.hub.ask("POST", "/v1/bridges/dwd/failed/retry")["products"] == 1
        until("the last one", lambda: scene.counts() == (0, 3, 0))
        assert guarded.authorizations[-1] == "Bearer abc"
