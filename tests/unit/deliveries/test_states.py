"""Every state of a delivery, with its reason and its next action."""

from dataclasses import replace
from datetime import timedelta
from itertools import product as combinations

import pytest

from downburst.deliveries import Cause, DeliveryState, Known, SentBytes, SiteFacts, WaitingBytes
from downburst.domain.events import ActionFailed
from downburst.domain.receipts import ProductException
from downburst.domain.subscriptions import IdFilter, Subscription
from unit.deliveries.cases import NOW, PRODUCT, SITE, STORED, after, judged, receipt, session

S = DeliveryState
GONE = replace(PRODUCT, kept=False)
WISH = Subscription(1, "unl.edu", "NGRID", created_at=STORED - timedelta(days=1))


def test_a_receipt_says_that_and_how_fast_it_was_stored() -> None:
    found = judged(replace(SITE, receipts=(receipt(),)))
    assert (found.state, found.reason) == (S.STORED, "stored by unicast in 75.0 ms ± 2.0 ms")
    assert found.next_action == "nothing to do"


def test_a_late_product_names_the_slow_stage_and_what_went_before_it() -> None:
    slow = receipt(
        first_byte_at=after(2300), last_byte_at=after(2400), site_stored_at=after(2405), action_done_at=None
    )
    facts = replace(SITE, receipts=(slow,), sent_before=(SentBytes("HDS", 1, 500), SentBytes("NGRID", 9, 48_000_000)))
    found = judged(facts, Known(objective_ms=1000.0))
    assert found.timing.slow == "queue"
    assert (
        "it waited 2.3 s in the hub's queue for this site, behind 48 MB of NGRID and 500 bytes of HDS" in found.reason
    )
    assert "widen the site's line" in found.next_action
    assert found.objective_ms == 1000.0


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("stored", S.STORED), ("held", S.STORED), ("rejected", S.REJECTED), ("expired", S.EXPIRED)],
)
def test_each_outcome_has_its_state(outcome: str, state: DeliveryState) -> None:
    assert judged(replace(SITE, receipts=(receipt(outcome),))).state is state


def test_a_product_that_came_at_last_is_stored_whatever_was_said_before() -> None:
    facts = replace(SITE, receipts=(receipt("rejected"), receipt("stored", lane="resend")))
    lost = ProductException("NGRID", "7", 42, "unl.edu", "rejected", NOW)
    found = judged(facts, Known(exception=lost))
    assert found.state is S.STORED
    assert "in the resend lane" in found.reason


def test_what_the_ledger_lists_as_lost_is_lost() -> None:
    for outcome, state in (("expired", S.EXPIRED), ("rejected", S.REJECTED)):
        lost = ProductException("NGRID", "7", 42, "unl.edu", outcome, NOW)
        assert judged(known=Known(exception=lost)).state is state


def test_a_lost_product_that_is_kept_can_be_sent_again_and_one_that_is_gone_can_not() -> None:
    lost = Known(exception=ProductException("NGRID", "7", 42, "unl.edu", "expired", NOW))
    kept, gone = judged(known=lost), judged(known=lost, product=GONE)
    resend = "downburst resend --site unl.edu --feed 'NGRID' --from 2026-01-31T11:59:29Z --to 2026-01-31T11:59:31Z"
    assert resend in kept.next_action
    assert "resend" not in gone.next_action
    assert "ask its origin, ingest.example" in gone.next_action


def test_a_site_without_the_right_is_denied() -> None:
    found = judged(SiteFacts("unl.edu"), Known(allowed=False, allow=("IDS|DDPLUS",), subscriptions=(WISH,)))
    assert (found.state, "IDS|DDPLUS" in found.reason) == (S.DENIED, True)
    assert judged(replace(SITE, active=False)).state is S.DENIED


