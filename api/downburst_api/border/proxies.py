"""A request's sender: the connection's peer, unless that is a proxy that the operator named."""

import logging
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class Forwarded:
    """Trusts `X-Forwarded-For` and `X-Forwarded-Proto` of named proxies; the first from elsewhere is logged."""

    def __init__(self, app: ASGIApp, proxies: Sequence[IPv4Network | IPv6Network]) -> None:
        self._app = app
        self._proxies = proxies
        self._believing = ProxyHeadersMiddleware(app, [str(one) for one in proxies])  # type: ignore[arg-type]
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards a request, with its sender as `client`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif is_proxy(self._proxies, (scope.get("client") or ("",))[0]):
            await self._believing(scope, receive, send)  # type: ignore[arg-type]
        else:
            self._warn(scope)
            await self._app(scope, receive, send)

    def _warn(self, scope: Scope) -> None:
        if not self._warned and "x-forwarded-for" in Headers(scope=scope):
            self._warned = True
            _LOG.warning(
                "%s sends X-Forwarded-For, which is ignored; if it is your proxy, name it in the setting "
                "access.proxies: until then all its clients count as one address",
                (scope.get("client") or ("a request",))[0],
            )


def is_proxy(proxies: Sequence[IPv4Network | IPv6Network], address: str) -> bool:
    """True if an address belongs to a named proxy."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in proxies)


_LOG = logging.getLogger("downburst.api")
