"""Unit tests use no network; pairs of local sockets remain, because the event loop needs them."""

import pytest
from pytest_socket import disable_socket


@pytest.fixture(autouse=True)
def _no_network() -> None:
    disable_socket(allow_unix_socket=True)
