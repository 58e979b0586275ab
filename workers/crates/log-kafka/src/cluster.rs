//! The brokers, and the settings of all clients.

use std::{fs, time::Duration};

use downburst_log::LogError;
use rdkafka::{
    ClientConfig, ClientContext, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    config::FromClientConfigAndContext,
    consumer::{BaseConsumer, ConsumerContext},
    error::KafkaError,
};

use crate::{
    Settings,
    words::{Heard, explained},
};

/// The brokers of one hub.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    options: Vec<(&'static str, String)>,
}

impl Cluster {
    /// Refuses invalid settings; does not contact the brokers yet.
    pub(crate) fn new(settings: Settings) -> Result<Self, LogError> {
        let refused = |sentence: &str| Err(LogError::Store { sentence: sentence.to_owned() });
        if settings.servers.is_empty() || settings.prefix.is_empty() {
            return refused("shared_log names no servers or no prefix; set kafka.servers and kafka.prefix");
        }
        let security = settings.security;
        if cfg!(not(feature = "tls")) && security.protocol().ends_with("SSL") {
            return refused(
                "this node was built without TLS; build it with its feature tls, or set kafka.security",
            );
        }
        let mut options = vec![
            ("bootstrap.servers", settings.servers.clone()),
            ("client.id", "downburst-node".to_owned()),
            ("security.protocol", security.protocol().to_owned()),
            ("socket.keepalive.enable", "true".to_owned()),
            // If all brokers went away, they return at the addresses in the settings: these are queried after this
            // time.
            ("metadata.recovery.rebootstrap.trigger.ms", "10000".to_owned()),
            // Brokers that return are found again within a second.
            ("reconnect.backoff.max.ms", "1000".to_owned()),
        ];
        for (option, file) in [
            ("ssl.ca.location", &settings.ca_file),
            ("ssl.certificate.location", &settings.certificate_file),
            ("ssl.key.location", &settings.key_file),
        ] {
            options.extend(file.iter().map(|file| (option, file.display().to_string())));
        }
        if security.has_password() {
            options.push(("sasl.mechanism", settings.sasl_mechanism.clone()));
            options.push(("sasl.username", settings.sasl_user.clone()));
            options.push(("sasl.password", password(&settings)?));
        }
        Ok(Self { settings, options })
    }

    pub(crate) fn servers(&self) -> &str {
        &self.settings.servers
    }

    /// The topic of a feed.
    pub(crate) fn topic(&self, feed: &str) -> String {
        format!("{}.feed.{}", self.settings.prefix, escaped(feed))
    }

    /// Creates a client that reports about its connections to `heard`.
    pub(crate) fn client<T: FromClientConfigAndContext<Heard>>(
        &self,
        more: &[(&str, &str)],
        heard: &Heard,
    ) -> Result<T, LogError> {
        self.client_with(more, heard.clone(), heard)
    }

    /// As [`client`](Self::client), with a context of its own.
    pub(crate) fn client_with<C: ClientContext, T: FromClientConfigAndContext<C>>(
        &self,
        more: &[(&str, &str)],
        context: C,
        heard: &Heard,
    ) -> Result<T, LogError> {
        let mut config = ClientConfig::new();
        for (option, value) in &self.options {
            config.set(*option, value);
        }
        for (option, value) in more {
            config.set(*option, *value);
        }
        config
            .create_with_context(context)
            .map_err(|error| self.explained("take the settings", &error, heard))
    }

    pub(crate) fn admin(&self, heard: &Heard) -> Result<AdminClient<Heard>, LogError> {
        self.client(&[], heard)
    }

    /// A reader of committed records that is notified of the end of the partition.
    pub(crate) fn consumer(&self, heard: &Heard) -> Result<BaseConsumer<Heard>, LogError> {
        self.client(
            &[
                // Positions are kept in the copies, not in a group, but the client requires a name.
                ("group.id", &self.settings.prefix),
                ("enable.auto.commit", "false"),
                ("enable.partition.eof", "true"),
                ("isolation.level", "read_committed"),
                // The reader has to notice a position that Kafka no longer has.
                ("auto.offset.reset", "error"),
                ("fetch.wait.max.ms", "100"),
                // The prefetch limit, and the pause of a reader with a full queue before the next fetch.
                ("queued.max.messages.kbytes", "8192"),
                ("fetch.queue.backoff.ms", "5"),
            ],
            heard,
        )
    }

    pub(crate) fn explained(&self, action: &str, error: &KafkaError, heard: &Heard) -> LogError {
        explained(self.servers(), action, error, heard)
    }
}

impl ClientContext for Heard {
    fn error(&self, _: KafkaError, reason: &str) {
        self.hear(reason);
    }
}

impl ConsumerContext for Heard {}

/// An offset in the single partition of a topic.
pub(crate) fn at(topic: &str, offset: Offset) -> Result<TopicPartitionList, KafkaError> {
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, PARTITION, offset)?;
    Ok(place)
}

pub(crate) fn admin_options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(ANSWER)).operation_timeout(Some(ANSWER))
}

fn password(settings: &Settings) -> Result<String, LogError> {
    let Some(file) = &settings.sasl_password_file else {
        let sentence =
            "kafka.security is sasl, and kafka.sasl_password_file names no file; name the one with it";
        return Err(LogError::Store { sentence: sentence.to_owned() });
    };
    fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(|error| LogError::Store {
        sentence: format!("{} can't be read ({error}); correct it", file.display()),
    })
}

/// Kafka accepts letters, digits, dots, dashes and underscores; every other byte becomes `_` and two hexadecimal
/// digits.
fn escaped(feed: &str) -> String {
    feed.bytes().fold(String::new(), |text, byte| {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            text + char::from(byte).encode_utf8(&mut [0; 4])
        } else {
            text + &format!("_{byte:02x}")
        }
    })
}

pub(crate) const PARTITION: i32 = 0;
/// Healthy brokers answer within this time, even during the election of a leader.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use downburst_model::FeedName;

    use super::*;
    use crate::{Role, Security};

    #[test]
    fn every_feed_has_a_topic_of_its_own_with_a_name_that_kafka_takes() {
        let name = |feed: &str| escaped(FeedName::parse(feed).unwrap().as_str());
        assert_eq!(name("IDS|DDPLUS"), "IDS_7cDDPLUS");
        assert_ne!(name("A_7cB"), name("A|B"));
        let longest = format!("A{}", "|".repeat(63));
        assert!(name(&longest).len() < 249 - 50, "room for a prefix");
    }

    #[test]
    fn settings_that_cannot_be_right_are_refused_with_a_sentence() {
        let settings = Settings {
            servers: "a:1".to_owned(),
            prefix: "p".to_owned(),
            role: Role::Ingest,
            security: Security::SaslTls,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            sasl_mechanism: "PLAIN".to_owned(),
            sasl_user: "u".to_owned(),
            sasl_password_file: None,
            replication: 0,
            copy_mb: 0,
        };
        let sentence = |settings: Settings| Cluster::new(settings).err().unwrap().to_string();
        assert!(sentence(settings.clone()).contains("kafka.sasl_password_file names no file"));
        let missing = Settings { sasl_password_file: Some("/nowhere/password".into()), ..settings.clone() };
        assert!(sentence(missing).contains("/nowhere/password can't be read"));
        assert!(sentence(Settings { servers: String::new(), ..settings }).contains("set kafka.servers"));
    }
}
