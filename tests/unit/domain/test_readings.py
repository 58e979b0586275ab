"""The advice to a site's administrator about the reading of groups."""

from dataclasses import replace

import pytest

from downburst.domain.readings import HostReading, PriorityStanding, advice

ASKED = 16 * 1024 * 1024
WELL = HostReading(70, 0, ASKED, 2 * ASKED, 5_000_000, limit_bytes=212_992)


def said(**changed: object) -> str:
    return advice("NGRID", replace(WELL, **changed)) or ""  # type: ignore[arg-type]


def test_a_large_buffer_without_drops_needs_nothing() -> None:
    assert advice("NGRID", WELL) is None
    assert said(priority=20, standing=PriorityStanding.REAL_TIME) == ""
    assert said(priority=20, standing=PriorityStanding.LOST, demotions=1) == ""


def test_a_buffer_that_the_kernel_limits_names_the_setting_and_its_value() -> None:
    limited = said(granted_bytes=425_984, dropped=1_234)
    assert limited == (
        "1,234 datagrams of NGRID found no room in the receive buffer, which has 425,984 bytes of the 5,000,000 that "
        "its rate needs on a busy host: set net.core.rmem_max=5000000 at the site (it is 212992), or give the "
        "receiver CAP_NET_ADMIN; then start the receiver anew"
    )
    assert "may find no room" in said(granted_bytes=425_984)
    assert "(it is" not in said(granted_bytes=425_984, limit_bytes=None)


@pytest.mark.parametrize(("asked_bytes", "granted_bytes"), [(65_536, 131_072), (2_000_000, 4_000_000)])
def test_a_buffer_that_the_request_limits_names_the_option(asked_bytes: int, granted_bytes: int) -> None:
    sentence = said(asked_bytes=asked_bytes, granted_bytes=granted_bytes)
    assert sentence.endswith("start the receiver with --receive-buffer 2500000")


def test_drops_from_a_large_buffer_are_a_matter_of_priority() -> None:
    assert said(dropped=5).endswith("start the receiver with --receive-priority 20")
    refused = said(dropped=5, priority=30, standing=PriorityStanding.REFUSED)
    assert refused.endswith("give the receiver CAP_SYS_NICE, or LimitRTPRIO=30 in its unit")
    assert said(priority=30, standing=PriorityStanding.REFUSED).startswith("real-time priority 30 was refused")
    assert "too slow for the leg's rate" in said(dropped=5, priority=30, standing=PriorityStanding.REAL_TIME)
