//! Catch-up by group: sites of a live multicast leg that return from the same outage get what they all lack by one
//! stream beside it (decision 75).
//!
//! The driver reports sites that returned, and calls [`CatchUps::look`] some times a second while there is work.
mod api;
mod line;
mod pace;
mod pricing;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downburst_model::{FeedName, LegId, Micros, SiteName};

pub use api::{CatchUpFacts, CatchUpReport, CatchUpStep, Progress, Returned, StreamStart};
pub use line::CatchUpLine;
pub use pace::catch_up_bps;
use stream::{Stream, shared};

/// The sites that may catch up together, and the running streams.
///
/// | state of a site | event | next |
/// |---|---|---|
/// | - | it joined its live leg | waits; its backfill is held |
/// | waits | it lacks little | backfill by its session |
/// | waits | a stream of its leg still has enough that it lacks | member of that stream |
/// | waits | all members of the leg are back, or its wait is over | member of a new stream, or backfill by session |
/// | member | it has the stream's range, or left it, or the stream is over | backfill of the rest by its session |
#[derive(Debug, Default)]
pub struct CatchUps {
    waiting: BTreeMap<(FeedName, SiteName), Waiting>,
    streams: BTreeMap<LegId, Stream>,
}

/// A site that waits for others.
#[derive(Clone, Debug)]
struct Waiting {
    session: u64,
    live: LegId,
    /// The live leg delivers everything behind this.
    covered_after: u64,
    since: Micros,
}

/// A site that waits, and the end of what it has without a gap.
#[derive(Clone, Debug)]
struct Lacking {
    site: SiteName,
    session: u64,
    settled_to: u64,
    covered_after: u64,
}

impl CatchUps {
    /// Notes a site that receives its live leg from here on and lacks earlier products.
    pub fn returned(&mut self, now: Micros, returned: Returned) {
        let Returned { site, session, feed, live, covered_after } = returned;
        let waiting = Waiting { session, live, covered_after: covered_after.0, since: now };
        self.waiting.insert((feed, site), waiting);
    }

    /// Notes that a site receives a stream, or receives it no longer.
    pub fn heard(&mut self, leg: LegId, session: u64, hears: bool) {
        if let Some(stream) = self.streams.get_mut(&leg) {
            stream.heard(session, hears);
        }
    }

    /// A session ended.
    pub fn gone(&mut self, session: u64) {
        self.waiting.retain(|_, waiting| waiting.session != session);
        self.streams.values_mut().for_each(|stream| stream.gone(session));
    }

    /// A stream could not begin.
    pub fn failed(&mut self, leg: LegId) {
        self.streams.remove(&leg);
    }

    /// True if a session was offered a stream, and true if its site receives it.
    pub fn member(&self, leg: LegId, session: u64) -> (bool, bool) {
        self.streams.get(&leg).map_or((false, false), |stream| stream.member(session))
    }

    /// The number of sites that receive each stream.
    pub fn sites_by_stream(&self) -> impl Iterator<Item = (LegId, u64)> {
        self.streams.iter().map(|(leg, stream)| (*leg, stream.hearing()))
    }

