//! The contract suite on local files, with segments of every awkward size.
// Helpers of tests may fail as loudly as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use downburst_log::{Durability, FeedLog, LogOptions, ProductLog, contract};
use downburst_model::FeedName;
use tempfile::TempDir;

fn run(options: &LogOptions) {
    let directories: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());
    let fresh = || -> Arc<dyn ProductLog> {
        let dir = tempfile::tempdir().unwrap();
        let feed = FeedName::parse("IDS|DDPLUS").unwrap();
        let (log, recovery) = FeedLog::open(dir.path(), feed, options.clone(), 77).unwrap();
        assert!(recovery.created && recovery.clean);
        directories.lock().unwrap().push(dir);
        Arc::new(log)
    };
    contract::suite(&fresh).unwrap();
}

#[test]
fn opened_again() {
    let (dir, epochs) = (tempfile::tempdir().unwrap(), AtomicU64::new(77));
    let open = || -> Arc<dyn ProductLog> {
        let (feed, epoch) = (FeedName::parse("IDS|DDPLUS").unwrap(), epochs.fetch_add(1, Ordering::SeqCst));
        Arc::new(FeedLog::open(dir.path(), feed, LogOptions::default(), epoch).unwrap().0)
    };
    contract::reopening(&open).unwrap();
}

#[test]
fn with_large_segments() {
    run(&LogOptions::default());
}

#[test]
fn with_segments_of_a_few_products() {
    run(&LogOptions { segment_bytes: 8_192, sequence_block: 7, ..LogOptions::default() });
}

#[test]
fn with_a_body_for_every_product() {
    run(&LogOptions { body_bytes: 1, segment_bytes: 100_000, ..LogOptions::default() });
}

#[test]
fn with_power_durability() {
    run(&LogOptions { segment_bytes: 100_000, durability: Durability::Power, ..LogOptions::default() });
}
