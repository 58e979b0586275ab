"""Counters that are read from /proc."""

import os

import pytest
from bench.harness.counters import LinkBytes, cpu_s, moved, overruns, parse_cpu_ticks, parse_link, parse_overruns
from bench.peers.uftp import group_is_joined

NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0   0      100       2    0    0    0     0       0          0
  eth0: 1234567     890    0    0    0     0          0   5 7654321     999    0    0    0     0       0          0
"""
IGMP = """Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter
1\tlo        :     1      V3
\t\t\t\t010000E0     1 0:00000000\t\t0
2\teth0      :     2      V3
\t\t\t\t01014DE6     1 0:00000000\t\t0
"""


def test_bytes_of_an_interface() -> None:
    assert parse_link(NET_DEV) == LinkBytes(received=1_234_567, sent=7_654_321)
    assert parse_link(NET_DEV, interface="lo") == LinkBytes(received=100, sent=100)


def test_a_counter_that_fills_its_column_still_counts() -> None:
    assert parse_link(NET_DEV.replace("eth0: 1234567", "eth0:123456789012")).received == 123_456_789_012


def test_a_missing_interface_is_named() -> None:
    with pytest.raises(ValueError, match="eth1"):
        parse_link(NET_DEV, interface="eth1")


def test_what_moved_is_told_host_by_host() -> None:
    before = {"hub": LinkBytes(10, 100), "site0": LinkBytes(50, 5)}
    after = {"hub": LinkBytes(13, 1_100), "site0": LinkBytes(1_050, 6)}
    assert moved(after, before) == {"hub": LinkBytes(3, 1_000), "site0": LinkBytes(1_000, 1)}


def test_processor_time_of_a_process_with_a_difficult_name() -> None:
    fields = " ".join(["S", *["0"] * 10, "250", "75", "9", "9"])
    assert parse_cpu_ticks(f"4242 (a) b (c)) {fields}") == 325


def test_processor_time_of_this_process_grows() -> None:
    before_s = cpu_s([os.getpid()])
    while cpu_s([os.getpid()]) == before_s:
        pass
    assert cpu_s([os.getpid()]) > before_s


def test_a_joined_group_is_found() -> None:
    assert group_is_joined(IGMP, "230.77.1.1")
    assert not group_is_joined(IGMP, "230.77.1.2")


def test_overruns_of_udp_sockets() -> None:
    udp = "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 900 1 17 20 16 0\n"
    assert parse_overruns(f"Ip: Forwarding\nIp: 1\n{udp}UdpLite: InDatagrams\nUdpLite: 0\n") == 16
    assert overruns(os.getpid()) >= 0