def test_who_did_not_ask_for_it_is_not_subscribed() -> None:
    assert judged(SiteFacts("unl.edu")).state is S.NOT_SUBSCRIBED
    unmatched = judged(replace(SITE, subscriptions=3, matching=()))
    assert (unmatched.state, unmatched.reason) == (
        S.NOT_SUBSCRIBED,
        "its 3 subscriptions do not include this id of NGRID",
    )


def test_a_subscription_that_began_later_did_not_ask_for_it() -> None:
    late = replace(WISH, created_at=STORED + timedelta(seconds=10))
    found = judged(replace(SITE, session=session("not-served")), Known(subscriptions=(late,)))
    assert (found.state, "10.0 s before the subscription began" in found.reason) == (S.NOT_SUBSCRIBED, True)
    dated_back = replace(late, start_at=STORED - timedelta(hours=1))
    assert judged(known=Known(subscriptions=(dated_back,))).state is S.WAITING
    other = replace(late, pattern="^other")
    assert judged(known=Known(subscriptions=(other,))).state is S.WAITING, "another subscription's age says nothing"


def test_it_waits_in_the_queue_behind_what_is_there() -> None:
    waiting = (WaitingBytes("HDS", True, 900), WaitingBytes("NGRID", True, 16_000_000))
    found = judged(replace(SITE, session=session("queued", waiting=waiting)))
    assert found.state is S.WAITING
    assert (
        "it has waited 30.0 s in the hub's queue for this site, in which 16 MB of NGRID and 900 bytes of HDS wait"
        in (found.reason)
    )


@pytest.mark.parametrize(
    ("standing", "state"),
    [
        (session("queued", first_byte_at=after(29_000)), S.SENDING),
        (session("queued", asked=True), S.REPAIRING),
        (session("owed", lane="live", numbers_before=3), S.WAITING),
        (session("owed", lane="backfill", numbers_before=900), S.WAITING),
        (session("said"), S.SENDING),
        (session("said", first_byte_at=after(29_900)), S.SENDING),
        (session("left-to-leg", leg=9), S.WAITING),
        (session("left-to-leg", leg=9, first_byte_at=after(29_500)), S.SENDING),
        (session("left-to-leg", leg=9, first_byte_at=after(1_000)), S.REPAIRING),
        (session("settled"), S.STORED),
        (session("not-served"), S.WAITING),
        (session("no-answer"), S.WAITING),
        (session("a word of a later release"), S.WAITING),
    ],
)
def test_each_standing_in_a_session_has_its_state(standing: object, state: DeliveryState) -> None:
    assert judged(replace(SITE, session=standing)).state is state  # type: ignore[arg-type]


def test_a_site_that_does_not_confirm_should_look_at_its_disk() -> None:
    found = judged(replace(SITE, session=session("said", first_byte_at=after(10))))
    assert (found.state, "read-only disk" in found.next_action) == (S.SENDING, True)


@pytest.mark.parametrize(
    ("outcome", "where"),
    [("late-at-hub", "the hub did not send it"), ("late-at-site", "the site dropped it when it came")],
)
def test_what_missed_the_deadline_of_its_feed_is_dropped(outcome: str, where: str) -> None:
    found = judged(replace(SITE, receipts=(receipt(outcome),)), Known(deadline_ms=500))
    assert (found.state, found.cause) == (S.DROPPED, Cause.DEADLINE)
    assert found.reason == f"later than the feed's deadline of 500.0 ms: {where}"
    assert "resend" in found.next_action
    again = replace(SITE, receipts=(receipt(outcome), receipt("stored")))
    assert judged(again, Known(deadline_ms=500)).state is S.STORED, "a resend is ordinary"


def test_what_left_the_log_before_a_site_got_it_is_expired() -> None:
    assert judged(product=GONE).state is S.EXPIRED
    assert judged(replace(SITE, session=session("owed")), product=GONE).state is S.EXPIRED
    assert judged(replace(SITE, session=session("settled")), product=GONE).state is S.STORED


