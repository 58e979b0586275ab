"""Two domains as their operators run them: hub A orders circuits from hub B by NSI, both on this machine."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kit.nsi.server import Authority
from kit.patience import wait_for
from kit.ports import free_port
from kit.whole_hub import WholeHub

NSA_A, NSA_B = "urn:ogf:network:a.example:2026:nsa:hub", "urn:ogf:network:b.example:2026:nsa:hub"
TOPOLOGY = "urn:ogf:network:b.example:2026:topology"
HOLD_S = 40
"""Longer than a hub needs to start on a busy machine."""
M = 1_000_000


class Domains:
    """Both hubs with ports of 1 Gb/s at a site that is not connected: windows lie ahead, and no path is made."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        authority = Authority(directory, "authority").make()
        self.files = {name: authority.sign(name) for name in ("hub-a", "hub-b")}
        self.port = free_port()
        self.a, self.b = WholeHub(directory / "a"), WholeHub(directory / "b", multicast_network="239.79.0.0/24")
        theirs = self.files["hub-b"]
        self.b.more = (
            f'[circuits.provider]\nlisten = "127.0.0.1:{self.port}"\nnsa = "{NSA_B}"\nhold_s = {HOLD_S}\n'
            f'certificate = "{theirs.certificate}"\nkey = "{theirs.key}"\nauthorities = "{theirs.authorities}"\n'
            'subjects = ["CN=hub-a"]\n'
        )
        for hub in (self.a, self.b):
            stack.callback(hub.stop)
            hub.start()
            self._prepare(hub)
        ours = self.files["hub-a"]
        record = {
            "url": f"https://127.0.0.1:{self.port}/",
            "provider_nsa": NSA_B,
            "requester_nsa": NSA_A,
            "certificate": str(ours.certificate),
            "key": str(ours.key),
            "authorities": str(ours.authorities),
        }
        self.a.ask("PUT", "/v1/circuit-providers/b", json=record)

    def hold(self, mbps: int = 100, *, seconds: int = 300) -> dict[str, Any]:
        """A circuit at A that is held at both, for a window in an hour."""
        return dict(self.a.ask("POST", "/v1/circuits", json=wish(mbps, hold_s=seconds)))

    def commit(self, number: int) -> dict[str, Any]:
        """Its reservation in both."""
        return dict(self.a.ask("POST", f"/v1/circuits/{number}/commit", json={}))

    def states(self, hub: WholeHub) -> list[str]:
        """The states of the unfinished circuits of a hub."""
        return [one["state"] for one in hub.ask("GET", "/v1/circuits?limit=100")]

    def wait_states(self, a: list[str], b: list[str], seconds: float = 120) -> None:
        """Waits until both hubs have circuits in these states alone."""
        wait_for(
            f"{a} at A and {b} at B",
            lambda: (self.states(self.a), self.states(self.b)) == (a, b),
            seconds,
        )

    def kill(self, hub: WholeHub) -> None:
        """Ends a hub by SIGKILL, and starts it again."""
        hub.kill_api()
        hub.start()

    def _prepare(self, hub: WholeHub) -> None:
        hub.ask("POST", "/v1/sites", json={"site": "far.example"})
        for name, site in (("near", None), ("far", "far.example")):
            port = {"port": name, "rate_bps": 1_000 * M, "site": site, "interface": "eth0", "underlay": "192.0.2.1"}
            tags = {"first_vlan": 100, "last_vlan": 199, "stp": f"{TOPOLOGY}:{name}"}
            hub.ask("POST", "/v1/ports", json=port | tags)


def wish(mbps: int, **fields: Any) -> dict[str, Any]:
    """A circuit from B for a window in an hour."""
    rates = {"rate_out_bps": mbps * M, "rate_in_bps": mbps * M}
    window = {"begin": "+1h", "end": "+2h"}
    return {"sites": [{"site": "far.example"}], "driver": "nsi", "provider": "b", **rates, **window, **fields}
