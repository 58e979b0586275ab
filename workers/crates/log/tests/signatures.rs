//! LDM's signatures as duplicate keys: given by an LDM, or computed from the bytes; found again after restarts and
//! changes of the rule.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use bytes::Bytes;
use common::{open, small};
use downburst_log::{
    Appended, DuplicateRule, Durability, FeedLog, LogOptions, NewProduct, ProductLog, contract,
};
use downburst_model::{LdmIdent, LdmStamp, Sequence, WallMicros};

fn signing() -> LogOptions {
    LogOptions { duplicate_rule: DuplicateRule::Signature, ..small() }
}

fn stamp(byte: u8) -> LdmStamp {
    LdmStamp {
        signature: [byte; 16],
        sequence: 7,
        feed_type: 1 << 23,
        ident: LdmIdent::new(vec![byte, 0xff]),
    }
}

/// One by one, or as a group, or with a disk that is synchronised: three ways into the log.
fn append(log: &FeedLog, way: usize, id: &str, ldm: Option<LdmStamp>, bytes: &[u8]) -> Appended {
    let product = NewProduct { ldm, ..contract::product(id).unwrap() };
    let clock = || WallMicros(5);
    match way {
        0 => log.append(product, &mut &bytes[..], &clock).unwrap(),
        _ => {
            let group = vec![(product, Bytes::copy_from_slice(bytes))];
            log.append_all(group, &clock).pop().unwrap().unwrap()
        }
    }
}

fn sequence(appended: &Appended) -> Sequence {
    match appended {
        Appended::Stored { sequence, .. } => *sequence,
        Appended::Duplicate { of } => panic!("a duplicate of {of:?}"),
    }
}

#[test]
fn equal_signatures_are_duplicates_whatever_else_differs() {
    for way in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), signing());
        let first = sequence(&append(&log, way, "a", Some(stamp(1)), b"one"));
        assert_eq!(append(&log, way, "b", Some(stamp(1)), b"two"), Appended::Duplicate { of: first });
        let second = sequence(&append(&log, way, "a", Some(stamp(2)), b"one"));
        assert_eq!(log.find_signature(&[2; 16]).unwrap(), Some(second));
        assert_eq!(log.find_signature(&[3; 16]).unwrap(), None);
        assert_eq!(log.entry(first).unwrap().unwrap().ldm, Some(stamp(1)));
        drop(log);
        let (log, _) = open(dir.path(), signing());
        assert_eq!(log.find_signature(&[1; 16]).unwrap(), Some(first), "known after a restart");
        assert_eq!(append(&log, way, "c", Some(stamp(2)), b"x"), Appended::Duplicate { of: second });
    }
}

#[test]
fn what_no_ldm_brought_is_signed_by_its_bytes() {
    // MD5 of "abc", from RFC 1321.
    let known = 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.to_be_bytes();
    for (way, durability) in [(0, Durability::Process), (1, Durability::Process), (0, Durability::Power)] {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), LogOptions { durability, ..signing() });
        let put = sequence(&append(&log, way, "put", None, b"abc"));
        let brought = LdmStamp { signature: known, ..stamp(0) };
        assert_eq!(append(&log, way, "brought", Some(brought), b"abc"), Appended::Duplicate { of: put });
        assert_eq!(log.entry(put).unwrap().unwrap().ldm, Some(LdmStamp::of_content(known)));
    }
}

#[test]
fn signatures_are_looked_for_by_their_rule_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), small());
    let first = sequence(&append(&log, 0, "a", Some(stamp(1)), b"one"));
    sequence(&append(&log, 0, "b", Some(stamp(1)), b"two"));
    assert_eq!(log.entry(first).unwrap().unwrap().ldm, Some(stamp(1)), "kept all the same");
    assert_eq!(log.find_signature(&[1; 16]).unwrap(), None);
    log.set_options(signing());
    assert!(log.find_signature(&[1; 16]).unwrap().is_some(), "known from then on");
    assert!(matches!(append(&log, 0, "c", Some(stamp(1)), b"three"), Appended::Duplicate { .. }));
}

/// An LDM's signature is no digest of the content: its pqing leaves out the starting line. Other sources have none.
#[test]
fn a_bulletin_of_an_ldm_and_of_another_source_is_one_by_its_content() {
    let options = LogOptions { duplicate_rule: DuplicateRule::ContentWithoutWmoStart, ..small() };
    let (three, five) = (b"\x01\r\r\n123\r\r\nSAUS KWBC", b"\x01\r\r\n00123\r\r\nSAUS KWBC");
    for way in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = open(dir.path(), options.clone());
        let by_ldm = sequence(&append(&log, way, "ldm", Some(stamp(1)), three));
        for _ in 0..2 {
            for content in [&three[..], five, b"SAUS KWBC"] {
                let of = by_ldm;
                assert_eq!(append(&log, way, "other", None, content), Appended::Duplicate { of });
                assert_eq!(append(&log, way, "ldm", Some(stamp(2)), content), Appended::Duplicate { of });
            }
            log.set_options(LogOptions { duplicate_rule: DuplicateRule::Id, ..small() });
            log.set_options(options.clone());
        }
        drop(log);
        let (log, _) = open(dir.path(), options.clone());
        assert_eq!(append(&log, way, "other", None, five), Appended::Duplicate { of: by_ldm }, "restarted");
        let by_other = sequence(&append(&log, way, "other", None, b"FTUS KWBC"));
        let again = append(&log, way, "ldm", Some(stamp(1)), b"FTUS KWBC");
        assert_eq!(again, Appended::Duplicate { of: by_other }, "an equal signature is nothing here");
        sequence(&append(&log, way, "ldm", Some(stamp(1)), b"FTUS KWBD"));
    }
}
