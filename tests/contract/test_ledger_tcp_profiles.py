"""TCP profiles in the ledger: their prefixes, the outcomes of trials, and the audit."""

from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.access import Caller, Role, acting
from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile, TcpTrial, TrialStep
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Change, Changes
from factories import SOME_TIME

BBR = TcpKnobs("bbr", 8_388_608, 4_096, 50_000_000, 4)
OVERSEAS = TcpProfile("overseas", "192.0.2.0/24", ProfileMode.TRIAL, BBR)
KEPT = TcpTrial("overseas", TrialStep.KEPT, BBR, TcpKnobs(), 1, 3, 24_000_000, 15_000_000, 2, "faster", SOME_TIME)


def changes(tx: Transaction) -> list[Change]:
    return tx.access.audit.page(Changes(kind="TCP profile"))


def test_a_profile_comes_back_whole(tx: Transaction, clock: FakeClock) -> None:
    kept = tx.fleet.tcp_profiles.put(OVERSEAS)
    assert kept == replace(OVERSEAS, created_at=clock.now(), changed_at=clock.now())
    assert tx.fleet.tcp_profiles.all() == [kept] == [tx.fleet.tcp_profiles.one("overseas")]
    learns = tx.fleet.tcp_profiles.put(TcpProfile("campus", "2001:db8::/32", ProfileMode.LEARN))
    assert tx.fleet.tcp_profiles.all() == [learns, kept], "by name"
    tx.fleet.tcp_profiles.remove("overseas")
    with pytest.raises(NotFound, match="tcp-profiles list"):
        tx.fleet.tcp_profiles.remove("overseas")


def test_a_prefix_has_one_profile(tx: Transaction) -> None:
    tx.fleet.tcp_profiles.put(OVERSEAS)
    with pytest.raises(AlreadyThere, match=r"'overseas' already has the prefix 192\.0\.2\.0/24"):
        tx.fleet.tcp_profiles.put(replace(OVERSEAS, name="other"))
    tx.fleet.tcp_profiles.put(replace(OVERSEAS, name="longer", prefix="192.0.2.0/25"))
    with pytest.raises(AlreadyThere):
        tx.fleet.tcp_profiles.put(replace(OVERSEAS, prefix="192.0.2.0/25"))
    assert [one.prefix for one in tx.fleet.tcp_profiles.all()] == ["192.0.2.0/25", "192.0.2.0/24"]


def test_the_outcome_of_a_trial_stays_while_the_values_stay(tx: Transaction, clock: FakeClock) -> None:
    tx.fleet.tcp_profiles.put(OVERSEAS)
    tx.fleet.tcp_profiles.tried(replace(KEPT, sender="east"))
    assert tx.fleet.tcp_profiles.one("overseas").trial == replace(KEPT, sender="east")
    clock.advance(60)
    assert tx.fleet.tcp_profiles.put(OVERSEAS).trial is not None, "nothing changed"
    changed = tx.fleet.tcp_profiles.put(replace(OVERSEAS, knobs=TcpKnobs("cubic")))
    assert (changed.trial, changed.changed_at) == (None, clock.now())
    assert changed.created_at is not None
    assert changed.created_at < clock.now()


def test_kept_values_are_learnt_and_taken_back_ones_forgotten(tx: Transaction) -> None:
    tx.fleet.tcp_profiles.put(TcpProfile("overseas", "192.0.2.0/24", ProfileMode.LEARN))
    tx.fleet.tcp_profiles.tried(KEPT)
    assert tx.fleet.tcp_profiles.one("overseas").learnt == BBR
    tx.fleet.tcp_profiles.tried(replace(KEPT, step=TrialStep.TAKEN_BACK, reason="slower"))
    found = tx.fleet.tcp_profiles.one("overseas")
    assert found.learnt is None
    assert found.trial is not None
    assert (found.trial.step, found.trial.reason) == (TrialStep.TAKEN_BACK, "slower")


def test_a_trial_of_earlier_values_is_no_news(tx: Transaction) -> None:
    tx.fleet.tcp_profiles.tried(KEPT)
    assert tx.fleet.tcp_profiles.all() == []
    tx.fleet.tcp_profiles.put(replace(OVERSEAS, knobs=TcpKnobs("cubic")))
    tx.fleet.tcp_profiles.tried(KEPT)
    assert tx.fleet.tcp_profiles.one("overseas").trial is None, "the node tried what the operator had given before"
    tx.fleet.tcp_profiles.put(replace(OVERSEAS, mode=ProfileMode.STATIC))
    tx.fleet.tcp_profiles.tried(KEPT)
    assert tx.fleet.tcp_profiles.one("overseas").trial is None


def test_every_change_and_every_step_is_audited_with_its_actor(tx: Transaction) -> None:
    with acting(Caller("anna", Role.OPERATOR, frozenset())):
        tx.fleet.tcp_profiles.put(OVERSEAS)
        tx.fleet.tcp_profiles.put(OVERSEAS)
    for step in (TrialStep.BEGAN, TrialStep.KEPT, TrialStep.NOT_BETTER, TrialStep.TAKEN_BACK):
        tx.fleet.tcp_profiles.tried(replace(KEPT, step=step))
    with acting(Caller("anna", Role.OPERATOR, frozenset())):
        tx.fleet.tcp_profiles.put(replace(OVERSEAS, mode=ProfileMode.STATIC))
        tx.fleet.tcp_profiles.remove("overseas")
    found: list[Any] = [(one.who, one.subject, one.action) for one in reversed(changes(tx))]
    assert found == [
        ("anna", "overseas", "added"),
        *(("hub", "overseas", action) for action in ("trial began", "trial kept", "not better", "taken back")),
        ("anna", "overseas", "changed"),
        ("anna", "overseas", "removed"),
    ]
    kept = next(one for one in changes(tx) if one.action == "trial kept")
    assert kept.after is not None
    assert (kept.after["trial"]["canary_bps"], kept.after["trial"]["others_bps"]) == (24_000_000, 15_000_000)
    assert kept.before is not None
    assert kept.before["trial"]["step"] == "began"


def test_a_refused_change_is_undone(tx: Transaction) -> None:
    before = tx.fleet.tcp_profiles.put(OVERSEAS)
    tx.fleet.tcp_profiles.put(replace(OVERSEAS, knobs=TcpKnobs("vegas")))
    tx.fleet.tcp_profiles.restore(before, "overseas")
    assert tx.fleet.tcp_profiles.one("overseas") == before
    tx.fleet.tcp_profiles.put(TcpProfile("other", "2001:db8::/32", knobs=TcpKnobs("vegas")))
    tx.fleet.tcp_profiles.restore(None, "other")
    assert tx.fleet.tcp_profiles.find("other") is None
