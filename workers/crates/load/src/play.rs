//! Plays a schedule: each product is a spool file with a line, and the hub's answer is its acknowledgement.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::agent::{ToHub, write};
use crate::content::Content;
use crate::fill::now;
use crate::probe::percentile;
use crate::schedule::{self, Due};

/// A schedule with its spool files already written, so that playing it costs almost nothing.
pub(crate) struct Prepared {
    due: Vec<Due>,
    spool: PathBuf,
}

/// The hub's answers to the player's lines.
#[derive(Default)]
pub(crate) struct Answers {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct Counts {
    answered: u64,
    refused: u64,
    /// The first refusal, as the hub sent it.
    refusal: String,
}

impl Prepared {
    /// Reads the schedule and writes the spool files.
    pub(crate) fn new(schedule: &Path, spool: &Path) -> Outcome<Self> {
        let due = schedule::read(schedule)?;
        std::fs::create_dir_all(spool)?;
        let (content, mut bytes) = (Content::new(), Vec::new());
        for (number, product) in due.iter().enumerate() {
            content.write(number as u64, product.bytes, &mut bytes);
            let path = spool_file(spool, number);
            std::fs::write(&path, &bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Self { due, spool: spool.to_owned() })
    }

    /// Number of products.
    pub(crate) fn products(&self) -> usize {
        self.due.len()
    }

    /// Sends every line when it is due, with at most `window` lines unanswered; returns after the last answer.
    pub(crate) fn play(&self, to_hub: &ToHub, answers: &Answers, window: u64) -> Outcome<Value> {
        answers.forget();
        let (began, began_us) = (Instant::now(), now());
        let (mut late_us, mut lines) = (Vec::with_capacity(self.due.len()), Vec::new());
        let mut sent = 0;
        while let Some(next) = self.due.get(sent) {
            wait_until(began, next.at_us);
            answers.wait(Duration::MAX, |counts| sent as u64 - counts.answered < window)?;
            lines.clear();
            let elapsed_us = micros(began.elapsed());
            let room = window.saturating_sub(sent as u64 - answers.counts().answered).min(LINES_AT_ONCE);
            for product in self.due.iter().skip(sent).take(usize::try_from(room)?) {
                if product.at_us > elapsed_us {
                    break;
                }
                late_us.push(elapsed_us - product.at_us);
                lines.extend_from_slice(self.line(sent, product).as_bytes());
                sent += 1;
            }
            write(to_hub, &lines)?;
        }
        let counts = answers.wait(PATIENCE, |counts| counts.answered == sent as u64)?;
        Ok(json!({
            "products": sent, "bytes": self.due.iter().map(|due| due.bytes).sum::<usize>(),
            "began_us": began_us, "ended_us": now(), "refused": counts.refused, "refusal": counts.refusal,
            "late_p99_us": percentile(&mut late_us, 99), "late_worst_us": percentile(&mut late_us, 100),
        }))
    }

    fn line(&self, number: usize, due: &Due) -> String {
        let job = json!({
            "id": FIRST_ID + number as u64, "do": "ingest", "path": spool_file(&self.spool, number),
            "feed": due.feed, "product_id": due.id, "remove": true,
        });
        format!("{job}\n")
    }
}

impl Answers {
    /// Counts a line of the hub if it answers the player.
    pub(crate) fn take(&self, line: &str) -> bool {
        let Some(is_ok) = answer_to_player(line) else { return false };
        let mut counts = self.lock();
        counts.answered += 1;
        if !is_ok {
            counts.refused += 1;
            if counts.refusal.is_empty() {
                line.trim().clone_into(&mut counts.refusal);
            }
        }
        drop(counts);
        self.changed.notify_one();
        true
    }

    fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn forget(&self) {
        *self.lock() = Counts::default();
    }

    fn wait(&self, patience: Duration, enough: impl Fn(&Counts) -> bool) -> Outcome<Counts> {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |counts| !enough(counts));
        let (counts, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(
                format!("the hub answered {} lines and then none for {patience:?}", counts.answered).into()
            );
        }
        Ok(counts.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if the hub accepted, none unless this line answers one of the player's. Other lines are not parsed further.
fn answer_to_player(line: &str) -> Option<bool> {
    let rest =
        line.strip_prefix("{\"answer\":").or_else(|| line.split_once(",\"answer\":").map(|it| it.1))?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    (digits.parse::<u64>().ok()? >= FIRST_ID).then(|| line.contains("\"ok\":true"))
}

/// Sleeps without interruption; lines that become due during the sleep are sent together.
fn wait_until(began: Instant, at_us: u64) {
    let left = Duration::from_micros(at_us).saturating_sub(began.elapsed());
    if !left.is_zero() {
        std::thread::sleep(left.max(SHORTEST_SLEEP));
    }
}

fn spool_file(spool: &Path, number: usize) -> PathBuf {
    spool.join(format!("load-{number}"))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Above any number that an agent reaches, below the limit of exact integers in JavaScript.
const FIRST_ID: u64 = 1 << 50;
/// A wake-up per product at 10,000/s would itself be a load.
const SHORTEST_SLEEP: Duration = Duration::from_micros(500);
/// About the size of a pipe.
const LINES_AT_ONCE: u64 = 256;
/// Timeout of the last answers; a product of a gigabyte takes long.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_others_are_left_alone() {
        let own = format!("{{\"answer\":{},\"ok\":true,\"sequence\":4}}", FIRST_ID + 1);
        assert_eq!(answer_to_player(&own), Some(true));
        let refused = format!("{{\"code\":\"io\",\"answer\":{FIRST_ID},\"ok\":false}}");
        assert_eq!(answer_to_player(&refused), Some(false));
        for other in ["{\"answer\":3,\"ok\":true}", "{\"event\":\"traffic\"}", "", "{\"answer\":x}"] {
            assert_eq!(answer_to_player(other), None, "{other}");
        }
    }

    #[test]
    fn refusals_are_counted_and_the_first_is_kept() {
        let answers = Answers::default();
        for (ok, code) in [(true, ""), (false, "first"), (false, "second")] {
            assert!(answers.take(&format!("{{\"answer\":{FIRST_ID},\"code\":\"{code}\",\"ok\":{ok}}}\n")));
        }
        let counts = answers.counts();
        assert_eq!((counts.answered, counts.refused), (3, 2));
        assert!(counts.refusal.contains("first"));
        answers.forget();
        assert_eq!(answers.counts().answered, 0);
    }

    #[test]
    fn a_hub_that_stops_answering_is_told_of() {
        let error = Answers::default().wait(Duration::from_millis(1), |counts| counts.answered == 1);
        assert!(error.err().unwrap().to_string().contains("answered 0 lines"));
    }

    #[test]
    fn spool_files_and_lines_say_what_the_schedule_says() {
        let directory = tempfile::tempdir().unwrap();
        let schedule = directory.path().join("schedule");
        std::fs::write(&schedule, "0 F 30 first\n10 G 0 second \"quoted\"\n").unwrap();
        let prepared = Prepared::new(&schedule, &directory.path().join("spool")).unwrap();
        assert_eq!(prepared.products(), 2);
        let line: Value = serde_json::from_str(&prepared.line(1, &prepared.due[1])).unwrap();
        assert_eq!(
            (line["feed"].as_str(), line["product_id"].as_str()),
            (Some("G"), Some("second \"quoted\""))
        );
        assert_eq!(std::fs::read(line["path"].as_str().unwrap()).unwrap(), b"");
        assert_eq!(std::fs::metadata(spool_file(&prepared.spool, 0)).unwrap().len(), 30);
    }
}
