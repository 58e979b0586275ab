"""Inner addresses of circuits: a block for each, from one network, for the circuit's life."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_interface

from downburst.domain.circuits import Circuit, CircuitDriver
from downburst.foundation.errors import Failure

Network = IPv4Network | IPv6Network


def addresses(network: Network, circuit: Circuit, others: Iterable[Circuit]) -> tuple[str, ...]:
    """One address for each end, with its prefix length, that no other circuit has."""
    taken = {_block_of(end.address) for other in others for end in other.ends if _given(other) and end.address}
    bits = _host_bits(len(circuit.ends))
    block = _free(network, bits, circuit.number, taken)
    skipped = 0 if bits == 1 else 1
    base = int(block.network_address) + skipped
    kind = type(block.network_address)
    return tuple(f"{kind(base + position)}/{block.prefixlen}" for position in range(len(circuit.ends)))


def _given(circuit: Circuit) -> bool:
    return circuit.carriage.driver in (CircuitDriver.LINUX, CircuitDriver.NSI)


def _host_bits(ends: int) -> int:
    """Two ends take a block of two; more ends take a block with its first and last address unused."""
    return 1 if ends == 2 else (ends + 1).bit_length()


def _free(network: Network, bits: int, number: int, taken: set[Network]) -> Network:
    """Assigns blocks in turn, so that a released block rests before it is used again."""
    # A network without room for a block of this size has none to try.
    count = network.num_addresses >> bits
    for step in range(min(count, MOST_LOOKED_AT)):
        block = _block(network, bits, (number + step) % count)
        if not any(block.overlaps(other) for other in taken):
            return block
    raise Failure(
        f"the network {network} has no inner addresses left for circuit {number}; "
        "name a larger one in the setting circuits.network"
    )


def _block(network: Network, bits: int, index: int) -> Network:
    first = int(network.network_address) + (index << bits)
    return type(network)((first, network.max_prefixlen - bits))


def _block_of(address: str) -> Network:
    return ip_interface(address).network


MOST_LOOKED_AT = 65_536
