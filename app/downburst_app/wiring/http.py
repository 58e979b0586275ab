"""HTTP servers of a hub's processes: the hub serves its api, others a few pages."""

import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import uvicorn

from downburst.foundation.errors import PortInUse
from downburst.host import local_token
from downburst.settings.addresses import split_address
from downburst.settings.hub import Settings
from downburst.supervision import keep, start
from downburst_api.border.connections import Connections


class Server(uvicorn.Server):
    """Serves HTTP until `should_exit`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the hub, which has more to stop than this server."""
        yield


class Front:
    """The address of a hub's page and api, and the token by which users of this machine call it."""

    def __init__(self, settings: Settings, closing: AsyncExitStack) -> None:
        self._settings = settings
        self._closing = closing
        self._socket = listening_socket(settings.http)
        closing.callback(self._socket.close)
        self.address = address_of(self._socket)

    def leave_token(self) -> str:
        """Makes the token and leaves it for users of this machine until the hub closes."""
        port = split_address(self.address)[1]
        self._closing.callback(local_token.take_back, port=port)
        return local_token.leave(self._settings.data_dir, port=port)

    def open(self, app: Any) -> None:
        """Sets the application to be served."""
        self._server = Server(http_config(app, self._settings, timeout_keep_alive=KEEP_ALIVE_S))

    async def serve(self) -> None:
        """Serves until the end."""
        await self._server.serve(sockets=[self._socket])

    def end(self) -> None:
        """Lets open requests be answered, and accepts no others."""
        self._server.should_exit = True


class Pages:
    """A few pages of a process without an api."""

    def __init__(self, app: Any, listening: socket.socket, settings: Settings) -> None:
        self._listening = listening
        self._config = http_config(app, settings, interface="asgi3")
        self._server = Server(self._config)
        self._is_ending = False
        self._serving = start("pages.http", keep("pages.http", self._serve))

    async def end(self) -> None:
        """Answers the open requests, then ends."""
        self._is_ending = self._server.should_exit = True
        await self._serving

    async def _serve(self) -> None:
        """Serves until the end; a failed server is replaced by another at the same address."""
        self._server = Server(self._config)
        self._server.should_exit = self._is_ending
        # A server closes the socket that it listened on.
        await self._server.serve(sockets=[self._listening.dup()])


def listening_socket(address: str) -> socket.socket:
    """A socket that listens at HOST:PORT; one sentence if that fails."""
    host, port = split_address(address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(BACKLOG)
    except OSError as error:
        raise PortInUse(
            f"the hub can't listen on {address} ({error.strerror}); "
            "stop what listens there, or choose another address with --http"
        ) from error
    listening.setblocking(False)  # noqa: FBT003
    return listening


def http_config(app: Any, settings: Settings, **more: Any) -> uvicorn.Config:
    """The configuration of HTTP: bounded connections, and no trust in a request's own claims about its sender."""
    return uvicorn.Config(
        app,
        http=Connections(settings.limits, settings.access.proxies),  # type: ignore[arg-type]
        ws="none",
        # The application trusts the proxies named in the settings; uvicorn would trust this machine.
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=STOP_S,
        **more,
    )


def address_of(listening: socket.socket) -> str:
    """HOST:PORT, with the assigned port."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


BACKLOG = 1024
KEEP_ALIVE_S = 75
STOP_S = 5
