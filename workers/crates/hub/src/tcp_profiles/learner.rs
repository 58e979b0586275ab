//! The candidates that a node makes by itself, and the time for which one that failed is left alone.
use std::collections::BTreeMap;

use downburst_model::Micros;

use super::knobs::Knobs;

/// The congestion controls of this host.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    /// The names.
    pub(super) congestions: Vec<String>,
    /// The one that connections have without a profile.
    pub(super) usual: String,
}

/// Candidates that failed.
#[derive(Debug, Default)]
pub(super) struct Learner {
    held: BTreeMap<Idea, Hold>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Idea {
    Congestion(String),
    SendBuffer,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Micros,
    length: Micros,
}

impl Learner {
    /// The next candidate. `limiting_bytes` is the size of a site's send buffers together, where they limit it.
    pub(super) fn next(
        &self,
        now: Micros,
        applied: &Knobs,
        offer: &Offer,
        limiting_bytes: Option<u64>,
    ) -> Option<Knobs> {
        let present = applied.congestion.as_ref().unwrap_or(&offer.usual);
        let names = offer.congestions.iter().filter(|name| *name != present);
        let other = names.filter(|name| !FOR_DATA_CENTRES.contains(&name.as_str()));
        let mut other = other.filter(|name| self.is_free(now, &Idea::Congestion((*name).clone())));
        if let Some(name) = other.next() {
            return Some(Knobs { congestion: Some(name.clone()), ..applied.clone() });
        }
        let larger = limiting_bytes.filter(|_| self.is_free(now, &Idea::SendBuffer))?;
        let size = larger.saturating_mul(4).min(LARGEST_BUFFER_BYTES);
        let grows = size > larger && size > applied.send_buffer_bytes.unwrap_or(0);
        grows.then(|| Knobs { send_buffer_bytes: Some(size.max(LEAST_BUFFER_BYTES)), ..applied.clone() })
    }

    /// Leaves a candidate alone for a while, for longer each time.
    pub(super) fn failed(&mut self, now: Micros, candidate: &Knobs, before: &Knobs) {
        let mut ideas = Vec::new();
        if let Some(name) = candidate.congestion.clone().filter(|_| candidate.congestion != before.congestion)
        {
            ideas.push(Idea::Congestion(name));
        }
        if candidate.send_buffer_bytes != before.send_buffer_bytes {
            ideas.push(Idea::SendBuffer);
        }
        for idea in ideas {
            let last = self.held.get(&idea).map(|hold| hold.length);
            let length = last.map_or(FIRST_HOLD, |last| Micros(last.0.saturating_mul(2)).min(LONGEST_HOLD));
            self.held.insert(idea, Hold { until: now.plus(length), length });
        }
    }

    fn is_free(&self, now: Micros, idea: &Idea) -> bool {
        self.held.get(idea).is_none_or(|hold| hold.until <= now)
    }
}

/// DCTCP takes every mark for slight congestion and must not be used on the Internet (RFC 8257).
const FOR_DATA_CENTRES: [&str; 1] = ["dctcp"];

const LEAST_BUFFER_BYTES: u64 = 4_096;
const LARGEST_BUFFER_BYTES: u64 = 64 << 20;
const FIRST_HOLD: Micros = Micros::from_secs(30 * 60);
const LONGEST_HOLD: Micros = Micros::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Knobs {
        Knobs { congestion: Some(name.to_owned()), ..Knobs::default() }
    }

    #[test]
    fn congestion_controls_come_first_and_then_the_buffer_that_limits() {
        let congestions = ["reno", "dctcp", "cubic", "bbr"].map(str::to_owned).to_vec();
        let offer = Offer { congestions, usual: "cubic".to_owned() };
        let (mut learner, kernel, at) = (Learner::default(), Knobs::default(), Micros(5));
        let next = |learner: &Learner, applied: &Knobs| learner.next(at, applied, &offer, Some(1 << 20));
        assert_eq!(next(&learner, &kernel), Some(named("reno")));
        learner.failed(at, &named("reno"), &kernel);
        assert_eq!(next(&learner, &kernel), Some(named("bbr")), "never the one that connections have");
        learner.failed(at, &named("bbr"), &kernel);
        let larger = Knobs { send_buffer_bytes: Some(4 << 20), ..Knobs::default() };
        assert_eq!(next(&learner, &kernel), Some(larger.clone()));
        assert_eq!(learner.next(at, &kernel, &offer, None), None, "a buffer that does not limit stays");
        assert_eq!(learner.next(at, &kernel, &offer, Some(64 << 20)), None, "the limit is reached");
        learner.failed(at, &larger, &kernel);
        assert_eq!(next(&learner, &kernel), None);
        assert_eq!(next(&learner, &named("bbr")), Some(named("cubic")), "of another base, the usual one");
    }

    #[test]
    fn a_candidate_that_failed_is_tried_again_less_and_less_often() {
        let offer = Offer { congestions: vec!["bbr".to_owned()], usual: "cubic".to_owned() };
        let (mut learner, kernel, mut now) = (Learner::default(), Knobs::default(), Micros(0));
        let mut waited = Vec::new();
        for _ in 0..9 {
            learner.failed(now, &named("bbr"), &kernel);
            let failed = now;
            while learner.next(now, &kernel, &offer, None).is_none() {
                now = now.plus(Micros::from_secs(60));
            }
            waited.push(now.since(failed).0 / 60_000_000);
        }
        assert_eq!(waited, [30, 60, 120, 240, 480, 960, 1_440, 1_440, 1_440]);
    }
}
