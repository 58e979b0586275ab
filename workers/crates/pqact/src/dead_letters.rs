//! The dead letters of a site's actions: each is a product with the reason of its failure, kept until an operator
//! retries or drops it, or it exceeds the limits.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use downburst_log::disk::{self, File};
use downburst_model::{WallMicros, file_names, moment};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::task::{About, Task};

/// `DIR/failed`.
#[derive(Clone, Debug)]
pub(super) struct DeadLetters {
    directory: PathBuf,
}

/// Limits of the stored failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Since the failure.
    pub age: Duration,
    /// Of all letters and their products.
    pub bytes: u64,
    /// Number of letters: the report of each stays in memory, at most a kilobyte.
    pub letters: usize,
}

impl Keep {
    /// As many as a person could look through.
    pub const LETTERS: usize = 20_000;
}

/// The failure of an action on a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeadLetter {
    pub(super) at_us: WallMicros,
    pub(super) product: About,
    pub(super) task: Task,
    /// Number of attempts.
    pub(super) attempts: u32,
    pub(super) exit: Option<i32>,
    pub(super) error: String,
    /// False if the product had left the site's log.
    pub(super) has_bytes: bool,
}

impl DeadLetter {
    pub(super) fn new(at: WallMicros, product: About, task: Task, attempts: u32, failure: Failure) -> Self {
        let Failure { exit, sentence, .. } = failure;
        Self { at_us: at, product, task, attempts, exit, error: sentence, has_bytes: true }
    }
}

impl DeadLetters {
    pub(super) fn new(site: &Path) -> Self {
        Self { directory: site.join("failed") }
    }

    /// Stores a letter and its product, and returns its name; a repeated letter replaces the former one.
    pub(super) fn put(&self, letter: &DeadLetter, bytes: Option<&[u8]>) -> io::Result<String> {
        disk::make_directory(&self.directory)?;
        let name = name(letter);
        if let Some(bytes) = bytes {
            File::create(&self.data(&name))?.write_all_at(bytes, 0)?;
        }
        let aside = self.directory.join(format!(".{name}"));
        let text = disk::sealed(letter).map_err(io::Error::other)?;
        disk::replace_unsynced(&self.path(&name), &aside, &text)?;
        Ok(name)
    }

    /// All letters, the oldest product first; an unreadable letter is skipped and logged.
    pub(super) fn all(&self) -> io::Result<Vec<(String, DeadLetter)>> {
        let mut found = Vec::new();
        for name in self.names()? {
            match self.read(&name) {
                Ok(letter) => found.push((name, letter)),
                Err(error) => tracing::warn!(name, %error, "a failed product can't be read"),
            }
        }
        Ok(found)
    }

    /// The number of letters.
    pub(super) fn count(&self) -> usize {
        self.names().map_or(0, |names| names.len())
    }

    /// The names of all letters, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let listing = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listing => listing?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".json").filter(|name| !name.starts_with('.')).map(str::to_owned)
        };
        let mut names: Vec<String> = listing.filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<DeadLetter> {
        disk::unsealed(&fs::read_to_string(self.path(name))?).map_err(io::Error::other)
    }

    /// Removes letters with their products, the oldest first, until none is too old and all together are
    /// small enough. Returns the number removed.
    pub(super) fn let_go(&self, now: WallMicros, keep: Keep) -> io::Result<usize> {
        let mut lying: Vec<(WallMicros, u64, String)> =
            self.names()?.into_iter().filter_map(|name| self.weighed(name)).collect();
        lying.sort();
        let age_us = i64::try_from(keep.age.as_micros()).unwrap_or(i64::MAX);
        let mut bytes: u64 = lying.iter().map(|(_, bytes, _)| bytes).sum();
        let (mut left, mut gone) = (lying.len(), 0);
        for (at, weight, name) in lying {
            if now.0.saturating_sub(at.0) <= age_us && bytes <= keep.bytes && left <= keep.letters {
                break;
            }
            self.remove(&name)?;
            bytes = bytes.saturating_sub(weight);
            left -= 1;
            gone += 1;
        }
        Ok(gone)
    }

    /// The time of a letter's writing and its size with its product; `None` if it was removed in the meantime.
    fn weighed(&self, name: String) -> Option<(WallMicros, u64, String)> {
        let letter = fs::metadata(self.path(&name)).ok()?;
        let product = fs::metadata(self.data(&name)).map_or(0, |data| data.len());
        let at = letter.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = WallMicros(i64::try_from(at.as_micros()).unwrap_or(i64::MAX));
        Some((at, letter.len().saturating_add(product), name))
    }

    /// True if the letter is in the folder.
    #[cfg(test)]
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The product of a letter.
    pub(super) fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.data(name))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let _ = disk::remove_file(&self.data(name));
        disk::remove_file(&self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.product"))
    }
}

