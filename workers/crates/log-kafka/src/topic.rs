//! The topic of a feed: its creation, its extent, and its retention.

use std::time::{Duration, Instant};

use downburst_log::{LogError, LogOptions};
use futures_executor::block_on;
use rdkafka::{
    admin::{AdminClient, AlterConfig, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication},
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
};

use crate::{
    cluster::{ANSWER, Cluster, PARTITION, admin_options},
    words::{Heard, refused},
};

/// Offsets of the oldest record and of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) oldest: i64,
    pub(crate) end: i64,
}

/// Creates the topic if it is missing, and refuses one that can't hold a feed's log.
pub(crate) fn prepare(cluster: &Cluster, topic: &str, options: &LogOptions) -> Result<(), LogError> {
    let heard = Heard::default();
    let admin = cluster.admin(&heard)?;
    // The client's reports about its connections arrive while it is polled.
    let consumer = cluster.consumer(&heard)?;
    if partitions(cluster, &consumer, topic, &heard)?.is_none() {
        create(cluster, &admin, topic, options, &heard)?;
    }
    let deadline = Instant::now() + ANSWER;
    let found = loop {
        match partitions(cluster, &consumer, topic, &heard)? {
            Some(found) => break found,
            // Not every broker knows it immediately.
            None if Instant::now() < deadline => std::thread::sleep(AGAIN),
            None => return Err(refused(topic, "was created but is missing; check the brokers' logs")),
        }
    };
    check(cluster, &admin, topic, found, &heard)
}

/// As [`prepare`], for readers only: `false` if the topic does not exist yet.
pub(crate) fn exists(cluster: &Cluster, topic: &str) -> Result<bool, LogError> {
    let heard = Heard::default();
    let (admin, consumer) = (cluster.admin(&heard)?, cluster.consumer(&heard)?);
    match partitions(cluster, &consumer, topic, &heard)? {
        Some(found) => check(cluster, &admin, topic, found, &heard).map(|()| true),
        None => Ok(false),
    }
}

/// True if a broker answers promptly about the topic.
pub(crate) fn answers(cluster: &Cluster, topic: &str) -> bool {
    let heard = Heard::default();
    let Ok(consumer) = cluster.consumer(&heard) else { return false };
    consumer
        .fetch_metadata(Some(topic), AT_ONCE)
        .is_ok_and(|found| found.topics().iter().any(|one| one.name() == topic && one.error().is_none()))
}

/// Sets Kafka's retention to the hours and bytes of the feed's log.
pub(crate) fn keep(cluster: &Cluster, topic: &str, options: &LogOptions) -> Result<(), LogError> {
    let heard = Heard::default();
    let admin = cluster.admin(&heard)?;
    let wanted = limits(options);
    let mut alter = AlterConfig::new(ResourceSpecifier::Topic(topic));
    for (name, value) in &wanted {
        alter = alter.set(name, value);
    }
    let explained = |error| cluster.explained("change a topic's settings", &error, &heard);
    for result in block_on(admin.alter_configs(&[alter], &admin_options())).map_err(explained)? {
        result.map_err(|(_, code)| explained(KafkaError::AdminOp(code)))?;
    }
    Ok(())
}

/// Waits for a leader: a newly created topic has none.
pub(crate) fn extent(
    cluster: &Cluster,
    consumer: &BaseConsumer<Heard>,
    topic: &str,
    heard: &Heard,
) -> Result<Extent, LogError> {
    let deadline = Instant::now() + ANSWER;
    loop {
        match consumer.fetch_watermarks(topic, PARTITION, ANSWER) {
            Ok((oldest, end)) => return Ok(Extent { oldest, end }),
            Err(_) if Instant::now() < deadline => std::thread::sleep(AGAIN),
            Err(error) => return Err(cluster.explained("read the ends of a topic", &error, heard)),
        }
    }
}

/// The number of partitions; `None` if there is no such topic.
fn partitions(
    cluster: &Cluster,
    consumer: &BaseConsumer<Heard>,
    topic: &str,
    heard: &Heard,
) -> Result<Option<usize>, LogError> {
    let found = consumer.fetch_metadata(Some(topic), ANSWER);
    // The cause of broken connections is reported by polling, beside the error.
    let _ = consumer.poll(AGAIN);
    let found = found.map_err(|error| cluster.explained("list its topics", &error, heard))?;
    let partitions = found.topics().iter().find(|one| one.name() == topic).map(|one| one.partitions().len());
    Ok(partitions.filter(|partitions| *partitions > 0))
}

