//! What the hub is told of actions that fail.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use downburst_model::{FeedName, Sequence};
use downburst_session::ActionFailed;

use super::letters::Letters;
use super::task::{About, Task};
use crate::site::DoneTo;

/// The newest failure of each feed that somebody has to look at.
pub(super) struct Board {
    shown: Mutex<BTreeMap<FeedName, Shown>>,
    reports: DoneTo,
}

struct Shown {
    failed: ActionFailed,
    until: Until,
}

/// What takes it away.
enum Until {
    /// Its letter is gone from the folder.
    Letter(String),
    /// The rule does something again.
    Done,
}

impl Board {
    /// Begins with what a former run left in the folder.
    pub(super) fn new(reports: DoneTo, letters: &Letters) -> Self {
        let board = Self { shown: Mutex::default(), reports };
        for (name, letter) in letters.all().unwrap_or_default() {
            board.failed(&name, &letter.task, &letter.product, letter.exit, &letter.error);
        }
        board
    }

    /// A product went to the folder.
    pub(super) fn failed(&self, letter: &str, task: &Task, about: &About, exit: Option<i32>, sentence: &str) {
        self.show(about, task, exit, sentence, Until::Letter(letter.to_owned()));
    }

    /// An action waits: there is no room.
    pub(super) fn waits(&self, task: &Task, about: &About, sentence: &str) {
        self.show(about, task, None, sentence, Until::Done);
    }

    /// What waited goes on.
    pub(super) fn done(&self, task: &Task, about: &About) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let over = shown
            .get(&about.feed)
            .is_some_and(|it| matches!(it.until, Until::Done) && it.failed.rule == task.rule);
        if over {
            shown.remove(&about.feed);
            self.reports.acts(&about.feed, None);
        }
    }

    /// Takes away what somebody looked at.
    pub(super) fn look(&self, letters: &Letters) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|feed, it| {
            let stays = !matches!(&it.until, Until::Letter(name) if !letters.has(name));
            if !stays {
                self.reports.acts(feed, None);
            }
            stays
        });
    }

    fn show(&self, about: &About, task: &Task, exit: Option<i32>, sentence: &str, until: Until) {
        let failed = ActionFailed {
            rule: cut(&task.rule),
            exit,
            last_error: cut(sentence),
            product: about.id.as_str().to_owned(),
            sequence: Sequence(about.sequence),
        };
        self.reports.acts(&about.feed, Some(failed.clone()));
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(about.feed.clone(), Shown { failed, until });
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TOLD_CHARS).collect()
}

const TOLD_CHARS: usize = 300;
