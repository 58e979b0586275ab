//! Feeds' logs on Kafka, shared by the nodes of a hub: [`SharedLogs`](downburst_log::SharedLogs) on one topic per feed.
//!
//! The topic `PREFIX.feed.NAME` has one partition. A record is of one of three kinds, which its key identifies:
//!
//! | record | contents |
//! |---|---|
//! | opening | the log's epoch, and the writer that appends from here on |
//! | part | up to 512 KiB of a large product, by upload and number |
//! | manifest | the log's description of a product, and the bytes of one that is not large |
//!
//! A product is stored once its manifest is committed, and its sequence is the manifest's offset plus one.
//! Transaction markers and parts take offsets too, so that sequences have gaps, as after an unclean end of a log
//! on one machine. Parts are sent outside of transactions: those without a manifest are ignored, so that a partial
//! product never appears, and no transaction is open for longer than a group of manifests takes. All parts of a
//! product lie between the manifest before it and its own, because a feed's writer sends one product after the
//! other.
//!
//! The transactional id names the feed: a node that opens the log to ingest fences the previous writer. A writer
//! that lost its connection looks for another writer's opening before it reopens the log, and stays away if there
//! is one.
//!
//! Every node keeps a copy in a [`FeedLog`](downburst_log::FeedLog) with the same sequences, and reads and serves
//! from that alone. The ingesting node compares products with its copy, has them numbered by the brokers, and
//! writes them into the copy; a sender follows the topic. A copy that is lost or of another epoch is rebuilt, as
//! far back as Kafka keeps records.
//!
//! Kafka deletes old records by itself, by the feed's hours and bytes. If it deletes all of them while no hub
//! ingests, the next writer begins another epoch.
// Deadlines of requests are measured on the monotonic clock; no product's stamp comes from it.
#![allow(clippy::disallowed_methods)]

mod cluster;
mod follower;
mod ingest;
mod locks;
mod log;
mod older;
mod reader;
mod record;
mod settings;
mod store;
mod topic;
mod words;
mod writer;

pub use log::KafkaLog;
pub use settings::{Role, Security, Settings};
pub use store::{KafkaLogs, connect};
