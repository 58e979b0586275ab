//! The failed actions that a site reports to its hub.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use downburst_model::{Epoch, FeedName, Sequence};
use downburst_session::ActionFailed;

use super::dead_letters::DeadLetters;
use super::lag::Behind;
use super::site::Site;
use super::task::{About, Task};

/// The open failures of each feed.
pub(super) struct FailureReports {
    feeds: Mutex<BTreeMap<FeedName, Open>>,
    site: Arc<dyn Site>,
}

/// The open failures of one feed.
#[derive(Default)]
struct Open {
    /// The failures in the folder of failed products, with the names of their letters; the newest last. Their number
    /// is limited by the folder's.
    letters: Vec<(String, Told)>,
    /// A rule that waits for room; cleared by the rule's next success.
    waits: Option<Told>,
    /// A dataset's record that is not announced.
    record: Option<Told>,
    /// A line that does not keep up.
    lags: Option<Told>,
}

/// A failure, with its product's place at the hub.
struct Told {
    rule: String,
    exit: Option<i32>,
    sentence: String,
    product: String,
    epoch: Option<Epoch>,
    sequence: Sequence,
}

impl FailureReports {
    /// Begins with the failures that a former run left in the folder.
    pub(super) fn new(site: Arc<dyn Site>, letters: &DeadLetters) -> Self {
        let failure_reports = Self { feeds: Mutex::default(), site };
        let mut found = letters.all().unwrap_or_default();
        found.sort_by_key(|(_, letter)| letter.at_us);
        for (name, letter) in found {
            failure_reports.failed(&name, &letter.task, &letter.product, letter.exit, &letter.error);
        }
        failure_reports
    }

    /// Adds a product that went to the folder; a repeated letter replaces the former one.
    pub(super) fn failed(&self, letter: &str, task: &Task, about: &About, exit: Option<i32>, sentence: &str) {
        self.change(&about.feed, |open| {
            open.letters.retain(|(name, _)| name != letter);
            open.letters.push((letter.to_owned(), Told::new(&task.rule, about, exit, sentence)));
        });
    }

    /// Records that an action waits for room.
    pub(super) fn waits(&self, task: &Task, about: &About, sentence: &str) {
        self.change(&about.feed, |open| open.waits = Some(Told::new(&task.rule, about, None, sentence)));
    }

    /// Ends the wait of a rule whose action succeeded.
    pub(super) fn done(&self, task: &Task, about: &About) {
        let mut feeds = self.locked();
        let over = feeds.get(&about.feed).and_then(|open| open.waits.as_ref());
        if over.is_some_and(|waits| waits.rule == cut(&task.rule)) {
            self.changed(&mut feeds, &about.feed, |open| open.waits = None);
        }
    }

    /// Records that the record of a dataset can't be announced, or no longer so.
    pub(super) fn record(&self, feed: &FeedName, rule: &str, dataset: &str, sentence: Option<&str>) {
        let told = sentence.map(|sentence| Told {
            rule: cut(rule),
            exit: None,
            sentence: cut(sentence),
            product: dataset.to_owned(),
            epoch: None,
            sequence: Sequence(0),
        });
        self.change(feed, |open| open.record = told);
    }

    /// Replaces the list of lines that do not keep up; `behind` has all of them.
    pub(super) fn lag(&self, behind: &[Behind]) {
        let mut feeds = self.locked();
        let mut lagging: BTreeMap<FeedName, Told> = BTreeMap::new();
        for it in behind {
            let told = lagging.entry(it.next.feed.clone());
            told.or_insert_with(|| Told::new(&it.rule, &it.next, None, &it.sentence));
        }
        let known: BTreeSet<FeedName> = feeds.keys().chain(lagging.keys()).cloned().collect();
        for feed in known {
            let lags = lagging.remove(&feed);
            if lags.is_some() || feeds.get(&feed).is_some_and(|open| open.lags.is_some()) {
                self.changed(&mut feeds, &feed, |open| open.lags = lags);
            }
        }
    }

