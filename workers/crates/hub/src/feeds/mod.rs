//! Feeds: what the agent says of them, and the decisions of their readers and their one writer.
//!
//! A log is an argument: the driver reads it, appends to it and fetches from the shared store.
mod fetch_lines;
mod fetching;
mod heartbeats;
mod ingest;
mod lines;
mod read_cache;
mod rechecks;
mod reports;
mod sequence_checks;
mod stretch_reads;
mod wake_ups;
mod write_groups;

pub use fetch_lines::{FETCH_PRODUCTS_MAX, FetchAnswer, FetchEnd, FetchLine, StatedDigest, WantedLine};
pub use fetching::{fill_in, lacking};
pub use heartbeats::{AwaitedHeartbeats, Heartbeat};
pub use ingest::{DescribedIngest, Written, parsed_digest};
pub use lines::{DuplicateWord, DurabilityWord, FeedLine, Given, IngestLine};
pub use read_cache::ReadCache;
pub use rechecks::Rechecks;
pub use reports::{DamagePlace, cut_by_ceiling, damaged_product, rejected_unreadable, unreadable_log};
pub use sequence_checks::{BeyondLog, beyond_log, highest_of_copy, went_back};
pub use stretch_reads::{LogRead, StretchLog, read_stretch};
pub use wake_ups::{Waiter, Waiters};
pub use write_groups::{AT_HAND_BYTES, GROUP_PRODUCTS, WriteGroup};
