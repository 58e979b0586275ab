//! A log restored from a backup learns which numbers it assigned and forgot.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{copy, ids, open, small, store};
use downburst_model::Sequence;

#[test]
fn numbers_given_after_the_backup_are_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    for n in 0..50 {
        store(&log, &format!("{n}"), &[n; 100]);
    }
    log.close().unwrap();
    drop(log);
    let backup = copy(dir.path());
    let (log, _) = open(dir.path(), small());
    let lost = (50..80).map(|n| store(&log, &format!("{n}"), &[n; 100])).last().unwrap();
    drop(log);

    let (log, recovery) = open(backup.path(), small());
    assert!(recovery.clean, "the backup itself can't know");
    assert_eq!(log.given_to(), Sequence(50));
    log.skip_to(lost).unwrap();
    assert!(log.given_to() > lost);
    assert_eq!(store(&log, "afterwards", b"x"), Sequence(lost.0 + 1));
    log.skip_to(Sequence(3)).unwrap();
    assert_eq!(store(&log, "next", b"y"), Sequence(lost.0 + 2), "it never goes back");
    assert_eq!(ids(&log).len(), 52);
}

#[test]
fn what_was_skipped_stays_skipped_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    store(&log, "one", b"1");
    log.close().unwrap();
    drop(log);
    let (log, _) = open(dir.path(), small());
    log.skip_to(Sequence(5_000)).unwrap();
    drop(log);
    let (log, _) = open(dir.path(), small());
    assert!(store(&log, "two", b"2") > Sequence(5_000));
}

#[test]
fn an_older_copy_goes_on_far_above_what_others_remember_once() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    store(&log, "one", b"1");
    let remembered = store(&log, "two", b"2");
    assert_eq!(log.go_on_above(remembered).unwrap(), None, "it holds what is remembered");
    log.close().unwrap();
    drop(log);
    let older = copy(dir.path());
    let (log, _) = open(dir.path(), small());
    let remembered = Sequence(remembered.0 + 3);
    let lost = (0..5).map(|n| store(&log, &format!("lost {n}"), &[n])).last().unwrap();
    drop(log);

    let (log, recovery) = open(older.path(), small());
    assert!(recovery.clean, "the copy itself can't know");
    let above = log.go_on_above(remembered).unwrap().unwrap();
    assert_eq!(above, Sequence(remembered.0 + 1_000_000_000));
    drop(log);
    let (log, _) = open(older.path(), small());
    assert_eq!(log.go_on_above(remembered).unwrap(), None, "a crash forgets nothing, and once is enough");
    let next = store(&log, "next", b"n");
    assert!(next > above && next > lost);
    assert_eq!(log.go_on_above(remembered).unwrap(), None);
    assert_eq!(store(&log, "and on", b"o"), Sequence(next.0 + 1));
}
