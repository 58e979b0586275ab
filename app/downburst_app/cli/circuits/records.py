"""Records that a hub keeps under the operator's names, and that are put whole: offers and providers of circuits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from downburst.foundation.errors import BadInput
from downburst_app.cli.client import HubClient, confirm, show

if TYPE_CHECKING:
    from downburst_contract.base import Shape


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of records, for example `offer` at `circuit-offers`."""

    word: str
    path: str
    wanted: "Callable[[], type[Shape]]"
    """Loads the shape of a record that is put."""
    needed: Mapping[str, str]
    """Options that a new record needs, with the members that they set."""

    def listed(self, client: HubClient) -> list[dict[str, Any]]:
        """All records, as the hub shows them."""
        found: list[dict[str, Any]] = client.ask("GET", "v1", self.path)[f"{self.word}s"]
        return found

    def put(self, client: HubClient, name: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a record, or changes these members of one; refuses a new one that lacks needed members."""
        from downburst_contract.base import names

        present = next((one for one in self.listed(client) if one[self.word] == name), None)
        body = {} if present is None else {member: present[member] for member in names(self.wanted())}
        body |= members
        lacking = [option for option, member in self.needed.items() if member not in body]
        if lacking:
            raise BadInput(f"there is no {self.word} {name!r} yet, and a new one needs {', '.join(lacking)}")
        made: dict[str, Any] = client.ask("PUT", "v1", self.path, name, json=body)
        return made

    def remove(self, client: HubClient, name: str, effect: str, *, yes: bool, as_json: bool) -> None:
        """Removes a record after a confirmation, which states the effect."""
        confirm(f"Remove {self.word} {name}? {effect}", yes=yes)
        client.ask("DELETE", "v1", self.path, name)
        show({"removed": name}) if as_json else print(f"{self.word} {name} removed")
