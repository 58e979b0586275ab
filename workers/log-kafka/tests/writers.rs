//! What the suites can't ask of every log: a second writer, products of many parts, the ceiling.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod broker;

use std::io::Read;

use bytes::Bytes;
use downburst_log::{Appended, LogError, ProductLog, Retained, Retention, contract};
use downburst_log_kafka::{Cluster, KafkaLog, KafkaOptions};
use downburst_model::{Epoch, FeedName, Sequence, WallMicros};

fn append(log: &KafkaLog, id: &str, bytes: &[u8]) -> Result<Appended, LogError> {
    log.append(contract::product(id).unwrap(), &mut &*bytes, &|| WallMicros(0))
}

fn contents(log: &KafkaLog) -> Vec<Option<Bytes>> {
    let batch = log.read(Sequence(0), Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap();
    batch.entries.into_iter().map(|entry| entry.bytes).collect()
}

#[test]
fn the_writer_that_opens_last_fences_the_one_before() {
    let cluster = broker::fresh_cluster();
    let first = broker::open(&cluster);
    append(&first, "one", b"1").unwrap();
    let second = broker::open(&cluster);
    append(&second, "two", b"2").unwrap();
    for _ in 0..2 {
        let refused = append(&first, "three", b"3").unwrap_err();
        assert!(matches!(refused, LogError::Fenced { .. }), "{refused}");
        assert!(refused.to_string().starts_with("another writer has taken over the log of feed IDS|DDPLUS"));
    }
    let large = vec![3; 2_000_000];
    assert!(matches!(append(&first, "large", &large), Err(LogError::Fenced { .. })));
    assert_eq!(contents(&first), [Some(Bytes::from_static(b"1"))], "it still reads what it knows");
    append(&second, "four", b"4").unwrap();
    let expected = [b"1", b"2", b"4"].map(|it| Some(Bytes::from_static(it)));
    assert_eq!(contents(&second), expected);
    assert_eq!(contents(&broker::open(&cluster)), expected);
}

#[test]
fn a_writer_that_ends_in_a_product_leaves_nothing_of_it() {
    let cluster = broker::fresh_cluster();
    let log = broker::open(&cluster);
    append(&log, "before", b"before").unwrap();
    let taken_over = std::cell::OnceCell::new();
    let mut takes_over = TakesOver { cluster: &cluster, left: 1_500_000, successor: &taken_over };
    let torn = log.append(contract::product("torn").unwrap(), &mut takes_over, &|| WallMicros(0));
    assert!(matches!(torn, Err(LogError::Fenced { .. })), "{torn:?}");
    let successor = taken_over.get().unwrap();
    let Appended::Stored { sequence, .. } = append(successor, "after", b"after").unwrap() else {
        panic!("it is no duplicate");
    };
    assert_eq!(sequence, Sequence(2), "what was undone took no sequence");
    let expected = [&b"before"[..], b"after"].map(|it| Some(Bytes::from_static(it)));
    assert_eq!(contents(successor), expected);
}

#[test]
fn products_of_many_parts_come_back_beside_small_ones() {
    let cluster = broker::fresh_cluster();
    let log = broker::open(&cluster);
    // Below, at and above one part and two.
    let sizes = [1, (512 << 10) - 1, 512 << 10, (512 << 10) + 1, 1 << 20, (1 << 20) + 1, 3_000_000, 2];
    let content =
        |n: usize, size: usize| Bytes::from((0..size).map(|at| (at * (n + 1) / 7) as u8).collect::<Vec<_>>());
    let given: Vec<Bytes> = sizes.iter().enumerate().map(|(n, size)| content(n, *size)).collect();
    for (n, bytes) in given.iter().take(4).enumerate() {
        append(&log, &format!("{n}"), bytes).unwrap();
    }
    let group = given
        .iter()
        .enumerate()
        .skip(4)
        .map(|(n, bytes)| (contract::product(&format!("{n}")).unwrap(), bytes.clone()));
    for appended in log.append_all(group.collect(), &|| WallMicros(0)) {
        assert!(matches!(appended, Ok(Appended::Stored { .. })), "{appended:?}");
    }
    let expected: Vec<Option<Bytes>> = given.iter().cloned().map(Some).collect();
    assert!(contents(&log) == expected && contents(&broker::open(&cluster)) == expected);
}

#[test]
fn a_duplicate_of_many_parts_is_undone() {
    let log = broker::open(&broker::fresh_cluster());
    let bytes = vec![5; 1_500_000];
    append(&log, "large", &bytes).unwrap();
    assert_eq!(append(&log, "large", &bytes).unwrap(), Appended::Duplicate { of: Sequence(1) });
    append(&log, "small", b"small").unwrap();
    assert_eq!(contents(&log).len(), 2);
}

#[test]
fn the_ceiling_takes_the_oldest_bytes_and_readers_of_the_next_opening_know() {
    let cluster = broker::fresh_cluster();
    let retention = Retention { hours: 24.0, bytes: 250 };
    let open = || {
        let options = KafkaOptions { retention, ..KafkaOptions::default() };
        KafkaLog::open(&cluster, FeedName::parse("F").unwrap(), options, Epoch(1)).unwrap()
    };
    let log = open();
    for n in 0..5 {
        append(&log, &format!("{n}"), &[n; 100]).unwrap();
    }
    let retained = log.retain(WallMicros(0)).unwrap();
    assert_eq!(retained.evicted, [(Sequence(1), Sequence(3))]);
    assert_eq!((retained.products, retained.products_cut_by_ceiling, retained.bytes), (3, 3, 300));
    assert_eq!(log.retain(WallMicros(0)).unwrap(), Retained::default(), "nothing more is due");
    let expected = [None, None, None, Some(Bytes::from(vec![3; 100])), Some(Bytes::from(vec![4; 100]))];
    assert_eq!(contents(&log), expected);
    let log = open();
    assert_eq!((log.first(), contents(&log).as_slice()), (Sequence(4), &expected[..]));
}

/// A source in the middle of which another writer opens the log.
struct TakesOver<'a> {
    cluster: &'a Cluster,
    left: usize,
    successor: &'a std::cell::OnceCell<KafkaLog>,
}

impl Read for TakesOver<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left < 800_000 {
            self.successor.get_or_init(|| broker::open(self.cluster));
        }
        let count = self.left.min(buffer.len()).min(100_000);
        buffer.iter_mut().take(count).for_each(|byte| *byte = 9);
        self.left -= count;
        Ok(count)
    }
}
