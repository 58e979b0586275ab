//! The folder of what failed: a product with the reason, until somebody has it done again or drops it.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::task::{About, Task};
use crate::log_tools::moment;
use downburst_model::WallMicros;

/// `DIR/failed`.
#[derive(Clone, Debug)]
pub(super) struct Letters {
    directory: PathBuf,
}

/// Why something was not done for a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Letter {
    pub(super) at_us: WallMicros,
    pub(super) product: About,
    pub(super) task: Task,
    /// How often it was tried.
    pub(super) attempts: u32,
    pub(super) exit: Option<i32>,
    pub(super) error: String,
    /// False where the product had left the site's log.
    pub(super) has_bytes: bool,
}

impl Letter {
    pub(super) fn new(at: WallMicros, product: About, task: Task, attempts: u32, failure: Failure) -> Self {
        let Failure { exit, sentence, .. } = failure;
        Self { at_us: at, product, task, attempts, exit, error: sentence, has_bytes: true }
    }
}

impl Letters {
    pub(super) fn new(site: &Path) -> Self {
        Self { directory: site.join("failed") }
    }

    /// Keeps a letter and its product; the same one again takes the place of the first. Answers its name.
    pub(super) fn put(&self, letter: &Letter, bytes: Option<&[u8]>) -> io::Result<String> {
        fs::create_dir_all(&self.directory)?;
        let name = name(letter);
        if let Some(bytes) = bytes {
            fs::write(self.data(&name), bytes)?;
        }
        let aside = self.directory.join(format!(".{name}"));
        fs::write(&aside, serde_json::to_vec_pretty(letter).map_err(io::Error::other)?)?;
        fs::rename(aside, self.path(&name))?;
        Ok(name)
    }

    /// All letters, the oldest first; what can't be read is left out with a word in the log.
    pub(super) fn all(&self) -> io::Result<Vec<(String, Letter)>> {
        let mut found = Vec::new();
        for name in self.names()? {
            match self.read(&name) {
                Ok(letter) => found.push((name, letter)),
                Err(error) => tracing::warn!(name, %error, "a letter can't be read"),
            }
        }
        Ok(found)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.names().map_or(0, |names| names.len())
    }

    fn names(&self) -> io::Result<Vec<String>> {
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

    fn read(&self, name: &str) -> io::Result<Letter> {
        serde_json::from_slice(&fs::read(self.path(name))?).map_err(io::Error::other)
    }

    /// True while the letter lies here.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The product of a letter.
    pub(super) fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.data(name))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let _ = fs::remove_file(self.data(name));
        fs::remove_file(self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.product"))
    }
}

/// The same for the same action and product, however often it fails.
fn name(letter: &Letter) -> String {
    let created = moment::creation_time(letter.product.created_us);
    let feed = crate::file_names::encode(letter.product.feed.as_str());
    let rule = serde_json::to_vec(&letter.task).unwrap_or_default();
    let rule = blake3::hash(&rule).to_hex();
    let rule = rule.get(..8).unwrap_or_default();
    format!("{created}-{feed}-{:010}-{rule}", letter.product.log_sequence)
}
