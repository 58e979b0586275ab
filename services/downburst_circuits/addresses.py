"""Inner addresses of circuits: a block for each, from one network, for the circuit's life."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_interface

from downburst.domain.circuits import Circuit, CircuitDriver
from downburst.foundation.errors import BadInput, Failure

Network = IPv4Network | IPv6Network


def addresses(network: Network, circuit: Circuit, others: Iterable[Circuit]) -> tuple[str, ...]:
    """One address for each end, with its prefix length, that no other circuit has."""
    taken = {_block_of(end.address) for other in others for end in other.ends if _given(other) and end.address}
    sizes = _host_bits(len(circuit.ends))
    found = (_free(network, bits, circuit.number, taken) for bits in sizes)
    block = next((block for block in found if block is not None), None)
    if block is None:
        raise Failure(
            f"the network {network} has no inner addresses left for circuit {circuit.number}; "
            "name a larger one in the setting circuits.network"
        )
    skipped = 0 if len(circuit.ends) == 2 else 1
    base = int(block.network_address) + skipped
    kind = type(block.network_address)
    return tuple(f"{kind(base + position)}/{block.prefixlen}" for position in range(len(circuit.ends)))


def spare(circuit: Circuit) -> str:
    """An unused address in the block of a multipoint circuit, for a further end; refuses a full block."""
    given = [ip_interface(end.address) for end in circuit.ends if end.address]
    block, taken = given[0].network, {address.ip for address in given}
    for step in range(1, block.num_addresses - 1):
        if block[step] not in taken:
            return f"{block[step]}/{block.prefixlen}"
    raise BadInput(
        f"circuit {circuit.number} has inner addresses for {len(given) - 1} sites and all are taken; remove a leaf, "
        "or reserve another circuit"
    )


def _given(circuit: Circuit) -> bool:
    return circuit.carriage.driver in (CircuitDriver.LINUX, CircuitDriver.NSI)


def _host_bits(ends: int) -> tuple[int, ...]:
    """The sizes of a block, the best first: two ends take a block of two. More ends take one with its first and last
    address unused, and with room for further ends if the network has that."""
    if ends == 2:
        return (1,)
    tight = (ends + 1).bit_length()
    return max(tight, ROOMY_BITS), tight


def _free(network: Network, bits: int, number: int, taken: set[Network]) -> Network | None:
    """Assigns blocks in turn, so that a released block rests before it is used again."""
    # A network without room for a block of this size has none to try.
    count = network.num_addresses >> bits
    for step in range(min(count, MOST_LOOKED_AT)):
        block = _block(network, bits, (number + step) % count)
        if not any(block.overlaps(other) for other in taken):
            return block
    return None


def _block(network: Network, bits: int, index: int) -> Network:
    first = int(network.network_address) + (index << bits)
    return type(network)((first, network.max_prefixlen - bits))


def _block_of(address: str) -> Network:
    return ip_interface(address).network


MOST_LOOKED_AT = 65_536
ROOMY_BITS = 5
"""The hub and 29 sites."""