    /// Closes failures whose letters have left the folder, as after an operator's retry or drop.
    pub(super) fn look(&self, letters: &DeadLetters) {
        let mut feeds = self.locked();
        if feeds.values().all(|open| open.letters.is_empty()) {
            return;
        }
        let Ok(lying) = letters.names() else { return };
        let is_gone = |name: &String| lying.binary_search(name).is_err();
        let of: Vec<FeedName> = feeds
            .iter()
            .filter(|(_, open)| open.letters.iter().any(|(name, _)| is_gone(name)))
            .map(|(feed, _)| feed.clone())
            .collect();
        for feed in of {
            self.changed(&mut feeds, &feed, |open| open.letters.retain(|(name, _)| !is_gone(name)));
        }
    }

    fn change(&self, feed: &FeedName, change: impl FnOnce(&mut Open)) {
        self.changed(&mut self.locked(), feed, change);
    }

    /// Changes the open failures of a feed, and notifies the hub if the report differs.
    fn changed(&self, feeds: &mut Feeds, feed: &FeedName, change: impl FnOnce(&mut Open)) {
        let open = feeds.entry(feed.clone()).or_default();
        let before = open.told();
        change(open);
        let after = open.told();
        if after.is_none() {
            feeds.remove(feed);
        }
        if before != after {
            self.site.report(feed, after);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Feeds> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The feed's report to the hub; `None` if no failure is open.
    fn told(&self) -> Option<ActionFailed> {
        let newest =
            self.waits.as_ref().or(self.letters.last().map(|(_, told)| told)).or(self.record.as_ref());
        let newest = newest.or(self.lags.as_ref())?;
        let mut others: Vec<Sequence> = self
            .letters
            .iter()
            .rev()
            .map(|(_, told)| told)
            .filter(|told| {
                told.epoch.is_some() && told.epoch == newest.epoch && told.sequence != newest.sequence
            })
            .take(ActionFailed::MOST_OTHERS)
            .map(|told| told.sequence)
            .collect();
        others.sort_unstable();
        others.dedup();
        let others_open = usize::from(self.waits.is_some()) + usize::from(self.record.is_some());
        Some(ActionFailed {
            rule: newest.rule.clone(),
            exit: newest.exit,
            last_error: newest.sentence.clone(),
            product: newest.product.clone(),
            sequence: newest.sequence,
            epoch: newest.epoch,
            count: (self.letters.len() + others_open).max(1) as u64,
            others,
        })
    }
}

impl Told {
    fn new(rule: &str, about: &About, exit: Option<i32>, sentence: &str) -> Self {
        Self {
            rule: cut(rule),
            exit,
            sentence: cut(sentence),
            product: about.id.as_str().to_owned(),
            epoch: about.epoch,
            sequence: Sequence(about.sequence),
        }
    }
}

type Feeds = BTreeMap<FeedName, Open>;

fn cut(text: &str) -> String {
    text.chars().take(TOLD_CHARS).collect()
}

const TOLD_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use downburst_log::FeedLog;
    use downburst_model::{Origin, ProductId, WallMicros};

    use std::path::Path;

    use downburst_model::Content;

    use super::super::dead_letters::DeadLetter;
    use super::super::failure::{Failure, Then};
    use super::super::task::{Shaping, Work};
    use super::*;

    /// A site without a hub.
    struct Unheard;

    impl Site for Unheard {
        fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
            Vec::new()
        }

        fn report(&self, _: &FeedName, _: Option<ActionFailed>) {}

        fn share(&self, _: &Content, _: &Path) -> bool {
            false
        }
    }

    fn unheard() -> Arc<dyn Site> {
        Arc::new(Unheard)
    }

    fn about(sequence: u64) -> About {
        About {
            feed: FeedName::parse("IDS").unwrap(),
            id: ProductId::parse(&format!("SAUS {sequence}")).unwrap(),
            origin: Origin::parse("hub").unwrap(),
            created_us: WallMicros(1_700_000_000_000_000),
            epoch: Some(Epoch(7)),
            sequence,
            log_sequence: sequence,
            feed_type: 0,
            size: 1,
            via: None,
            stamp: None,
            properties: None,
        }
    }

