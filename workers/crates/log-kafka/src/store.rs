//! The logs of all feeds on one cluster.

use std::sync::Arc;

use downburst_log::{LogError, Opened, SharedLogs, Wanted};

use crate::{KafkaLog, Settings, cluster::Cluster};

/// The feeds' logs on Kafka.
pub struct KafkaLogs {
    cluster: Cluster,
}

/// Reads the start job's settings for Kafka; does not contact the brokers before a feed is opened.
pub fn connect(said: &serde_json::Value) -> Result<Arc<dyn SharedLogs>, String> {
    let settings: Settings = serde_json::from_value(said.clone()).map_err(|error| {
        format!("shared_log can't be read: {error}; see the protocol of the node's lines")
    })?;
    Ok(Arc::new(KafkaLogs::new(settings).map_err(|error| error.to_string())?))
}

impl KafkaLogs {
    /// Refuses invalid settings.
    pub fn new(settings: Settings) -> Result<Self, LogError> {
        Ok(Self { cluster: Cluster::new(settings)? })
    }
}

impl SharedLogs for KafkaLogs {
    fn open(&self, wanted: Wanted) -> Result<Opened, LogError> {
        let (log, recovery) = KafkaLog::open(&self.cluster, wanted)?;
        Ok(Opened { log: Arc::new(log), recovery })
    }
}
