//! The product log on Kafka: [`ProductLog`](downburst_log::ProductLog) kept in two topics per feed.
//!
//! | topic (one partition each) | what a record holds |
//! |---|---|
//! | `PREFIX.FEED.products` | up to 512 KiB of a product's bytes; the key is sequence and number of the part |
//! | `PREFIX.FEED.index` | a product's description, its upstream stamp and where its bytes begin, in CBOR |
//!
//! An append is one transaction over both topics, so that a product is there with its description or not at all, and a
//! large product needs no more memory than a part. Sequences are counted in the records: offsets can't serve, because
//! markers of transactions take some. The transactional id names the feed: who opens the log fences the writer before.
//!
//! Opening reads the index topic, which holds no bytes, into memory: by calculation some 500 bytes per remembered product. Both topics
//! are kept without limit by Kafka; `retain` deletes their records from the front, and never the newest description, so
//! that epoch and head outlive every product.
//!
//! Limits: duplicates are known by id and content only. A log follows its own appends: it doesn't see those of the
//! writer that fenced it. A read costs a fetch from the broker, since no copy of the bytes is kept here.
// Deadlines of requests are measured on the monotonic clock; no product's stamp comes from it.
#![allow(clippy::disallowed_methods)]

mod append;
mod cluster;
mod fetch;
mod index;
mod log;
mod record;
mod retain;
mod writer;

pub use cluster::Cluster;
pub use log::{KafkaLog, KafkaOptions};
