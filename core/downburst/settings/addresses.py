"""Addresses in settings."""


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{text!r} is not HOST:PORT; write for example 127.0.0.1:7371")
    return host.strip("[]"), int(port)


DEFAULT_HUB = "http://127.0.0.1:7371"
"""The hub that the command line contacts unless another one is named."""

HUB_VARIABLE = "DOWNBURST_HUB"
"""The environment variable that names it."""
