"""The hosts that a host pattern names."""

import re


def named_hosts(pattern: str) -> list[str] | None:
    """The hosts that a pattern lists; None if it matches others too, or if this can't be determined."""
    if not (pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$")):
        return None
    inner = pattern[1:-1]
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    names = [_literal(part) for part in inner.split("|")]
    return None if None in names or re.search(r"[()]", inner) else [name for name in names if name is not None]


def host_matches(pattern: str, host: str) -> bool:
    """True if the pattern matches the host. A pattern that Python can't compile matches nothing."""
    try:
        return re.search(pattern, host) is not None
    except re.error:
        return False


def is_loopback(pattern: str) -> bool:
    """True for the line that admits LDM's own programs."""
    return any(host_matches(pattern, host) for host in ("localhost", "127.0.0.1")) and not host_matches(
        pattern, "host.example.org"
    )


def _literal(part: str) -> str | None:
    found = re.fullmatch(r"(?:[A-Za-z0-9_-]|\\\.|\[\.\]|\.)+", part)
    return re.sub(r"\\\.|\[\.\]", ".", part).lower() if found else None
