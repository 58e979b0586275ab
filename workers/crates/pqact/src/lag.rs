//! Lines of actions that do not keep up with the site's log.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{FeedName, Sequence};

use super::task::About;

/// The positions of lines, and the log heads that they have still to reach.
#[derive(Default)]
pub(super) struct Lag {
    places: Mutex<BTreeMap<(String, FeedName), Place>>,
}

/// A line in a feed.
struct Place {
    done: Sequence,
    /// A head of the log that the line has not reached, and when it was seen.
    owed: Option<(Sequence, Instant)>,
    is_told: bool,
}

/// A line that does not keep up.
pub(super) struct Behind {
    /// The line's action.
    pub(super) rule: String,
    /// The next product.
    pub(super) next: About,
    pub(super) sentence: String,
}

/// A line that is too far behind in a feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) line: String,
    pub(super) feed: FeedName,
    pub(super) done: Sequence,
    pub(super) since: Duration,
    /// True if it was not reported before.
    pub(super) is_new: bool,
}

impl Lag {
    /// Records that a line has processed a feed up to `done`.
    pub(super) fn note(&self, line: &str, feed: &FeedName, done: Sequence) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry((line.to_owned(), feed.clone()));
        place.or_insert(Place { done, owed: None, is_told: false }).done = done;
    }

    /// Drops lines that no longer exist.
    pub(super) fn retain(&self, is_at_work: impl Fn(&str) -> bool) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|(line, _), _| is_at_work(line));
    }

    /// Returns the lines that have not reached an earlier head of the log after `patience`. Stamps of products play
    /// no part: a product that arrives late because the site was away is not the line's delay.
    pub(super) fn late(
        &self,
        heads: &BTreeMap<FeedName, Sequence>,
        now: Instant,
        patience: Duration,
    ) -> Vec<Late> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut late = Vec::new();
        for ((line, feed), place) in places.iter_mut() {
            let head = heads.get(feed).copied().unwrap_or_default();
            if place.owed.is_none_or(|(owed, _)| place.done >= owed) {
                place.owed = (place.done < head).then_some((head, now));
            }
            let since = place.owed.map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(since));
            let is_late = since >= patience && place.owed.is_some();
            if is_late {
                let is_new = !place.is_told;
                late.push(Late { line: line.clone(), feed: feed.clone(), done: place.done, since, is_new });
            }
            place.is_told = is_late;
        }
        late
    }
}

impl Late {
    /// The report for the hub and the log; `None` if there is no next product to read.
    pub(super) fn behind(
        &self,
        log: &FeedLog,
        about: impl FnOnce(&downburst_log::LogEntry) -> About,
    ) -> Option<Behind> {
        let head = log.head();
        let next = log.read(self.done, head, 1, 1).ok()?.entries.into_iter().next()?;
        let minutes = self.since.as_secs() / 60;
        let waiting = head.0.saturating_sub(self.done.0);
        let rule = self.line.replace('\0', " ");
        let sentence = format!(
            "it is {minutes} min behind the site's log; up to {waiting} products wait: make it faster, or narrow \
             its pattern"
        );
        Some(Behind { rule, next: about(&next), sentence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_late_when_what_the_log_held_long_ago_is_not_done() {
        let feed = FeedName::parse("IDS").unwrap();
        let heads = |head: u64| BTreeMap::from([(feed.clone(), Sequence(head))]);
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let patience = Duration::from_secs(60);
        let lag = Lag::default();
        lag.note("exec\0slow", &feed, Sequence(10));
        assert!(lag.late(&heads(10), at(0), patience).is_empty(), "it is done");
        assert!(lag.late(&heads(30), at(100), patience).is_empty(), "the log moved on a moment ago");
        lag.note("exec\0slow", &feed, Sequence(29));
        let late = lag.late(&heads(90), at(160), patience);
        assert_eq!(late.iter().map(|it| (it.done, it.is_new)).collect::<Vec<_>>(), [(Sequence(29), true)]);
        assert!(!lag.late(&heads(90), at(170), patience)[0].is_new, "it is said once");
        lag.note("exec\0slow", &feed, Sequence(30));
        assert!(
            lag.late(&heads(95), at(180), patience).is_empty(),
            "it has done what it owed, and owes the rest anew"
        );
        assert_eq!(lag.late(&heads(99), at(241), patience).len(), 1);
        lag.retain(|_| false);
        assert!(lag.late(&heads(99), at(500), patience).is_empty());
    }
}
