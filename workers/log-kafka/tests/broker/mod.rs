//! The broker that the tests run against.

use std::{
    env, process,
    sync::atomic::{AtomicU64, Ordering},
};

use downburst_log_kafka::{Cluster, KafkaLog, KafkaOptions};
use downburst_model::{Epoch, FeedName};

/// Topics that no other test uses.
pub(crate) fn fresh_cluster() -> Cluster {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Ok(brokers) = env::var("DOWNBURST_KAFKA") else {
        panic!("DOWNBURST_KAFKA names no broker; `make test-cluster` starts one and runs this");
    };
    let prefix = format!("test-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
    Cluster { brokers, prefix, replicas: 1 }
}

/// Opens the one log of the cluster's prefix; each opening offers another epoch.
pub(crate) fn open(cluster: &Cluster) -> KafkaLog {
    static EPOCHS: AtomicU64 = AtomicU64::new(77);
    let feed = FeedName::parse("IDS|DDPLUS").unwrap();
    let epoch = Epoch(EPOCHS.fetch_add(1, Ordering::SeqCst));
    KafkaLog::open(cluster, feed, KafkaOptions::default(), epoch).unwrap()
}
