"""The state of this machine's clock: from chrony, ntpd or PTP where one runs, otherwise from the kernel."""

import ctypes
import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class ClockSource(StrEnum):
    """The program that disciplines the clock."""

    CHRONY = "chrony"
    NTPD = "ntpd"
    PTP = "ptp"
    KERNEL = "kernel"
    """No daemon answers; another program may have set the kernel's state, such as systemd-timesyncd."""


@dataclass(frozen=True, slots=True)
class HostClock:
    """A clock with its distance from true time, as its daemon sees it."""

    source: ClockSource
    synchronised: bool
    error_us: int
    """The largest error: root dispersion + root delay / 2 + the offset still to be corrected (RFC 5905 §11.2)."""
    reference: str = ""
    """The name or id of the source that it follows."""


def read_host_clock(programs: Mapping[ClockSource, Sequence[str]] | None = None) -> HostClock:
    """Asks the daemons in turn, then the kernel. OSError: the kernel refuses too.

    `programs`: other command lines than the usual ones, for a daemon at another address.
    """
    asked = {**COMMANDS, **(programs or {})}
    for source, read in _READERS.items():
        answer = _answer_of(asked[source])
        found = None if answer is None else read(answer)
        if found is not None:
            return found
    return of_kernel()


class HostClockWatch:
    """The state of the clock, at most half a minute old: reading it starts programs."""

    def __init__(self, read: Callable[[], HostClock] = read_host_clock) -> None:
        self._read = read
        self._found: tuple[float, HostClock | None] | None = None

    def now(self) -> HostClock | None:
        """None: the state can't be read. Blocks for some seconds at worst."""
        now_s = time.monotonic()
        if self._found is None or now_s - self._found[0] > KEPT_S:
            try:
                self._found = now_s, self._read()
            except OSError:
                self._found = now_s, None
        return self._found[1]


def of_chrony(answer: str) -> HostClock | None:
    """From `chronyc -c tracking`: fields by comma, times in seconds."""
    fields = answer.strip().split(",")
    if len(fields) < CHRONY_FIELDS:
        return None
    try:
        offset_s, delay_s, dispersion_s = (float(fields[place]) for place in (4, 10, 11))
    except ValueError:
        return None
    error_us = _us(dispersion_s + delay_s / 2 + abs(offset_s))
    return HostClock(ClockSource.CHRONY, fields[13] != "Not synchronised", error_us, fields[1] or fields[0])


def of_ntpd(answer: str) -> HostClock | None:
    """From `ntpq -c rv`: variables by comma, times in milliseconds; ntpd and ntpsec write the same."""
    names = dict(re.findall(r"(\w+)=([^,\s]+)", answer))
    try:
        offset_ms, delay_ms, dispersion_ms = (float(names[name]) for name in ("offset", "rootdelay", "rootdisp"))
    except (KeyError, ValueError):
        return None
    synchronised = "leap_alarm" not in answer and names.get("leap") not in ("11", "3")
    error_us = _us((dispersion_ms + delay_ms / 2 + abs(offset_ms)) / 1000)
    return HostClock(ClockSource.NTPD, synchronised, error_us, names.get("refid", ""))


def of_ptp(answer: str) -> HostClock | None:
    """From `pmc -u -b 0 'GET TIME_STATUS_NP'`: nanoseconds. Without a dispersion, the error is the offset."""
    names = dict(re.findall(r"(\w+)\s+(\S+)", answer))
    if "master_offset" not in names or "gmPresent" not in names:
        return None
    try:
        error_us = -(-abs(int(names["master_offset"])) // 1000)
    except ValueError:
        return None
    return HostClock(ClockSource.PTP, names["gmPresent"] == "true", error_us, names.get("gmIdentity", ""))


def of_kernel() -> HostClock:
    """From adjtimex(2), which needs no right for reading; OSError if the kernel refuses."""
    timex = ctypes.create_string_buffer(TIMEX_BYTES)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(timex)
    if state < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    # After modes: offset, freq and maxerror, each the size of a C long.
    error_us = struct.unpack_from("@illl", timex.raw)[3]
    return HostClock(ClockSource.KERNEL, state != UNSYNCHRONISED, error_us)


def _answer_of(command: Sequence[str]) -> str | None:
    """The answer of a program; None if it is not there, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def _us(seconds: float) -> int:
    """Rounded up, at most a century: a daemon that never was in step reports any error."""
    return min(int(seconds * 1e6) + 1, MOST_US) if seconds < MOST_US / 1e6 else MOST_US


COMMANDS: Mapping[ClockSource, Sequence[str]] = {
    ClockSource.CHRONY: ("chronyc", "-c", "tracking"),
    ClockSource.NTPD: ("ntpq", "-c", "rv"),
    ClockSource.PTP: ("pmc", "-u", "-b", "0", "GET TIME_STATUS_NP"),
}
_READERS: Mapping[ClockSource, Callable[[str], HostClock | None]] = {
    ClockSource.CHRONY: of_chrony,
    ClockSource.NTPD: of_ntpd,
    ClockSource.PTP: of_ptp,
}
CHRONY_FIELDS = 14
WAIT_S = 2.0
KEPT_S = 30.0
UNSYNCHRONISED = 5
"""The kernel's TIME_ERROR."""
TIMEX_BYTES = 256
"""More than the 208 of struct timex."""
MOST_US = 3_155_760_000_000_000
