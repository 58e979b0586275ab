//! Tests beyond the suites: several nodes, products of many parts, foreign topics.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::indexing_slicing)]

mod broker;

use std::{cell::OnceCell, io::Read, path::Path, time::Duration};

use broker::{Content, Node, fresh_prefix, open, open_with, settings};
use bytes::Bytes;
use downburst_log::{Appended, FeedLog, Lacking, LogError, LogOptions, ProductLog as _, contract};
use downburst_log_kafka::{Role, Settings};
use downburst_model::{FeedName, Sequence, WallMicros};
use futures_executor::block_on;
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    producer::{BaseProducer, BaseRecord, Producer as _},
};

#[test]
fn the_writer_that_opens_last_fences_the_one_before_which_then_follows_it() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let first = open(&prefix, Role::Ingest, &base.path().join("first"));
    first.store("one", b"1");
    let second = open(&prefix, Role::Ingest, &base.path().join("second"));
    assert_eq!(second.log.epoch(), first.log.epoch());
    second.store("two", b"2");
    for _ in 0..2 {
        let refused = first.append("three", b"3").unwrap_err();
        assert!(matches!(refused, LogError::Fenced { .. }), "{refused}");
    }
    assert!(matches!(first.append("large", &vec![3; 2_000_000]), Err(LogError::Fenced { .. })));
    let head = second.store("four", b"4");
    first.wait_for(head);
    assert_eq!(second.ids(), ["one", "two", "four"]);
    assert_eq!(first.contents(), second.contents());
}

/// As brokers do to a writer that stalled for longer than a transaction may take.
#[test]
fn a_writer_that_was_fenced_by_nobody_who_opened_the_log_goes_on() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let node = open(&prefix, Role::Ingest, &base.path().join("first"));
    node.store("one", b"1");
    fence(&prefix);
    node.store("two", b"2");
    fence(&prefix);
    let large = vec![3; 2_000_000];
    let refused = node.append("large", &large).unwrap_err();
    assert!(matches!(refused, LogError::Store { .. }), "whoever brought it keeps it: {refused}");
    node.store("large", &large);
    assert_eq!(node.ids(), ["one", "two", "large"]);
    let said = node.said.lock().unwrap().join("; ");
    assert_eq!(said.matches("products are stored again").count(), 2, "{said}");
    assert!(!said.contains("another hub ingests feed"), "{said}");
}

#[test]
fn a_writer_that_ends_in_a_product_leaves_nothing_of_it() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let node = open(&prefix, Role::Ingest, &base.path().join("first"));
    node.store("before", b"before");
    let taken_over = OnceCell::new();
    let mut takes_over = TakesOver {
        prefix: &prefix,
        directory: &base.path().join("second"),
        left: 1_900_000,
        successor: &taken_over,
    };
    let torn = node.log.append(contract::product("torn").unwrap(), &mut takes_over, &|| WallMicros(0));
    assert!(matches!(torn, Err(LogError::Fenced { .. })), "{torn:?}");
    let successor = taken_over.get().unwrap();
    let large = vec![7; 1_200_000];
    successor.store("after", &large);
    let expected = ["before".to_owned(), "after".to_owned()];
    assert_eq!(successor.ids(), expected);
    let sender = open(&prefix, Role::Sender, &base.path().join("sender"));
    sender.wait_for(successor.log.head());
    assert_eq!(sender.contents(), successor.contents());
}

#[test]
fn senders_have_the_same_products_under_the_same_numbers() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    ingest.store("early", b"early");
    let sender = open(&prefix, Role::Sender, &base.path().join("sender"));
    // Sizes below, at and above one part and two, and sizes that fit into a manifest.
    let part = 512 << 10;
    let sizes = [0, 1, part - 1, part, part + 1, 2 * part, 2 * part + 1, 3_000_000, 2];
    let content = |n: usize, size: usize| (0..size).map(|at| (at * (n + 1) / 7) as u8).collect::<Vec<_>>();
    for (n, size) in sizes.iter().enumerate() {
        ingest.store(&format!("{n}"), &content(n, *size));
    }
    let group = (0..700).map(|n| {
        let bytes = Bytes::from(content(n, n * 37 % 5_000 + 1));
        (contract::product(&format!("group {n}")).unwrap(), bytes)
    });
    for appended in ingest.log.append_all(group.collect(), &|| WallMicros(5)) {
        assert!(matches!(appended, Ok(Appended::Stored { .. })), "{appended:?}");
    }
    sender.wait_for(ingest.log.head());
    let expected = ingest.contents();
    assert_eq!(expected.len(), 1 + sizes.len() + 700);
    assert_eq!(expected[4].2.as_deref(), Some(&content(3, part)[..]));
    assert!(sender.contents() == expected, "the same");
    assert_eq!(sender.log.epoch(), ingest.log.epoch());
    let refused = sender.append("here", b"here").unwrap_err();
    assert!(matches!(refused, LogError::OnlyCopied { .. }), "{refused}");
    drop(sender);
    let anew = open(&prefix, Role::Sender, &base.path().join("anew"));
    anew.wait_for(ingest.log.head());
    assert!(anew.contents() == expected, "a copy that was lost is read again");
}

