//! The contract suite of the product log, on a real Kafka; `make test-cluster` starts one.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod broker;

use std::sync::Arc;

use downburst_log::{ProductLog, contract};

#[test]
fn a_log_on_kafka_keeps_the_contract() {
    let fresh = || -> Arc<dyn ProductLog> { Arc::new(broker::open(&broker::fresh_cluster())) };
    contract::suite(&fresh).unwrap();
}

#[test]
fn a_log_on_kafka_is_the_same_when_it_is_opened_again() {
    let cluster = broker::fresh_cluster();
    let open = || -> Arc<dyn ProductLog> { Arc::new(broker::open(&cluster)) };
    contract::reopening(&open).unwrap();
}
