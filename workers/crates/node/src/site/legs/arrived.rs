//! The bytes that come to this host from its hubs, by every way: they share its line.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use downburst_vcmtp::SenderConfig;

/// A count that all connections of a site share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived(Arc<AtomicU64>);

impl Arrived {
    /// Adds bytes in Ethernet frames.
    fn frames(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the bytes of a datagram.
    pub(super) fn datagram(&self, bytes: usize) -> u64 {
        let bytes = (bytes as u64).saturating_add(SenderConfig::frame_overhead_bytes_of(false));
        self.frames(bytes);
        bytes
    }

    /// Adds bytes of a TCP stream: full segments of 1,448 bytes in frames of 1,514.
    pub(in crate::site) fn stream(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.frames(bytes.saturating_add(bytes / 22));
    }

    /// All bytes so far, in Ethernet frames.
    pub(in crate::site) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
