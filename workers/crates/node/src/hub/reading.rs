//! Reading a feed's log for a session: what can't be read now is read again, and never passed over as if nothing were there.
use std::sync::Arc;
use std::time::Duration;

use downburst_log::LogError;
use downburst_model::{FeedName, Sequence};
use downburst_session::{Filter, HubInput};

use super::Hub;
use super::roster::{Command, Handle};

/// A stretch of a log that a session asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) feed: FeedName,
    pub(super) after: Sequence,
    filter: Arc<Filter>,
    /// How often it could not be read.
    failures: u32,
}

impl Wanted {
    pub(super) fn new(feed: FeedName, after: Sequence, filter: Arc<Filter>) -> Self {
        Self { feed, after, filter, failures: 0 }
    }

    /// `None`: the disk failed, which is said; or the feed is closed. What it had then is not nothing: a node that gives the feed up
    /// closes it while sites still ask.
    pub(super) fn read(&self, hub: &Hub) -> Option<HubInput> {
        let Self { feed, after, filter, failures } = self;
        let open = hub.feeds.find(feed)?;
        match open.stretch(hub.clock.monotonic(), *after, filter) {
            Ok(stretch) => Some(HubInput::Stretch(stretch)),
            Err(error) => {
                if failures % FAILURES_TOLD == 0 {
                    say_unreadable(hub, feed, &error);
                }
                None
            }
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
    let advice = "sites wait for it; look at the disk, `downburst log verify` says what is damaged";
    hub.fault(format!("the log of feed {feed} can't be read: {error}; {advice}"), Some(feed));
}

/// Long for a disk that is well, short for people who wait for it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A disk that stays ill is said each minute.
const FAILURES_TOLD: u32 = 60;
