"""TCP profiles: bounds of their values, prefixes, and the effect of a trial."""

from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.tcp.profiles import (
    ProfileMode,
    TcpKnobs,
    TcpProfile,
    TcpTrial,
    TrialStep,
    checked_prefix,
    knobs_text,
)
from downburst.foundation.errors import BadInput, BadName
from factories import SOME_TIME

BBR = TcpKnobs("bbr")
CUBIC = TcpKnobs("cubic", connections=4)


def trial(step: TrialStep, knobs: TcpKnobs = BBR, **given: Any) -> TcpTrial:
    rates = {"canary_bps": 16_000_000, "others_bps": 10_000_000} | given
    return TcpTrial("p", step, knobs, TcpKnobs(), 1, 3, rates["canary_bps"], rates["others_bps"], 2, "why", SOME_TIME)


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"congestion": "BBR"}, "'BBR' can't be a congestion control"),
        ({"congestion": ""}, "can't be a congestion control"),
        ({"congestion": "x" * 16}, "can't be a congestion control"),
        ({"congestion": "bbr\n"}, "can't be a congestion control"),
        ({"send_buffer_bytes": 4_095}, "a send buffer of 4095 is impossible; choose 4,096 to 1,073,741,824 bytes"),
        ({"receive_buffer_bytes": 2**30 + 1}, "a receive buffer of 1073741825 is impossible"),
        ({"pacing_bps": 7_999}, "a pacing rate of 7999 is impossible; choose 8,000 to 1,000,000,000,000 bit/s"),
        ({"pacing_bps": -1}, "a pacing rate of -1 is impossible"),
        ({"connections": 0}, "a number of connections of 0 is impossible; choose 1 to 16"),
        ({"connections": 17}, "a number of connections of 17 is impossible"),
    ],
)
def test_impossible_values_are_refused_by_a_sentence(knobs: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        TcpKnobs(**knobs)
    assert said in refused.value.sentence


def test_the_bounds_themselves_are_possible() -> None:
    assert TcpKnobs("a_1", 4_096, 4_096, 8_000, 1)
    assert TcpKnobs("x" * 15, 2**30, 2**30, 10**12, 16)
    assert not TcpKnobs()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("192.0.2.7/32", "192.0.2.7/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0::/32", "2001:db8::/32"),
        ("::/0", "::/0"),
    ],
)
def test_a_prefix_has_one_form(text: str, kept: str) -> None:
    assert checked_prefix(text) == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("192.0.2.7/24", "has bits of a host; write 192.0.2.0/24"),
        ("2001:db8::1/32", "has bits of a host; write 2001:db8::/32"),
        *(
            (text, "is not a prefix of addresses")
            for text in ("192.0.2.0", "192.0.2.0/33", "192.0.2.0/-1", "2001::/129")
        ),
        *((text, "is not a prefix of addresses") for text in ("", "/", "everything", "10.0.0.0/255.0.0.0", "1/8")),
        *(
            (text, "is not a prefix of addresses")
            for text in ("fe80::%eth0/64", "192.0.2.0/24\n", "१.0.0.0/8", "x" * 999)
        ),
    ],
)
def test_what_is_no_prefix_is_refused_by_a_sentence(text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked_prefix(text)
    assert said in refused.value.sentence
    assert len(refused.value.sentence) < 250


@pytest.mark.parametrize("name", ["", "-x", "Overseas", "a b", "a" * 64, "a\n"])
def test_a_name_is_short_and_plain(name: str) -> None:
    with pytest.raises(BadName, match="can't be a profile's name"):
        TcpProfile(name, "192.0.2.0/24", knobs=BBR)


def test_a_profile_sets_something_and_one_that_learns_is_given_nothing() -> None:
    for mode in (ProfileMode.STATIC, ProfileMode.TRIAL):
        with pytest.raises(BadInput, match="sets nothing"):
            TcpProfile("p", "192.0.2.0/24", mode)
    with pytest.raises(BadInput, match="learns its values, so it takes none"):
        TcpProfile("p", "192.0.2.0/24", ProfileMode.LEARN, BBR)
    assert TcpProfile("p", "192.0.2.0/24", ProfileMode.LEARN).learnt is None


def test_kept_values_are_learnt_and_taken_back_ones_forgotten() -> None:
    profile = TcpProfile("p", "192.0.2.0/24", ProfileMode.LEARN)
    began = profile.after(trial(TrialStep.BEGAN))
    assert (began.learnt, began.trial) == (None, trial(TrialStep.BEGAN))
    kept = began.after(trial(TrialStep.KEPT))
    assert kept.learnt == BBR
    assert kept.after(trial(TrialStep.BEGAN, CUBIC)).learnt == BBR
    assert kept.after(trial(TrialStep.NOT_BETTER, CUBIC)).learnt == BBR
    assert kept.after(trial(TrialStep.TAKEN_BACK, CUBIC)).learnt == BBR, "the candidate went, not what was learnt"
    assert kept.after(trial(TrialStep.TAKEN_BACK)).learnt is None
    assert kept.after(trial(TrialStep.KEPT, CUBIC)).learnt == CUBIC


def test_a_trial_of_the_operator_s_values_learns_nothing() -> None:
    profile = TcpProfile("p", "192.0.2.0/24", ProfileMode.TRIAL, BBR)
    assert profile.after(trial(TrialStep.KEPT)) == replace(profile, trial=trial(TrialStep.KEPT))


def test_the_ratio_of_a_trial_needs_both_rates() -> None:
    assert trial(TrialStep.KEPT).ratio == pytest.approx(1.6)
    assert trial(TrialStep.BEGAN, canary_bps=None).ratio is None
    assert trial(TrialStep.BEGAN, others_bps=None).ratio is None
    assert trial(TrialStep.BEGAN, others_bps=0).ratio is None


def test_values_are_told_in_a_few_words() -> None:
    assert knobs_text(TcpKnobs()) == "the kernel's values"
    all_of_them = TcpKnobs("bbr", 8 * 2**20, 65_536, 50_000_000, 4)
    assert knobs_text(all_of_them) == (
        "bbr, send buffer 8 MiB, receive buffer 64 KiB, 50 Mb/s per connection, 4 connections"
    )
    assert knobs_text(TcpKnobs(send_buffer_bytes=5_001, connections=1)) == "send buffer 5,001 bytes, 1 connection"
