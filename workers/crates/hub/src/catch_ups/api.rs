use downburst_model::{FeedName, LegId, Micros, Sequence, SiteName};
use serde::Serialize;

use super::CatchUpLine;

/// A site that receives its live leg, and what the leg covers.
#[derive(Clone, Debug)]
pub struct Returned {
    /// The site.
    pub site: SiteName,
    /// The number of its session.
    pub session: u64,
    /// The feed.
    pub feed: FeedName,
    /// The live leg.
    pub live: LegId,
    /// The leg delivers everything behind this.
    pub covered_after: Sequence,
}

/// The facts of a hub that the decision needs.
pub trait CatchUpFacts {
    /// The settings of a live leg that runs; `None`: its sites do not catch up together.
    fn line(&self, feed: &FeedName, live: LegId) -> Option<CatchUpLine>;

    /// The end of what a site has settled of a feed without a gap; `None`: it may not have the stream, or its position
    /// is in another log.
    fn settled_to(&self, site: &SiteName, feed: &FeedName, live: LegId) -> Option<u64>;

    /// True if the site has settled all of these numbers.
    fn has(&self, site: &SiteName, feed: &FeedName, after: u64, to: u64) -> bool;

    /// The approximate number of product bytes in `after+1..=to` of a feed's log.
    fn bytes(&self, feed: &FeedName, after: u64, to: u64) -> u64;

    /// True while a member of the leg is away, or has returned and does not receive the leg yet.
    fn awaits_others(&self, feed: &FeedName, live: LegId) -> bool;

    /// The progress of a stream; `None`: it does not run.
    fn progress(&self, leg: LegId) -> Option<Progress>;

    /// The rate of a leg, in bits per second.
    fn rate_bps(&self, live: LegId) -> u64;
}

/// The progress of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All products up to here were sent once.
    pub sent_to: u64,
    /// UDP payload sent so far, with repairs.
    pub bytes: u64,
    /// The repairs among these.
    pub repair_bytes: u64,
}

/// A stream to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// Its number and group.
    pub line: CatchUpLine,
    /// Its feed.
    pub feed: FeedName,
    /// The live leg that it runs beside.
    pub live: LegId,
    /// It begins behind this number.
    pub after: Sequence,
    /// Its last number.
    pub to: Sequence,
}

/// A step for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum CatchUpStep {
    /// Start the stream; it waits for [`CatchUpStep::Go`] with its products. If it can't start, call
    /// [`CatchUps::failed`](super::CatchUps::failed).
    Start(StreamStart),
    /// Offer the stream to a session, and hold the feed's backfill until it is received.
    Offer {
        /// The stream.
        leg: LegId,
        /// The site.
        site: SiteName,
        /// The number of its session.
        session: u64,
        /// The feed.
        feed: FeedName,
        /// The stream's last number.
        to: Sequence,
    },
    /// Send the products.
    Go(LegId),
    /// Have the site leave the stream.
    Leave {
        /// The stream.
        leg: LegId,
        /// The site.
        site: SiteName,
        /// The number of its session.
        session: u64,
    },
    /// Send the site's backfill by its session.
    Release {
        /// The site.
        site: SiteName,
        /// The number of its session.
        session: u64,
        /// The feed.
        feed: FeedName,
    },
    /// End the stream.
    Stop(LegId),
    /// Report it to the agent.
    Report(CatchUpReport),
}

/// News of a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatchUpReport {
    /// The feed.
    pub feed: FeedName,
    /// The stream's number, as of a leg.
    pub leg: LegId,
    /// The live leg that it runs beside.
    pub live_leg: LegId,
    /// `began`, or `ended`.
    pub state: &'static str,
    /// Its sites: at the beginning those that were offered it, at the end those that received it.
    pub sites: Vec<SiteName>,
    /// The first number.
    pub from: Sequence,
    /// The last number.
    pub to: Sequence,
    /// The bytes that the sites lack of the range together; at the end 0 if none received it.
    pub lacked_bytes: u64,
    /// UDP payload of the stream, with repairs; 0 at the beginning.
    pub sent_bytes: u64,
    /// The bytes that one copy per site would have needed beyond the stream's; 0 at the beginning.
    pub saved_bytes: u64,
    /// One sentence, with the price by group and by unicast.
    pub sentence: String,
}

/// Time since an event.
pub(super) fn over(now: Micros, since: Option<Micros>, limit: Micros) -> bool {
    since.is_some_and(|since| now.since(since) >= limit)
}