/// A letter's name: the same for every failure of one action on one product.
fn name(letter: &DeadLetter) -> String {
    let created = moment::creation_time(letter.product.created_us);
    let feed = file_names::encode(letter.product.feed.as_str());
    let rule = serde_json::to_vec(&letter.task).unwrap_or_default();
    let rule = blake3::hash(&rule).to_hex();
    let rule = rule.get(..8).unwrap_or_default();
    format!("{created}-{feed}-{:010}-{rule}", letter.product.log_sequence)
}

#[cfg(test)]
mod tests {
    use downburst_model::{FeedName, Origin, ProductId};

    use super::super::failure::Then;
    use super::super::task::{Shaping, Work};
    use super::*;

    /// Stores a letter with a product of 1,000 bytes that failed `at_s` seconds after 1970.
    fn put(letters: &DeadLetters, at_s: u64) -> String {
        let work = Work::Exec { command: vec!["false".to_owned()], wait: true };
        let task = Task { rule: "r:1".to_owned(), work, shape: Shaping::default(), limit_s: 1, attempts: 1 };
        let product = About {
            feed: FeedName::parse("IDS").unwrap(),
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("hub").unwrap(),
            created_us: WallMicros(0),
            epoch: None,
            sequence: at_s,
            log_sequence: at_s,
            feed_type: 0,
            size: 1_000,
            via: None,
            stamp: None,
            properties: None,
        };
        let failure = Failure::new(Then::GiveUp, "no");
        let letter = DeadLetter::new(WallMicros(0), product, task, 1, failure);
        let name = letters.put(&letter, Some(&[7; 1_000])).unwrap();
        let file = fs::File::options().write(true).open(letters.path(&name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(at_s)).unwrap();
        name
    }

    #[test]
    fn what_failed_long_ago_goes_and_then_the_oldest_until_the_rest_is_small_enough() {
        let root = tempfile::tempdir().unwrap();
        let letters = DeadLetters::new(root.path());
        let now = WallMicros(10_000_000_000);
        let keep = |seconds: u64, bytes: u64| Keep { age: Duration::from_secs(seconds), bytes, letters: 10 };
        assert_eq!(letters.let_go(now, keep(1, 1)).unwrap(), 0, "there is not even a folder");
        let names: Vec<String> = [100, 5_000, 9_000, 9_990].map(|at| put(&letters, at)).to_vec();
        assert_eq!(letters.let_go(now, keep(20_000, 1 << 30)).unwrap(), 0);
        assert_eq!(letters.let_go(now, keep(6_000, 1 << 30)).unwrap(), 1);
        assert!(
            !letters.has(&names[0]) && letters.bytes(&names[0]).is_err(),
            "the product goes with its letter"
        );
        assert_eq!(letters.let_go(now, keep(6_000, 3_500)).unwrap(), 1);
        assert_eq!(letters.names().unwrap().len(), 2);
        assert!(letters.has(&names[2]) && letters.has(&names[3]));
        assert_eq!(letters.let_go(now, keep(6_000, 0)).unwrap(), 2);
        for at in 9_000..9_012 {
            put(&letters, at);
        }
        assert_eq!(letters.let_go(now, keep(6_000, 1 << 30)).unwrap(), 2, "ten may lie here");
    }
}
