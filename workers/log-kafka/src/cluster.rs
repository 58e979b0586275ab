//! Names of topics and the settings of every client.

use std::{fmt::Write, time::Duration};

use downburst_log::LogError;
use downburst_model::FeedName;
use futures_executor::block_on;
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::BaseConsumer,
    error::{KafkaError, RDKafkaErrorCode},
};

/// The brokers, and how logs are kept there.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `host:port`, several with commas between.
    pub brokers: String,
    /// What the names of all topics begin with.
    pub prefix: String,
    /// Copies of each topic that is created.
    pub replicas: i32,
}

/// The topics of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    pub(crate) products: String,
    pub(crate) index: String,
    /// Whoever uses it last is the writer.
    pub(crate) transactional_id: String,
}

impl Topics {
    pub(crate) fn of(cluster: &Cluster, feed: &FeedName) -> Self {
        let name = format!("{}.{}", cluster.prefix, escaped(feed.as_str()));
        Self {
            products: format!("{name}.products"),
            index: format!("{name}.index"),
            transactional_id: format!("{name}.writer"),
        }
    }
}

impl Cluster {
    pub(crate) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("client.id", "downburst-log");
        config
    }

    pub(crate) fn admin(&self) -> Result<AdminClient<DefaultClientContext>, LogError> {
        self.config().create().map_err(remote("reach", &self.brokers))
    }

    /// A reader of committed records that is told the end of the partition.
    pub(crate) fn consumer(&self) -> Result<BaseConsumer, LogError> {
        let mut config = self.config();
        config
            .set("group.id", &self.prefix)
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "earliest")
            // A move to another place waits for the fetch under way, and that waits so long for what isn't there yet.
            .set("fetch.wait.max.ms", "10")
            // What is fetched ahead, and how long a reader that had enough of it waits before the next fetch.
            .set("queued.max.messages.kbytes", "4096")
            .set("fetch.queue.backoff.ms", "5");
        config.create().map_err(remote("read from", &self.brokers))
    }

    /// Creates what is missing. Kafka itself deletes nothing: its clock is not the products', and the head must stay.
    pub(crate) fn create(
        &self,
        admin: &AdminClient<DefaultClientContext>,
        topics: &Topics,
    ) -> Result<(), LogError> {
        let topic = |name| {
            NewTopic::new(name, 1, TopicReplication::Fixed(self.replicas))
                .set("cleanup.policy", "delete")
                .set("retention.ms", "-1")
                .set("retention.bytes", "-1")
                .set("unclean.leader.election.enable", "false")
        };
        let wanted = [topic(&topics.products), topic(&topics.index)];
        let created = block_on(admin.create_topics(&wanted, &admin_options()));
        for result in created.map_err(remote("create", &topics.products))? {
            match result {
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((name, code)) => return Err(remote("create", &name)(KafkaError::AdminOp(code))),
            }
        }
        Ok(())
    }
}

/// Deletes the records of a topic before an offset.
pub(crate) fn delete_before(
    admin: &AdminClient<DefaultClientContext>,
    topic: &str,
    offset: i64,
) -> Result<(), LogError> {
    let place = at(topic, offset).map_err(remote("shorten", topic))?;
    let deleted =
        block_on(admin.delete_records(&place, &admin_options())).map_err(remote("shorten", topic))?;
    deleted.elements().iter().try_for_each(|element| element.error()).map_err(remote("shorten", topic))
}

/// A place in the one partition of a topic.
pub(crate) fn at(topic: &str, offset: i64) -> Result<TopicPartitionList, KafkaError> {
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, PARTITION, Offset::Offset(offset))?;
    Ok(place)
}

/// Makes an error of the client one of the log.
pub(crate) fn remote(action: &'static str, place: &str) -> impl FnOnce(KafkaError) -> LogError {
    let place = place.to_owned();
    move |error| LogError::Remote { action, place, reason: error.to_string() }
}

fn admin_options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(REQUEST)).operation_timeout(Some(REQUEST))
}

/// Kafka takes letters, digits, dots, dashes and underscores; everything else becomes `_` and two hexadecimal digits.
fn escaped(feed: &str) -> String {
    feed.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            text.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(text, "_{byte:02x}");
        }
        text
    })
}

pub(crate) const PARTITION: i32 = 0;
/// A broker that starts, or elects a leader, answers within that.
pub(crate) const REQUEST: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feed_has_topics_of_its_own_with_names_that_kafka_takes() {
        let name = |feed: &str| escaped(FeedName::parse(feed).unwrap().as_str());
        assert_eq!(name("IDS|DDPLUS"), "IDS_7cDDPLUS");
        assert_ne!(name("A_7cB"), name("A|B"));
        assert_ne!(name("A.products"), name("A"));
        let longest = name(&"|".repeat(64));
        assert!(longest.len() + ".products".len() < 249 - 40, "room for a prefix");
    }
}
