"""Ports that the kit gives to servers of tests."""

import socket
import subprocess
import sys
from pathlib import Path

from kit.ports import free_port, free_ports, ports_in_a_row


def test_no_outgoing_connection_and_no_other_process_takes_a_port() -> None:
    outgoing_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(499)
    script = "from kit.ports import free_ports; print(*free_ports(499))"
    argv, tests = [sys.executable, "-c", script], Path(__file__).parents[1]
    others = subprocess.run(argv, cwd=tests, capture_output=True, text=True, check=True).stdout.split()
    assert len({*ports, *map(int, others)}) == 2 * 499
    assert max(*ports, *map(int, others)) < outgoing_from


def test_a_port_with_a_listener_is_left_out() -> None:
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        assert taken not in free_ports(500)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", taken))
        assert taken not in free_ports(500)


def test_ports_in_a_row_are_consecutive_at_the_end_of_a_block_too() -> None:
    for _ in range(200):
        first, *rest = ports_in_a_row(4)
        assert rest == [first + 1, first + 2, first + 3]
