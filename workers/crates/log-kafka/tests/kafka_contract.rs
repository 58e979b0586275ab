//! The contract suite of the product log, on a real Kafka; `make test-cluster` starts one.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod broker;

use std::{cell::Cell, sync::Arc};

use downburst_log::{ProductLog, contract};
use downburst_log_kafka::Role;

#[test]
fn a_log_on_kafka_keeps_the_contract() {
    let base = tempfile::tempdir().unwrap();
    let count = Cell::new(0);
    let fresh = || -> Arc<dyn ProductLog> {
        count.set(count.get() + 1);
        let directory = base.path().join(count.get().to_string());
        broker::open(&broker::fresh_prefix(), Role::Ingest, &directory).log
    };
    contract::suite(&fresh).unwrap();
}

#[test]
fn a_log_on_kafka_is_the_same_when_it_is_opened_again() {
    let (base, prefix) = (tempfile::tempdir().unwrap(), broker::fresh_prefix());
    let open = || -> Arc<dyn ProductLog> { broker::open(&prefix, Role::Ingest, base.path()).log };
    contract::reopening(&open).unwrap();
}
