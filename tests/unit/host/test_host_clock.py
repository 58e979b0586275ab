"""The state of the machine's clock, as its daemons tell it."""

import sys

import pytest

from downburst.host.host_clock import (
    MOST_US,
    ClockSource,
    HostClock,
    HostClockWatch,
    of_chrony,
    of_kernel,
    of_ntpd,
    of_ptp,
    read_host_clock,
)

CHRONY = (
    "C0000201,ntp.example.net,3,1764325000.1,-0.000120000,0.0001,0.0002,-3.2,0.01,0.1,"
    "0.012000000,0.000800000,64.2,Normal"
)
NTPD = """associd=0 status=0615 leap_none, sync_ntp, 1 event, clock_sync,
version="ntpd ntpsec-1.2.2", processor="x86_64", leap=00, stratum=2,
precision=-24, rootdelay=12.000, rootdisp=23.500, refid=192.0.2.7,
reftime=ecd0a1b2.00000000, offset=-0.250000, frequency=-3.2, sys_jitter=0.1
"""
PTP = """sending: GET TIME_STATUS_NP
	0cc47a.fffe.000001-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP
		master_offset              -1250
		ingress_time               1764325000000000000
		gmPresent                  true
		gmIdentity                 001122.fffe.334455
"""


def test_the_error_is_dispersion_half_of_the_delay_and_what_is_left_to_correct() -> None:
    assert of_chrony(CHRONY) == HostClock(ClockSource.CHRONY, True, 6_921, "ntp.example.net")
    assert of_ntpd(NTPD) == HostClock(ClockSource.NTPD, True, 29_751, "192.0.2.7")
    assert of_ptp(PTP) == HostClock(ClockSource.PTP, True, 2, "001122.fffe.334455")


def test_a_daemon_without_a_reference_is_not_in_step() -> None:
    lost = [
        of_chrony("00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised"),
        of_ntpd(NTPD.replace("leap=00", "leap=11").replace("leap_none", "leap_alarm")),
        of_ptp(PTP.replace("true", "false")),
    ]
    assert [clock is not None and clock.synchronised for clock in lost] == [False] * 3


@pytest.mark.parametrize(
    "told", ["", "506 Cannot talk to daemon", ",,,,,,,,,,,,,,", "offset=x rootdelay=1 rootdisp=2"]
)
def test_what_is_no_answer_is_none(told: str) -> None:
    assert (of_chrony(told), of_ntpd(told), of_ptp(told)) == (None, None, None)


def test_an_absurd_error_is_bounded() -> None:
    clock = of_chrony(CHRONY.replace("0.000800000", "1e300"))
    assert clock is not None
    assert clock.error_us == MOST_US


def test_without_a_daemon_the_kernel_answers() -> None:
    gone = dict.fromkeys(ClockSource, ("/nonexistent/program",))
    assert read_host_clock(gone).source is ClockSource.KERNEL
    assert of_kernel().error_us >= 0


def test_the_first_daemon_that_answers_counts() -> None:
    says = (sys.executable, "-c", f"print({NTPD!r})")
    fails = (sys.executable, "-c", "raise SystemExit(1)")
    programs = {ClockSource.CHRONY: fails, ClockSource.NTPD: says, ClockSource.PTP: fails}
    assert read_host_clock(programs).source is ClockSource.NTPD


def test_the_state_is_read_once_in_half_a_minute_and_a_refusal_is_no_state() -> None:
    reads = []

    def refuse() -> HostClock:
        reads.append(1)
        raise PermissionError(1, "Operation not permitted")

    watch = HostClockWatch(refuse)
    assert (watch.now(), watch.now(), len(reads)) == (None, None, 1)
