"""A real control plane for the tests of this folder."""

from collections.abc import Iterator
from itertools import count

import pytest

from kit.control_plane import ControlPlane, control_plane


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as started:
        yield started


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    """A namespace of the test's own that refuses pods beyond the standard `restricted`."""
    name = f"wx-{next(NUMBERS)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.ask("/api/v1/namespaces", method="POST", body={"metadata": {"name": name, "labels": labels}})
    plane.wait_for_account(name)
    return name


NUMBERS = count(1)