#[test]
fn what_a_short_copy_no_longer_has_is_fetched_as_long_as_the_brokers_keep_it() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    // More parts than the search before a product covers, small ones around it, and some of two and three parts.
    let sizes = [10, 9_000_000, 0, 600_000, 20_000, 1_200_000].into_iter().chain([40_000; 50]);
    for (n, size) in sizes.enumerate() {
        let bytes: Vec<u8> = (0..size).map(|at| (at * (n + 1) / 7) as u8).collect();
        ingest.store(&format!("{n}"), &bytes);
    }
    let short = Settings { copy_mb: 1, ..settings(&prefix, Role::Sender) };
    let sender = open_with(short, &base.path().join("sender")).unwrap();
    sender.wait_for(ingest.log.head());
    sender.log.retain(WallMicros(0)).unwrap();
    let (here, expected) = (sender.contents(), ingest.contents());
    let lacking = |contents: &[Content]| -> Vec<Lacking> {
        let gone = contents.iter().filter(|(_, _, bytes)| bytes.is_none());
        gone.map(|(sequence, ..)| Lacking { sequence: *sequence, size: 1 }).collect()
    };
    let wanted = lacking(&here);
    assert!((7..expected.len()).contains(&wanted.len()), "{} of {} evicted", wanted.len(), expected.len());
    assert!(lacking(&expected).is_empty(), "the node that ingests keeps all");
    let had = |sequences: &[Lacking]| -> Vec<Option<Bytes>> {
        let of = |one: &Lacking| expected.iter().find(|(sequence, ..)| *sequence == one.sequence).unwrap();
        sequences.iter().map(|one| of(one).2.clone()).collect()
    };
    // In order, then from the middle, then one by one from the end, which always needs a new position.
    assert!(sender.log.fetch(&wanted, u64::MAX).unwrap() == had(&wanted));
    assert!(sender.log.fetch(&wanted[3..6], u64::MAX).unwrap() == had(&wanted[3..6]));
    for one in wanted.iter().rev() {
        assert!(sender.log.fetch(&[*one], 0).unwrap() == had(&[*one]), "{one:?}");
    }
    assert_eq!(sender.log.fetch(&wanted, 2).unwrap().len(), 2, "as much as was asked for");
    delete_up_to(&prefix, wanted[4].sequence);
    sender.log.tend();
    let left = sender.log.fetch(&wanted, u64::MAX).unwrap();
    assert!(left[..5].iter().all(Option::is_none) && left[5..] == had(&wanted)[5..]);
}

#[test]
fn a_copy_that_ended_uncleanly_goes_on_where_it_was() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    for round in 0..3 {
        // A dropped copy was never closed.
        let sender = open(&prefix, Role::Sender, &base.path().join("sender"));
        let head = ingest.store(&format!("{round}"), &[round; 1_000]);
        sender.wait_for(head);
        assert_eq!(sender.contents(), ingest.contents());
    }
    drop(ingest);
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    assert_eq!(ingest.append("0", &[0; 1_000]).unwrap(), Appended::Duplicate { of: ingest.contents()[0].0 });
    ingest.store("3", b"3");
    assert_eq!(ingest.ids(), ["0", "1", "2", "3"]);
}

#[test]
fn a_duplicate_of_many_parts_is_left_out() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let node = open(&prefix, Role::Ingest, base.path());
    let bytes = vec![5; 1_500_000];
    let of = node.store("large", &bytes);
    assert_eq!(node.append("large", &bytes).unwrap(), Appended::Duplicate { of });
    node.store("small", b"small");
    assert_eq!(node.ids(), ["large", "small"]);
}

