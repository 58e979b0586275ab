//! Reading a feed's log for a session: a failed read is repeated, and never treated as an empty log.
use std::sync::Arc;
use std::time::Duration;

use downburst_log::LogError;
use downburst_model::{FeedName, Sequence};
use downburst_session::{Filter, Stretch};

use super::roster::{Command, Handle};
use super::{Hub, fetching};

/// A stretch of a log that a session asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) feed: FeedName,
    pub(super) after: Sequence,
    pub(super) filter: Arc<Filter>,
    /// How often it could not be read.
    failures: u32,
}

/// What became of reading it.
pub(super) enum Read {
    Done(Arc<Stretch>),
    /// Some of it has to be fetched.
    Elsewhere,
    /// It is tried again.
    Failed,
}

impl Wanted {
    pub(super) fn new(feed: FeedName, after: Sequence, filter: Arc<Filter>) -> Self {
        Self { feed, after, filter, failures: 0 }
    }

    /// A closed feed is no news, and not an empty log. A node that gives the feed up closes it while sites
    /// still ask.
    pub(super) fn read(&self, hub: &Hub) -> Read {
        let Some(open) = hub.feeds.find(&self.feed) else { return Read::Failed };
        match open.stretch(hub.clock.now(), self.after, &self.filter) {
            Ok(Some(stretch)) => Read::Done(stretch),
            Ok(None) => Read::Elsewhere,
            Err(error) => {
                self.failed(hub, &error);
                Read::Failed
            }
        }
    }

    /// Has what the copy no longer holds fetched; the session is told then, or asks once more.
    pub(super) fn fetch(self, hub: &Arc<Hub>, handle: Option<&Handle>) {
        let (hub, handle) = (Arc::clone(hub), handle.cloned());
        tokio::spawn(async move {
            match fetching::stretch(&hub, &self).await {
                Some(Ok(stretch)) => {
                    // A session that ended meanwhile needs nothing.
                    let _ = handle.map(|handle| handle.commands.send(Command::Fetched(stretch)));
                }
                Some(Err(error)) => {
                    self.failed(&hub, &error);
                    self.again_later(handle.as_ref());
                }
                None => self.again_later(handle.as_ref()),
            }
        });
    }

    fn failed(&self, hub: &Hub, error: &LogError) {
        if self.failures.is_multiple_of(FAILURES_TOLD) {
            say_unreadable(hub, &self.feed, error);
        }
    }

    /// The session asks once more in a moment. Without a member there is nobody to read for.
    pub(super) fn again_later(self, handle: Option<&Handle>) {
        let Some(commands) = handle.map(|handle| handle.commands.clone()) else { return };
        let again = Self { failures: self.failures.wrapping_add(1), ..self };
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN_AFTER).await;
            // A session that ended meanwhile needs nothing.
            let _ = commands.send(Command::Read(Box::new(again)));
        });
    }
}

pub(super) fn say_unreadable(hub: &Hub, feed: &FeedName, error: &LogError) {
    let advice = match error {
        LogError::Remote { .. } | LogError::Store { .. } => {
            "sites wait for products that only the brokers have; check the brokers"
        }
        _ => "sites wait for it; check the disk; `downburst log verify` lists the damage",
    };
    hub.fault(format!("the log of feed {feed} can't be read: {error}; {advice}"), Some(feed));
}

/// Long for a disk that is well, short for people who wait for it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A disk that stays ill is said each minute.
const FAILURES_TOLD: u32 = 60;
