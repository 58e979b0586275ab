"""The network behind SuPA. SuPA loads this module by its name and makes a `Backend`."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import core_path
from core_path import Access
from supa.nrm.backend import STP, BaseBackend


class Backend(BaseBackend):
    """Acts in the core from activation to deactivation. `reserve` must return nothing, so it is not here."""

    def activate(self, bandwidth: int, circuit_id: str, **granted: Any) -> str:
        core_path.bring_up(*_accesses(granted), bandwidth)
        return circuit_id or f"path-{uuid4()}"

    def deactivate(self, **granted: Any) -> None:
        core_path.take_down(*_accesses(granted))

    def modify(self, bandwidth: int, **granted: Any) -> None:
        core_path.set_rate(*_accesses(granted), bandwidth)

    def health_check(self, **granted: Any) -> bool:
        return core_path.is_up(*_accesses(granted))

    def topology(self) -> list[STP]:
        ports = json.loads(Path(os.environ["PEER_PORTS"]).read_text())
        return [
            STP(stp_id=port["name"], port_id=port["name"], vlans=port["vlans"], bandwidth=port["rate_mbps"])
            for port in ports
        ]


def _accesses(granted: Mapping[str, Any]) -> tuple[Access, Access]:
    return Access(granted["src_port_id"], granted["src_vlan"]), Access(granted["dst_port_id"], granted["dst_vlan"])