#[test]
fn topics_that_hold_no_log_are_refused_with_a_sentence() {
    let base = tempfile::tempdir().unwrap();
    let refused = |prefix: &str, role, part: &str| {
        let sentence =
            open_with(settings(prefix, role), &base.path().join(prefix)).err().unwrap().to_string();
        assert!(sentence.contains(part) && sentence.contains(prefix), "{sentence}");
    };
    let two = fresh_prefix();
    create(&two, NewTopic::new(&topic(&two), 2, TopicReplication::Fixed(1)));
    refused(&two, Role::Ingest, "has 2 partitions");
    refused(&two, Role::Sender, "has 2 partitions");
    let compacted = fresh_prefix();
    let named = topic(&compacted);
    create(&compacted, NewTopic::new(&named, 1, TopicReplication::Fixed(1)).set("cleanup.policy", "compact"));
    refused(&compacted, Role::Ingest, "has cleanup.policy compact");
    let foreign = fresh_prefix();
    create(&foreign, NewTopic::new(&topic(&foreign), 1, TopicReplication::Fixed(1)));
    send(&topic(&foreign), b"somebody's", b"order 4711");
    refused(&foreign, Role::Ingest, "holds a record at offset 0 that no Downburst of this release wrote");
    refused(&foreign, Role::Sender, "holds a record at offset 0");
    refused(&fresh_prefix(), Role::Sender, "holds no log yet");
}

#[test]
fn foreign_records_among_products_stop_a_sender_and_are_told() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let ingest = open(&prefix, Role::Ingest, &base.path().join("ingest"));
    let sender = open(&prefix, Role::Sender, &base.path().join("sender"));
    let head = ingest.store("one", b"1");
    sender.wait_for(head);
    send(&topic(&prefix), b"", b"rubbish");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !sender.said.lock().unwrap().iter().any(|said| said.contains("no Downburst of this release wrote"))
    {
        assert!(std::time::Instant::now() < until, "{:?}", sender.said.lock().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(sender.ids(), ["one"], "what was copied is served");
}

#[test]
fn brokers_that_are_not_there_are_told_in_a_sentence() {
    let base = tempfile::tempdir().unwrap();
    let open = |servers: &str| {
        let settings = Settings { servers: servers.to_owned(), ..settings("none", Role::Ingest) };
        open_with(settings, base.path()).err().unwrap().to_string()
    };
    // No process listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sentence = open(&format!("127.0.0.1:{port}"));
    assert!(sentence.contains("no server listens there; start it, or correct kafka.servers"), "{sentence}");
}

#[test]
fn a_log_that_is_no_copy_is_left_alone() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), fresh_prefix());
    let feed = FeedName::parse("IDS|DDPLUS").unwrap();
    let (own, _) = FeedLog::open(base.path(), feed, LogOptions::default(), 1).unwrap();
    own.append(contract::product("mine").unwrap(), &mut &b"mine"[..], &|| WallMicros(0)).unwrap();
    drop(own);
    let refused = open_with(settings(&prefix, Role::Ingest), base.path()).err().unwrap();
    assert!(matches!(refused, LogError::NoCopy { .. }), "{refused}");
}

fn topic(prefix: &str) -> String {
    format!("{prefix}.feed.IDS_7cDDPLUS")
}

/// Becomes the brokers' current writer, and announces nothing in the topic.
fn fence(prefix: &str) {
    let mut settings = client();
    settings.set("transactional.id", topic(prefix));
    let other: BaseProducer = settings.create().unwrap();
    other.init_transactions(Duration::from_secs(20)).unwrap();
}

fn client() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker::servers());
    config
}

fn create(prefix: &str, wanted: NewTopic<'_>) {
    let admin: AdminClient<DefaultClientContext> = client().create().unwrap();
    let made = block_on(admin.create_topics(&[wanted], &AdminOptions::new())).unwrap();
    assert!(made.iter().all(Result::is_ok), "{prefix}: {made:?}");
}

/// Makes the broker keep only records after a product.
fn delete_up_to(prefix: &str, sequence: Sequence) {
    let admin: AdminClient<DefaultClientContext> = client().create().unwrap();
    let mut place = TopicPartitionList::new();
    let offset = Offset::Offset(i64::try_from(sequence.0).unwrap());
    place.add_partition_offset(&topic(prefix), 0, offset).unwrap();
    block_on(admin.delete_records(&place, &AdminOptions::new())).unwrap();
}

fn send(topic: &str, key: &[u8], value: &[u8]) {
    let producer: BaseProducer = client().create().unwrap();
    producer
        .send(BaseRecord::to(topic).partition(0).key(key).payload(value))
        .map_err(|(error, _)| error)
        .unwrap();
    producer.flush(Duration::from_secs(60)).unwrap();
}

/// A source during which another node opens the log.
struct TakesOver<'a> {
    prefix: &'a str,
    directory: &'a Path,
    left: usize,
    successor: &'a OnceCell<Node>,
}

impl Read for TakesOver<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left < 800_000 {
            self.successor.get_or_init(|| open(self.prefix, Role::Ingest, self.directory));
        }
        let count = self.left.min(buffer.len()).min(100_000);
        buffer.iter_mut().take(count).for_each(|byte| *byte = 9);
        self.left -= count;
        Ok(count)
    }
}