fn create(
    cluster: &Cluster,
    admin: &AdminClient<Heard>,
    topic: &str,
    options: &LogOptions,
    heard: &Heard,
) -> Result<(), LogError> {
    let copies = match cluster.settings.replication {
        0 => AS_THE_BROKERS_ARE,
        copies => copies,
    };
    let limits = limits(options);
    let mut wanted = NewTopic::new(topic, 1, TopicReplication::Fixed(copies));
    for (name, value) in &limits {
        wanted = wanted.set(name, value);
    }
    let explained = |error| cluster.explained(&format!("create the topic {topic}"), &error, heard);
    for result in block_on(admin.create_topics(&[wanted], &admin_options())).map_err(explained)? {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => return Err(explained(KafkaError::AdminOp(code))),
        }
    }
    Ok(())
}

fn check(
    cluster: &Cluster,
    admin: &AdminClient<Heard>,
    topic: &str,
    partitions: usize,
    heard: &Heard,
) -> Result<(), LogError> {
    let remedy = "remove it, so that it is recreated, or name another prefix (kafka.prefix)";
    if partitions != 1 {
        let what = format!("has {partitions} partitions, and a feed's products need one order; {remedy}");
        return Err(refused(topic, &what));
    }
    let explained = |error| cluster.explained("read a topic's settings", &error, heard);
    let asked = [ResourceSpecifier::Topic(topic)];
    let described = block_on(admin.describe_configs(&asked, &admin_options())).map_err(explained)?;
    let policy = |found: &ConfigResource| found.get("cleanup.policy").and_then(|entry| entry.value.clone());
    let policy = described.iter().find_map(|found| found.as_ref().ok().and_then(policy));
    match policy {
        Some(policy) if policy != "delete" => Err(refused(
            topic,
            &format!("has cleanup.policy {policy}, so that products would be lost; {remedy}"),
        )),
        _ => Ok(()),
    }
}

/// Records are deleted by whole segments of the topic, so that a product may stay an eighth longer, as in the
/// nodes' logs.
fn limits(options: &LogOptions) -> [(&'static str, String); 6] {
    let retention_ms = (options.retention.hours * 3_600e3).clamp(1_000.0, 1e15) as u64;
    let bytes = options.retention.bytes;
    [
        ("cleanup.policy", "delete".to_owned()),
        ("retention.ms", retention_ms.to_string()),
        ("retention.bytes", i64::try_from(bytes).unwrap_or(i64::MAX).to_string()),
        ("segment.ms", (retention_ms / 8).max(SHORTEST_SEGMENT_MS).to_string()),
        ("segment.bytes", (bytes / 8).clamp(SMALLEST_SEGMENT_BYTES, LARGEST_SEGMENT_BYTES).to_string()),
        // A replica that lacks the end would assign sequences twice.
        ("unclean.leader.election.enable", "false".to_owned()),
    ]
}

const AS_THE_BROKERS_ARE: i32 = -1;
const AGAIN: Duration = Duration::from_millis(20);
const AT_ONCE: Duration = Duration::from_secs(1);
const SHORTEST_SEGMENT_MS: u64 = 60_000;
/// Each has an index of 10 MB beside it on the brokers' disks while it is written.
const SMALLEST_SEGMENT_BYTES: u64 = 16 << 20;
const LARGEST_SEGMENT_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use downburst_log::Retention;

    use super::*;

    #[test]
    fn the_feeds_retention_becomes_the_topics() {
        let options =
            LogOptions { retention: Retention { hours: 2.0, bytes: 8 << 30 }, ..LogOptions::default() };
        let found = limits(&options);
        let value = |name: &str| found.iter().find(|(one, _)| *one == name).unwrap().1.clone();
        assert_eq!((value("retention.ms"), value("segment.ms")), ("7200000".to_owned(), "900000".to_owned()));
        assert_eq!(value("retention.bytes"), (8_u64 << 30).to_string());
        assert_eq!(value("segment.bytes"), (1_u64 << 30).to_string());
        let forever = Retention { hours: f64::INFINITY, bytes: u64::MAX };
        let found = limits(&LogOptions { retention: forever, ..LogOptions::default() });
        assert!(found.iter().all(|(_, value)| !value.starts_with('-')), "{found:?}");
    }
}
