"""Unit tests touch no network; pairs of local sockets stay, the event loop is made of them."""

import pytest
from pytest_socket import disable_socket


@pytest.fixture(autouse=True)
def _no_network() -> None:
    disable_socket(allow_unix_socket=True)