    /// True if there is nothing to look after.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.streams.is_empty()
    }

    /// Takes the steps that are due.
    pub fn look(&mut self, now: Micros, facts: &dyn CatchUpFacts) -> Vec<CatchUpStep> {
        let mut steps = Vec::new();
        for (leg, stream) in &mut self.streams {
            stream.look(now, *leg, facts, &mut steps);
        }
        self.streams.retain(|_, stream| !stream.is_over());
        for (feed, live) in self.waiting_for() {
            self.look_at(now, (&feed, live), facts, &mut steps);
        }
        steps
    }

    /// The feeds and live legs with waiting sites.
    fn waiting_for(&self) -> Vec<(FeedName, LegId)> {
        let mut all: Vec<_> =
            self.waiting.iter().map(|((feed, _), waiting)| (feed.clone(), waiting.live)).collect();
        all.sort();
        all.dedup();
        all
    }

    fn look_at(
        &mut self,
        now: Micros,
        (feed, live): (&FeedName, LegId),
        facts: &dyn CatchUpFacts,
        steps: &mut Vec<CatchUpStep>,
    ) {
        let Some(line) = facts.line(feed, live) else {
            return self.release_all((feed, live), steps);
        };
        self.release_those_that_lack_little((feed, live), &line, facts, steps);
        if let Some(stream) = self.streams.get_mut(&line.leg) {
            let lacking = lacking(&self.waiting, (feed, live), facts);
            for site in stream.admit(now, line.leg, lacking, line.least_bytes, facts, steps) {
                self.waiting.remove(&(feed.clone(), site));
            }
            return self.release_all((feed, live), steps);
        }
        let since = self.of(feed, live).map(|(_, waiting)| waiting.since).min();
        let waited = since.is_some_and(|since| now.since(since) >= Micros::from_millis(line.wait_ms));
        if since.is_none() || (!waited && facts.awaits_others(feed, live)) {
            return;
        }
        self.begin(now, (feed, live), &line, facts, steps);
        self.release_all((feed, live), steps);
    }

    /// Begins a stream, if two sites or more lack enough of the same.
    fn begin(
        &mut self,
        now: Micros,
        (feed, live): (&FeedName, LegId),
        line: &CatchUpLine,
        facts: &dyn CatchUpFacts,
        steps: &mut Vec<CatchUpStep>,
    ) {
        if self.streams.len() >= line.streams {
            return;
        }
        let bytes = |after: u64, to: u64| facts.bytes(feed, after, to);
        let lacking = lacking(&self.waiting, (feed, live), facts);
        let Some((after, to)) = shared(&lacking, line.least_bytes, bytes) else { return };
        let has_part = |one: &Lacking| bytes(after.max(one.settled_to), to) >= line.least_bytes;
        let members: Vec<Lacking> = lacking.into_iter().filter(has_part).collect();
        if members.len() < 2 {
            return;
        }
        for member in &members {
            self.waiting.remove(&(feed.clone(), member.site.clone()));
        }
        let stream = Stream::begin(now, (feed.clone(), live), (after, to), members, facts);
        steps.push(CatchUpStep::Start(stream.start(line)));
        stream.offers(line.leg, steps);
        self.streams.insert(line.leg, stream);
    }

    fn release_those_that_lack_little(
        &mut self,
        (feed, live): (&FeedName, LegId),
        line: &CatchUpLine,
        facts: &dyn CatchUpFacts,
        steps: &mut Vec<CatchUpStep>,
    ) {
        let all = lacking(&self.waiting, (feed, live), facts);
        let enough = |one: &Lacking| facts.bytes(feed, one.settled_to, one.covered_after) >= line.least_bytes;
        let kept: Vec<SiteName> = all.into_iter().filter(enough).map(|one| one.site).collect();
        let all: Vec<SiteName> = self.of(feed, live).map(|((_, site), _)| site.clone()).collect();
        for site in all.into_iter().filter(|site| !kept.contains(site)) {
            self.release(feed, site, steps);
        }
    }

    fn release_all(&mut self, (feed, live): (&FeedName, LegId), steps: &mut Vec<CatchUpStep>) {
        let all: Vec<SiteName> = self.of(feed, live).map(|((_, site), _)| site.clone()).collect();
        for site in all {
            self.release(feed, site, steps);
        }
    }

    fn release(&mut self, feed: &FeedName, site: SiteName, steps: &mut Vec<CatchUpStep>) {
        if let Some(Waiting { session, .. }) = self.waiting.remove(&(feed.clone(), site.clone())) {
            steps.push(CatchUpStep::Release { site, session, feed: feed.clone() });
        }
    }

    fn of(&self, feed: &FeedName, live: LegId) -> impl Iterator<Item = (&(FeedName, SiteName), &Waiting)> {
        self.waiting.iter().filter(move |((of, _), waiting)| of == feed && waiting.live == live)
    }
}

/// The waiting sites of a leg that may have the stream, and what they lack.
fn lacking(
    waiting: &BTreeMap<(FeedName, SiteName), Waiting>,
    (feed, live): (&FeedName, LegId),
    facts: &dyn CatchUpFacts,
) -> Vec<Lacking> {
    let of = waiting.iter().filter(|((of, _), waiting)| of == feed && waiting.live == live);
    let of = of.filter_map(|((_, site), waiting)| {
        let settled_to = facts.settled_to(site, feed, live)?;
        let Waiting { session, covered_after, .. } = *waiting;
        Some(Lacking { site: site.clone(), session, settled_to, covered_after })
    });
    of.collect()
}