def test_a_site_that_is_away_waits_for_it_or_has_it() -> None:
    away = Known(last_seen_at=NOW - timedelta(hours=1), away_reason="the connection failed", retention_hours=2.0)
    found = judged(known=away)
    assert (found.state, found.reason) == (
        S.WAITING,
        "the site is offline since 2026-01-31T11:00:00Z (the connection failed)",
    )
    assert "the log keeps it until 2026-01-31T13:59:30Z" in found.next_action
    assert judged(known=replace(away, settled_to=42)).state is S.STORED
    assert judged(known=replace(away, settled_to=41)).state is S.WAITING
    never = judged(known=Known(enrolled=False))
    assert (never.state, "downburst sites token unl.edu" in never.next_action) == (S.WAITING, True)


def test_every_case_has_a_state_a_reason_and_a_next_action() -> None:
    sessions = [None, *(session(word) for word in ("settled", "queued", "owed", "left-to-leg", "said", "not-served"))]
    receipts = [(), *((receipt(outcome),) for outcome in ("stored", "rejected", "expired", "late-at-hub"))]
    exceptions = [None, ProductException("NGRID", "7", 42, "unl.edu", "expired", NOW)]
    seen = set()
    for one, said, lost, allowed, subscriptions, matches, kept in combinations(
        sessions, receipts, exceptions, (True, False), (0, 2), (True, False), (True, False)
    ):
        facts = SiteFacts(
            "unl.edu",
            subscriptions=subscriptions,
            matching=(IdFilter(),) if matches and subscriptions else (),
            session=one,
            receipts=said,
        )
        known = Known(allowed=allowed, subscriptions=(WISH,), exception=lost)
        found = judged(facts, known, PRODUCT if kept else GONE)
        assert found.reason
        assert found.next_action
        assert not found.reason.endswith(".")
        seen.add(found.state)
    assert seen == set(DeliveryState) - {S.REPAIRING}


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ([("^nam", "grib2$")], "the NOT pattern 'grib2$' excludes it"),
        ([("^nam", "grib2$"), ("^gfs", None)], "the NOT pattern 'grib2$' excludes it"),
        ([("^gfs", None), ("^rap", "x")], "it does not match '^gfs' or '^rap'"),
        ([("(?R)", None)], ""),
    ],
)
def test_a_pattern_that_takes_it_out_is_named(wishes: list[tuple[str, str | None]], said: str) -> None:
    known = Known(subscriptions=tuple(replace(WISH, pattern=one, not_pattern=other) for one, other in wishes))
    found = judged(replace(SITE, subscriptions=len(wishes), matching=()), known)
    assert found.state is S.NOT_SUBSCRIBED
    assert found.reason.endswith(f"of NGRID: {said}" if said else "of NGRID")


def test_a_pattern_that_would_take_for_ever_takes_no_time() -> None:
    endless = replace(WISH, pattern="(a+)+$")
    product = replace(PRODUCT, product_id="a" * 254 + "b")
    found = judged(replace(SITE, matching=()), Known(subscriptions=(endless,)), product)
    assert "does not match" in found.reason


def test_too_old_and_gone_from_the_log_are_told_apart() -> None:
    facts = replace(SITE, matching=(IdFilter(".*"),))
    lost = ProductException("NGRID", "7", 42, "unl.edu", "expired", NOW)
    aged = Known(subscriptions=(replace(WISH, max_age_s=20.0),), exception=lost, retention_hours=2.0)
    assert "older than the 20.0 s that the subscription allows" in judged(facts, aged).reason
    assert "left the hub's log" in judged(facts, replace(aged, subscriptions=(WISH,))).reason
    patient = replace(aged, subscriptions=(replace(WISH, max_age_s=86_400.0),))
    assert "left the hub's log" in judged(facts, patient, GONE).reason
    both = replace(aged, subscriptions=(replace(WISH, max_age_s=20.0), WISH))
    assert "left the hub's log" in judged(facts, both).reason


