//! The hub's interface for the LDM gateway.
use std::path::Path;
use std::sync::Arc;

use downburst_hub::SiteLine;
use downburst_hub::feeds::Written;
use downburst_ldm_gateway as gateway;
use downburst_ldm_gateway::{LdmLine, LogListener, Product, ProductBytes, Sent, Writing};
use downburst_log::{FeedLog, LogError};
use downburst_model::{Class, FeedName, LegId};
use serde_json::Value;
use tokio::sync::oneshot;

use super::Hub;
use super::feed_writer::{Done, Spooled, Write};
use super::feeds::Feed;
use super::reading::say_unreadable;
use super::wake_ups::LogListener as Registration;
use crate::clock::Clock;
use crate::lines::{Event, Failure};

impl Hub {
    /// Requests, serves and accepts as the line specifies; does all that it can, and returns the first failure.
    pub(super) async fn reconcile_ldm(self: &Arc<Self>, line: LdmLine) -> Result<Value, Failure> {
        let done = self.sources.ldm.reconcile(Arc::<Self>::clone(self), line).await;
        done.map_err(|failure| Failure::new(failure.code, failure.sentence))
    }
}

impl gateway::Hub for Hub {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn data_dir(&self) -> &Path {
        &self.start.data_dir
    }

    fn origin(&self) -> &str {
        &self.start.origin
    }

    fn feeds(&self) -> Vec<Arc<dyn gateway::Feed>> {
        self.feeds.all().into_values().map(|feed| feed as Arc<dyn gateway::Feed>).collect()
    }

    fn sites(&self) -> Vec<SiteLine> {
        self.roster.all()
    }

    fn tell(&self, event: gateway::Event) {
        self.event(&event_of(event));
    }

    fn fault(&self, sentence: String) {
        self.fault(sentence, None);
    }

    fn unreadable(&self, feed: &FeedName, error: &LogError) {
        say_unreadable(self, feed, error);
    }

    fn count_wire(&self, bytes: usize) {
        self.counters.wire(bytes);
    }

    fn count_sent(&self, sent: &Sent) {
        let Sent { feed, leg, products, bytes, wire_bytes } = sent;
        let wire_bytes = usize::try_from(*wire_bytes).unwrap_or(usize::MAX);
        self.counters.session_bytes(feed, *leg, wire_bytes, false);
        self.counters.sent(feed, *leg, *products, *bytes);
    }
}

impl gateway::Feed for Feed {
    fn log(&self) -> &FeedLog {
        &self.log
    }

    fn class(&self) -> Class {
        self.class()
    }

    fn largest_bytes(&self) -> u64 {
        self.largest_bytes()
    }

    fn unicast_leg(&self) -> LegId {
        self.unicast_leg()
    }

    fn types(&self) -> Option<(String, Option<String>)> {
        let line = self.line();
        Some((line.ldm_feed_type?, line.ldm_pattern))
    }

    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) -> Box<dyn LogListener> {
        Box::new(self.wake_ups.register(wake))
    }

    fn write(&self, product: Product) -> Writing {
        let Product { id, origin, created, stamp, bytes } = product;
        let bytes = match bytes {
            ProductBytes::AtHand(bytes) => Spooled::AtHand(bytes),
            ProductBytes::File(path) => Spooled::File { path, remove: true },
        };
        let (done, written) = oneshot::channel();
        let (created, ldm, done) = (Some(created), Some(stamp), Done::Told(done));
        self.write(Write { bytes, id, origin, created, digest: None, ldm, properties: None, done });
        Box::pin(async {
            let written = written.await.ok()?;
            let failed = |failure: Failure| gateway::Failure { code: failure.code, sentence: failure.error };
            Some(written.map(told).map_err(failed))
        })
    }
}

impl LogListener for Registration {
    fn take(&self) -> bool {
        self.take()
    }
}

fn told(written: Written) -> gateway::Written {
    match written {
        Written::Stored(info) => gateway::Written::Stored { bytes: info.size },
        Written::Duplicate { .. } => gateway::Written::Duplicate,
    }
}

/// The agent's line about an event of the gateway.
fn event_of(event: gateway::Event) -> Event {
    match event {
        gateway::Event::Source { source, upstream, state, mode, reason } => {
            Event::LdmSource { source, upstream, state, mode, reason }
        }
        gateway::Event::Peer { peer, site, state, what, reason } => {
            Event::LdmPeer { peer, site, state, what, reason }
        }
        gateway::Event::Violation { peer, source, site, sentence } => {
            Event::LdmViolation { peer, source, site, sentence }
        }
        gateway::Event::Rtstats { line } => Event::Rtstats { line },
    }
}
