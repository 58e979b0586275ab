"""The bench of circuits asks the calendar and the brute force the same questions."""

import pytest
from bench.circuits import admission
from bench.circuits.admission import _fits, year
from bench.circuits.month import month_ms

from downburst_circuits.calendar import Calendar, NoRoom, Reservation


def test_calendar_and_brute_force_of_the_bench_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow_bps = 1_000_000_000
    monkeypatch.setattr(admission, "PORT_BPS", narrow_bps)
    calendar = Calendar(dict.fromkeys(("one", "other"), narrow_bps))
    kept: list[Reservation] = []
    wanted = year(1, ["one", "other"], count=1_000)
    for reservation in wanted:
        fits = _fits(kept, reservation)
        try:
            calendar.admit(reservation)
        except NoRoom:
            assert not fits
        else:
            assert fits
            kept.append(reservation)
    assert 20 < len(kept) < len(wanted)


def test_the_month_of_the_bench_is_answered_whole() -> None:
    assert month_ms(1, count=30) > 0
