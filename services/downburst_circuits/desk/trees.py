"""Links of multipoint circuits: a path from the hub's port to each leaf, and links that paths share.

A circuit keeps its paths one after the other, in the order of its leaves. A link is reserved once for each path along
it if the hub makes the copies, and once in all if the underlay replicates; what the leaves send back adds up. No tags
are taken there: the tunnel to several ends has one identifier of its own.
"""

from collections import Counter
from collections.abc import Iterator

from downburst.domain.circuits import Circuit, CircuitDriver, CircuitHop, CircuitShape, Replication
from downburst.domain.topology.places import link_key
from downburst.foundation.errors import BadInput
from downburst_circuits.calendar import Claim, NoRoom, Reservation
from downburst_circuits.desk.booking import Desk
from downburst_circuits.desk.network import Hop, Network
from downburst_circuits.desk.paths import INFINITE_BPS, Path, Wish, paths

Uses = Counter[tuple[str, bool]]
"""The number of paths along a link, by its name and direction."""


def has_tree(circuit: Circuit, network: Network) -> bool:
    """True for a multipoint circuit with leaves that the topology reaches."""
    near, *leaves = circuit.ends
    is_chosen_here = circuit.shape is CircuitShape.MULTIPOINT and circuit.carriage.driver is not CircuitDriver.NSI
    return is_chosen_here and network.has(near.port) and any(network.has(leaf.port) for leaf in leaves)


def link_claims(circuit: Circuit) -> Iterator[Claim]:
    """The claims of any circuit on the links of its path or paths."""
    uses = uses_of(circuit)
    for link, tag in {hop.link: hop.tag for hop in circuit.path}.items():
        yield Claim(link_key(link), *_rates(circuit, uses, link), tag, tag, tag)


def uses_of(circuit: Circuit) -> Uses:
    """The uses of all its links."""
    return Counter((hop.link, hop.forward) for hop in circuit.path)


def ways(circuit: Circuit, network: Network) -> dict[str, tuple[CircuitHop, ...]]:
    """The path to each leaf, by the leaf's port."""
    links = {link.name: link for link in network.topology.links}
    leaves = {end.port for end in circuit.ends[1:]}
    found: dict[str, tuple[CircuitHop, ...]] = {}
    way: tuple[CircuitHop, ...] = ()
    for hop in circuit.path:
        way = (*way, hop)
        link = links.get(hop.link)
        to = None if link is None else (link.z if hop.forward else link.a)
        # Paths lead through no port, so the first one is the end.
        if to in leaves:
            found[str(to)], way = way, ()
    return found


class Growing:
    """The search for the paths of further leaves, beside those that a circuit has in the calendar."""

    def __init__(self, circuit: Circuit, desk: Desk, network: Network, begin_us: int, end_us: int) -> None:
        self._circuit = circuit
        self._desk = desk
        self._network = network
        self._window = begin_us, end_us
        self._held = uses_of(circuit)
        self._uses = uses_of(circuit)

    def path_to(self, port: str) -> tuple[CircuitHop, ...]:
        """The shortest path to a leaf that has room; raises `NoRoom`, or a sentence if none leads there."""
        wish = Wish(self._circuit.ends[0].port, port)
        found = next(paths(self._network, wish, self._room), None)
        if found is None:
            raise self._refusal(wish)
        self._uses.update((hop.link.name, hop.forward) for hop in found)
        return tuple(CircuitHop(hop.link.name, hop.forward) for hop in found)

    def _room(self, hop: Hop) -> int | None:
        """The free rate along a hop, if one more path along it has room both ways."""
        free_bps = self._desk.free(hop, *self._window)
        out_bps, in_bps = self._more(hop)
        along_bps, back_bps = (out_bps, in_bps) if hop.forward else (in_bps, out_bps)
        return free_bps[0] if along_bps <= free_bps[0] and back_bps <= free_bps[1] else None

    def _more(self, hop: Hop) -> tuple[int, int]:
        """The rates on a link with one more path along it, beyond those in the calendar; in its own directions."""
        link = hop.link.name
        after = _rates(self._circuit, self._uses + Counter([(link, hop.forward)]), link)
        before = _rates(self._circuit, self._held, link)
        return after[0] - before[0], after[1] - before[1]

    def _refusal(self, wish: Wish) -> Exception:
        best: Path | None = next(paths(self._network, wish, lambda _: INFINITE_BPS), None)
        if best is not None:
            claims = tuple(Claim(link_key(hop.link.name), *self._more(hop)) for hop in best)
            try:
                self._desk.fit(Reservation(self._circuit.number, *self._window, claims))
            except NoRoom as error:
                return error
        return BadInput(f"no path leads from {wish.a} to {wish.z}; `downburst topology show` lists the links")


def _rates(circuit: Circuit, uses: Uses, link: str) -> tuple[int, int]:
    """The rates that a circuit needs on a link, from its end `a` to its end `z` and back."""
    forward, backward = uses[link, True], uses[link, False]
    is_copied_there = circuit.carriage.replication is Replication.UNDERLAY
    out, back = circuit.rate_out_bps, circuit.rate_in_bps

    def along(count: int) -> int:
        return out * (min(count, 1) if is_copied_there else count)

    return along(forward) + back * backward, along(backward) + back * forward