def test_a_site_whose_disk_is_full_says_so() -> None:
    trouble = Known(trouble="its disk is full", connected=True)
    for standing in ("queued", "said", "owed", "left-to-leg"):
        found = judged(replace(SITE, session=session(standing)), trouble)
        assert (found.state, "the site can't store NGRID: its disk is full" in found.reason) == (S.WAITING, True)
        assert "free or repair the disk" in found.next_action
    assert judged(replace(SITE, session=session("settled")), trouble).state is S.STORED


def test_a_rule_that_failed_for_the_product_is_named_and_one_that_failed_for_another_is_not() -> None:
    failed = ActionFailed("pqact.conf:5", 3, "no station table", PRODUCT.product_id, PRODUCT.sequence)
    stored = replace(SITE, receipts=(receipt(),))
    settled = replace(SITE, session=session("settled"))
    for facts in (stored, settled):
        found = judged(facts, Known(action_failed=failed))
        assert (found.state, "rule pqact.conf:5 failed for it: no station table" in found.reason) == (S.STORED, True)
        assert "actions retry" in found.next_action
        other = Known(action_failed=replace(failed, sequence=PRODUCT.sequence + 1))
        assert "failed for it" not in judged(facts, other).reason


def test_an_earlier_product_that_a_rule_failed_for_is_known_by_its_number_in_the_same_log() -> None:
    newest = ActionFailed("pqact.conf:5", 3, "no station table", "another", PRODUCT.sequence + 9, PRODUCT.epoch, 3)
    stored = replace(SITE, receipts=(receipt(),))
    found = judged(stored, Known(action_failed=replace(newest, others=(PRODUCT.sequence,))))
    assert (found.state, found.cause) == (S.STORED, Cause.ACTION)
    assert "as for 2 other products of the feed" in found.reason
    for other in (replace(newest, others=(PRODUCT.sequence,), epoch="8"), replace(newest, others=(1,)), newest):
        assert judged(stored, Known(action_failed=other)).cause is None


def test_each_cause_has_its_word() -> None:
    away, aged = Known(connected=False), Known(subscriptions=(replace(WISH, max_age_s=20.0),))
    long_ago = replace(PRODUCT, stored_at=STORED - timedelta(hours=1))
    filtered = Known(subscriptions=(replace(WISH, not_pattern="."),))
    for found, cause in (
        (judged(replace(SITE, subscriptions=0, matching=())), Cause.NOT_SUBSCRIBED),
        (judged(replace(SITE, matching=()), filtered), Cause.FILTERED),
        (judged(known=Known(allowed=False, subscriptions=(WISH,))), Cause.DENIED),
        (judged(replace(SITE, session=session("queued"))), Cause.QUEUED),
        (judged(SITE, away), Cause.SITE_DOWN),
        (judged(SITE, away, GONE), Cause.LEFT_THE_LOG),
        (judged(SITE, aged, long_ago), Cause.TOO_OLD),
        (judged(replace(SITE, receipts=(receipt(outcome="rejected"),))), Cause.DIGEST),
        (judged(replace(SITE, session=session("said")), Known(trouble="full", connected=True)), Cause.DISK),
        (judged(replace(SITE, receipts=(receipt(),))), None),
    ):
        assert found.cause is cause, found


def test_a_file_of_which_nothing_was_said_is_not_yet_reported_and_never_missing() -> None:
    young = judged(replace(SITE, receipts=(receipt(action_done_at=None),)))
    long_ago = STORED - timedelta(minutes=2)
    early = replace(SITE, receipts=(receipt(action_done_at=None, site_stored_at=long_ago),))
    old = judged(early, product=replace(PRODUCT, stored_at=long_ago))
    for found, step in ((young, "nothing to do; look again"), (old, "check at the site whether the file is in")):
        assert found.state is S.STORED
        assert found.reason.endswith("its file is not yet reported (normally within 2.0 s)")
        assert found.next_action.startswith(step)
        assert found.cause is None, "nobody knows that the disk is to blame"
