"""Service termination points: the URN of a network's port, with the VLANs that are asked for or granted there."""

import re
from dataclasses import dataclass, replace

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Stp:
    """One end of a circuit in the provider's words."""

    urn: str
    """Without its VLANs."""
    first_vlan: int | None = None
    """None: untagged."""
    last_vlan: int | None = None

    def __str__(self) -> str:
        if self.first_vlan is None:
            return self.urn
        if self.first_vlan == self.last_vlan:
            return f"{self.urn}?vlan={self.first_vlan}"
        return f"{self.urn}?vlan={self.first_vlan}-{self.last_vlan}"

    def grants(self, asked: "Stp") -> bool:
        """True if this end is the asked one with exactly one of its VLANs, or untagged like it."""
        if self.urn != asked.urn:
            return False
        if asked.first_vlan is None or asked.last_vlan is None:
            return self.first_vlan is None
        if self.first_vlan is None or self.first_vlan != self.last_vlan:
            return False
        return asked.first_vlan <= self.first_vlan <= asked.last_vlan

    def with_vlans(self, first: int | None, last: int | None) -> "Stp":
        """The same port with other VLANs; raises one sentence if they are impossible."""
        if (first is None) != (last is None):
            raise BadInput(f"STP {self.urn} has half a range of VLANs; give the first and the last")
        if first is not None and last is not None and not VLAN_LEAST <= first <= last <= VLAN_MOST:
            raise BadInput(
                f"STP {self.urn} has the VLANs {first}-{last}; give a range within {VLAN_LEAST}-{VLAN_MOST}"
            )
        return replace(self, first_vlan=first, last_vlan=last)


def stp(text: str) -> Stp:
    """Reads `urn:ogf:network:...:port?vlan=1779-1799`; raises one sentence if it is something else."""
    if len(text) > STP_CHARS_MAX or (found := _STP.fullmatch(text)) is None:
        raise BadInput(f"{text[:80]!r} is not an STP; give urn:ogf:network:DOMAIN:YEAR:TOPOLOGY:PORT?vlan=FIRST-LAST")
    first, last = found["first"], found["last"]
    end = Stp(found["urn"])
    return end if first is None else end.with_vlans(int(first), int(last or first))


VLAN_LEAST, VLAN_MOST = 1, 4_094
STP_CHARS_MAX = 400
_STP = re.compile(r"(?P<urn>urn:ogf:network:[!-<>@-~]+)(?:\?vlan=(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?)?")