    fn task() -> Task {
        let work = Work::Exec { command: vec!["false".to_owned()], wait: true };
        Task { rule: "pqact.conf:5".to_owned(), work, shape: Shaping::default(), limit_s: 1, attempts: 1 }
    }

    fn fail(failure_reports: &FailureReports, letters: &DeadLetters, sequence: u64) -> String {
        let failure = Failure::new(Then::GiveUp, format!("no station {sequence}"));
        let letter = DeadLetter::new(WallMicros(sequence as i64), about(sequence), task(), 1, failure);
        let name = letters.put(&letter, Some(b"x")).unwrap();
        failure_reports.failed(&name, &letter.task, &letter.product, None, &letter.error);
        name
    }

    fn told(failure_reports: &FailureReports) -> Option<ActionFailed> {
        failure_reports.locked().get(&FeedName::parse("IDS").unwrap()).and_then(Open::told)
    }

    #[test]
    fn the_newest_failure_is_told_with_the_numbers_of_the_others_until_somebody_looked() {
        let root = tempfile::tempdir().unwrap();
        let letters = DeadLetters::new(root.path());
        let failure_reports = FailureReports::new(unheard(), &letters);
        let names: Vec<String> =
            [3, 4, 9].into_iter().map(|number| fail(&failure_reports, &letters, number)).collect();
        let newest = told(&failure_reports).unwrap();
        assert_eq!((newest.sequence, newest.epoch, newest.count), (Sequence(9), Some(Epoch(7)), 3));
        assert_eq!(newest.others, [Sequence(3), Sequence(4)]);
        letters.remove(&names[2]).unwrap();
        failure_reports.look(&letters);
        let left = told(&failure_reports).unwrap();
        assert_eq!((left.product.as_str(), left.count, left.others), ("SAUS 4", 2, vec![Sequence(3)]));
        assert_eq!(
            told(&FailureReports::new(unheard(), &letters)).unwrap().sequence,
            Sequence(4),
            "after a start"
        );
        letters.remove(&names[0]).unwrap();
        letters.remove(&names[1]).unwrap();
        failure_reports.look(&letters);
        assert_eq!(told(&failure_reports), None);
    }

    #[test]
    fn what_is_told_of_many_failures_stays_small() {
        let root = tempfile::tempdir().unwrap();
        let letters = DeadLetters::new(root.path());
        let failure_reports = FailureReports::new(unheard(), &letters);
        (1..=200).for_each(|number| drop(fail(&failure_reports, &letters, number)));
        let newest = told(&failure_reports).unwrap();
        assert_eq!((newest.count, newest.others.len()), (200, ActionFailed::MOST_OTHERS));
        assert_eq!(newest.others.last(), Some(&Sequence(199)));
    }

    #[test]
    fn a_rule_that_waits_for_room_goes_before_the_rest_until_it_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let letters = DeadLetters::new(root.path());
        let failure_reports = FailureReports::new(unheard(), &letters);
        fail(&failure_reports, &letters, 3);
        failure_reports.waits(&task(), &about(5), "no room");
        assert_eq!(
            told(&failure_reports).map(|it| (it.sequence, it.last_error, it.count)),
            Some((Sequence(5), "no room".to_owned(), 2))
        );
        failure_reports.done(&task(), &about(6));
        assert_eq!(told(&failure_reports).unwrap().sequence, Sequence(3));
    }

    #[test]
    fn a_line_that_lags_is_told_while_it_does() {
        let failure_reports =
            FailureReports::new(unheard(), &DeadLetters::new(tempfile::tempdir().unwrap().path()));
        let behind =
            Behind { rule: "pqact.conf:5".to_owned(), next: about(8), sentence: "12 wait".to_owned() };
        failure_reports.lag(&[behind]);
        assert_eq!(
            told(&failure_reports).map(|it| (it.sequence, it.last_error)),
            Some((Sequence(8), "12 wait".to_owned()))
        );
        failure_reports.lag(&[]);
        assert_eq!(told(&failure_reports), None);
    }
}
