"""Each kind of agent runs once, for all tests of it, in a network namespace in which it reaches nothing else."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kit.capabilities import needs, skip
from kit.namespaces import Lab
from kit.peers.opennsa import opennsa
from kit.peers.peer import Peer
from kit.peers.plane import Plane
from kit.peers.supa import supa

KINDS = {"supa": supa, "opennsa": opennsa}


@pytest.fixture(scope="session", params=KINDS)
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """An agent with nothing reserved."""
    needs("netns", "veth", "bridge", "vxlan")
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if others:
        skip(f"agents listen everywhere, and this namespace has {', '.join(others)}; run make test-peers")
    with (
        Lab(["hub", "core", "unl"], segments=False) as lab,
        KINDS[request.param](tmp_path_factory.mktemp(request.param), Plane(lab)) as running,
    ):
        yield running


@pytest.fixture(autouse=True)
def words_of_the_agent(request: pytest.FixtureRequest) -> Iterator[None]:
    """The agent's logs, for the report of a test that fails."""
    with _logs(request):
        yield


@contextmanager
def _logs(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "peer" in request.fixturenames:
        print(request.getfixturevalue("peer").running.logs())
