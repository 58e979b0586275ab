"""Capabilities of this machine for system tests, each determined by one trial.

`python -m kit.capabilities` prints the table. A test calls `needs("netns", "nft-numgen")`: where something is missing
it is skipped with the reason, or fails when DOWNBURST_SKIP=never is set (a machine that is meant to run everything).
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest


def needs(*capabilities: str) -> None:
    """Skip the running test, with the reason, unless the machine has all of the named capabilities."""
    found = reasons()
    missing = [f"{name}: {found[name]}" for name in capabilities if found[name]]
    if missing:
        skip("; ".join(missing))


def skip(reason: str) -> NoReturn:
    """Skip the running test, or fail it where DOWNBURST_SKIP=never forbids skipping."""
    if os.environ.get("DOWNBURST_SKIP") == "never":
        pytest.fail(f"would be skipped, which DOWNBURST_SKIP=never forbids: {reason}")
    pytest.skip(reason)


def needs_punctual_sender(knee_reason: str | None) -> None:
    """Skip the running test where the sweep for a knee says that its sender was late: nothing can be judged by it."""
    if knee_reason and "the sender reached" in knee_reason:
        skip(f"{knee_reason}: machine too busy to judge")


@functools.cache
def reasons() -> dict[str, str]:
    """Map every capability to the reason why it is missing, or to an empty string."""
    found = {"root": "" if os.geteuid() == 0 else "not root; run as root or with sudo"}
    found |= {"tun": _tun_reason(), "chromium": _chromium_reason()}
    with _probe_namespace() as (namespace, reason):
        found["netns"] = found["root"] or reason
        for name, probe in _PROBES.items():
            found[name] = found["netns"] or probe(namespace)
    return found


@contextmanager
def _probe_namespace() -> Iterator[tuple[str, str]]:
    namespace = f"db{os.getpid()}xprobe"
    reason = _reason("ip", "netns", "add", namespace)
    try:
        yield namespace, reason
    finally:
        if not reason:
            _reason("ip", "netns", "del", namespace)


def _veth_reason(namespace: str) -> str:
    return _reason("ip", "-n", namespace, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")


def _bridge_reason(namespace: str) -> str:
    return _reason("ip", "-n", namespace, "link", "add", "br0", "type", "bridge")


def _htb_reason(namespace: str) -> str:
    on_loopback = ("dev", "lo", "root", "handle", "1:", "htb", "default", "10")
    return _reason("tc", "-n", namespace, "qdisc", "add", *on_loopback)


def _vxlan_reason(namespace: str) -> str:
    tunnel = ("type", "vxlan", "id", "1", "local", "127.0.0.1", "dstport", "4789", "dev", "lo")
    return _reason("ip", "-n", namespace, "link", "add", "vxlan0", *tunnel)


def _vlan_reason(namespace: str) -> str:
    tag = ("link", "lo", "name", "vlan0", "type", "vlan", "id", "100")
    reason = _reason("ip", "-n", namespace, "link", "add", *tag)
    return reason and f"this kernel has no VLANs (8021q), so circuits have VNIs alone; {reason}"


def _limit_reason(namespace: str) -> str:
    hook = "type filter hook egress device lo priority 0"
    rules = f"table netdev probe {{ chain out {{ {hook}; limit rate 1 kbytes/second ip dscp set 1; }}; }}"
    return _reason("ip", "netns", "exec", namespace, "nft", "-f", "-", given=rules)


def _numgen_reason(namespace: str) -> str:
    rules = "table inet probe { chain input { type filter hook input priority 0; numgen random mod 100 < 5 drop; }; }"
    return _reason("ip", "netns", "exec", namespace, "nft", "-f", "-", given=rules)


def _tun_reason() -> str:
    try:
        with Path("/dev/net/tun").open("rb", buffering=0):
            return ""
    except OSError as error:
        return f"/dev/net/tun can't be opened ({error.strerror})"


def _chromium_reason() -> str:
    return "" if Path("/usr/bin/chromium").exists() else "no /usr/bin/chromium; apt-get install chromium"


def _reason(*argv: str, given: str | None = None) -> str:
    try:
        done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=10, check=False)
    except FileNotFoundError:
        package = _PACKAGES.get(argv[0], argv[0])
        return f"{argv[0]} is not installed; apt-get install {package}"
    except subprocess.TimeoutExpired:
        return f"'{' '.join(argv)}' did not answer in 10 s"
    if done.returncode == 0:
        return ""
    return f"'{' '.join(argv)}' failed: {next(iter(done.stderr.splitlines()), done.returncode)}"


_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
_PROBES: dict[str, Callable[[str], str]] = {
    "veth": _veth_reason,
    "bridge": _bridge_reason,
    "htb": _htb_reason,
    "vxlan": _vxlan_reason,
    "8021q": _vlan_reason,
    "nft-numgen": _numgen_reason,
    "nft-egress": _limit_reason,
}

if __name__ == "__main__":
    for capability, why in reasons().items():
        sys.stdout.write(f"{capability:12} {why or 'yes'}\n")
