//! Old files: walks the directories of scour's rules at intervals.
mod walk;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use downburst_actions::{Problem, Read, ScourRule, scour, yaml};

use super::active_rules;
use super::notifier::Notifier;
use super::stop::Stop;
pub(super) use walk::{Scoured, clear};

/// The settings of a site's removal of old files.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Files of rules; none: no file is removed.
    pub files: Vec<PathBuf>,
    /// The base of relative directories; absent: `data` in the site's directory.
    pub directory: Option<PathBuf>,
    /// The interval between walks.
    pub every: Duration,
}

/// A thread that removes old files.
pub struct Scouring {
    rules: Arc<Mutex<Vec<ScourRule>>>,
    paths: Vec<PathBuf>,
    stop: Stop,
    notifier: Arc<Notifier>,
    thread: JoinHandle<()>,
}

impl Scouring {
    /// Starts the thread, if rules are given. Malformed rules are set aside.
    ///
    /// # Errors
    /// A sentence that names the file that can't be used.
    pub fn start(wanted: &Wanted, site: &Path) -> Result<Option<Self>, String> {
        if wanted.files.is_empty() {
            return Ok(None);
        }
        let found = read_all(&wanted.files)?;
        active_rules::say_set_aside(&found.set_aside);
        let rules = Arc::new(Mutex::new(found.rules));
        let (stop, notifier) = (Stop::default(), Arc::<Notifier>::default());
        let places = Places::new(wanted.directory.as_deref(), Some(site));
        let work = Work {
            rules: Arc::clone(&rules),
            places,
            every: wanted.every,
            stop: stop.clone(),
            notifier: Arc::clone(&notifier),
        };
        let thread = std::thread::Builder::new().name("scour".to_owned()).spawn(move || work.run());
        let thread = thread.map_err(|error| format!("no thread for scour: {error}"))?;
        Ok(Some(Self { rules, paths: wanted.files.clone(), stop, notifier, thread }))
    }

    /// Reads the rules again. If there is a fault in them, the former rules stay in force.
    pub fn reread(&self) {
        match read_all(&self.paths) {
            Ok(found) if found.set_aside.is_empty() => {
                *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = found.rules;
            }
            Ok(found) => found.set_aside.iter().for_each(|problem| tracing::error!("{problem}")),
            Err(wrong) => wrong.lines().for_each(|line| tracing::error!("{line}")),
        }
        self.notifier.notify();
    }

    /// Stops the thread and waits for its end.
    pub fn stop(self) {
        self.stop.ask(&self.notifier);
        let _ = self.thread.join();
    }
}

struct Work {
    rules: Arc<Mutex<Vec<ScourRule>>>,
    places: Places,
    every: Duration,
    stop: Stop,
    notifier: Arc<Notifier>,
}

impl Work {
    fn run(self) {
        while !self.stop.is_asked() {
            let counted = self.notifier.count();
            let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let begun = Instant::now();
            for rule in &rules {
                self.clear(rule);
            }
            tracing::debug!(seconds = begun.elapsed().as_secs_f64(), "looked for old files");
            self.notifier.wait(counted, self.every);
        }
    }

    fn clear(&self, rule: &ScourRule) {
        let done = self.places.root(rule).and_then(|root| {
            let stopped = || self.stop.is_asked();
            clear(rule, &root, now(), &mut |_| true, &stopped)
        });
        match done {
            Ok(Scoured { files: 0, failed: None, .. }) => {}
            Ok(Scoured { files, bytes, failed, .. }) => {
                tracing::info!(rule = %rule.place, files, bytes, "removed old files");
                if let Some(sentence) = failed {
                    tracing::warn!(rule = %rule.place, "{sentence}");
                }
            }
            Err(sentence) => tracing::warn!(rule = %rule.place, "{sentence}"),
        }
    }
}

/// The base of rules' directories, and the directories that are forbidden to all rules.
pub(super) struct Places {
    directory: PathBuf,
    forbidden: Vec<PathBuf>,
}

impl Places {
    pub(super) fn new(directory: Option<&Path>, site: Option<&Path>) -> Self {
        let data = site.map(|site| site.join("data"));
        let directory = directory.map(Path::to_owned).or(data).unwrap_or_default();
        let own = ["log", "state", "spool"].into_iter();
        let forbidden = site.into_iter().flat_map(|site| own.clone().map(|part| site.join(part)));
        let forbidden = forbidden.map(|path| path.canonicalize().unwrap_or(path)).collect();
        Self { directory, forbidden }
    }

    /// The canonical directory of a rule, if it is allowed.
    pub(super) fn root(&self, rule: &ScourRule) -> Result<PathBuf, String> {
        let path = self.directory.join(home(&rule.directory)?);
        let root = path.canonicalize().map_err(|error| {
            format!("{} can't be read: {error}; correct the rule, or make the directory", path.display())
        })?;
        if root.components().count() < LEAST_COMPONENTS {
            return Err(format!("{} holds more than data; name a directory further down", root.display()));
        }
        let own = |own: &&PathBuf| root.starts_with(own) || own.starts_with(&root);
        if let Some(own) = self.forbidden.iter().find(own) {
            return Err(format!(
                "{} holds {}, which the receiver needs; name another directory",
                root.display(),
                own.display()
            ));
        }
        Ok(root)
    }
}

/// A path with `~` and `~user` replaced.
fn home(directory: &str) -> Result<PathBuf, String> {
    let Some(rest) = directory.strip_prefix('~') else { return Ok(directory.into()) };
    let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
    let home = if user.is_empty() {
        std::env::var_os("HOME").map(PathBuf::from)
    } else {
        nix::unistd::User::from_name(user).ok().flatten().map(|user| user.dir)
    };
    let home = home.ok_or_else(|| format!("{directory} has no such home directory; write the whole path"))?;
    Ok(home.join(below))
}

/// The rules read from files.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rules: Vec<ScourRule>,
    /// Malformed rules.
    pub(super) set_aside: Vec<Problem>,
}

/// The rules of all files; the error has a line for each reason that files can't be used.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Found, String> {
    let (mut all, mut wrong) = (Found::default(), Vec::new());
    for path in paths {
        match read(path) {
            Ok(Read { found, errors, set_aside, notes }) => {
                notes.iter().for_each(|note| tracing::warn!("{note}"));
                wrong.extend(errors.iter().map(Problem::to_string));
                all.rules.extend(found);
                all.set_aside.extend(set_aside);
            }
            Err(sentence) => wrong.push(sentence),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(wrong.join("\n")) }
}

fn read(path: &Path) -> Result<Read<Vec<ScourRule>>, String> {
    let (name, text) = (path.display().to_string(), active_rules::text_of(path)?);
    if active_rules::is_yaml(path) {
        return Ok(yaml::read(&name, &text).map(|document| document.scour));
    }
    let mut read = scour::read(&name, &text);
    read.notes.extend(scour::notes(&read.found));
    Ok(read)
}

/// The time of the host's clock, which also stamps files.
pub(super) fn now() -> downburst_model::WallMicros {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    downburst_model::WallMicros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The root, and two directories.
const LEAST_COMPONENTS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(directory: &str) -> ScourRule {
        scour::read("scour.conf", &format!("{directory} 1")).found.remove(0)
    }

    #[test]
    fn what_the_receiver_needs_is_never_looked_into() {
        let site = tempfile::tempdir().unwrap();
        for part in ["log/NGRID", "state", "spool", "data/x", "received"] {
            std::fs::create_dir_all(site.path().join(part)).unwrap();
        }
        let places = Places::new(None, Some(site.path()));
        let at = |part: &str| rule(&site.path().join(part).display().to_string());
        for part in ["log/NGRID", "state", ""] {
            assert!(places.root(&at(part)).unwrap_err().contains("which the receiver needs"), "{part}");
        }
        let root = site.path().canonicalize().unwrap();
        assert_eq!(places.root(&rule("x")).unwrap(), root.join("data/x"));
        assert_eq!(places.root(&at("received")).unwrap(), root.join("received"));
    }

    #[test]
    fn a_line_that_cannot_be_understood_is_set_aside_and_the_others_work() {
        let site = tempfile::tempdir().unwrap();
        let path = site.path().join("scour.conf");
        std::fs::write(&path, "data/a 1-12:30\ndata/b 1-1230\n/ 1\n").unwrap();
        let found = read_all(std::slice::from_ref(&path)).unwrap();
        assert_eq!((found.rules.len(), found.set_aside.len()), (1, 2));
        assert!(read_all(&[site.path().join("gone")]).is_err());
    }

    #[test]
    fn a_link_to_too_much_is_refused() {
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir(site.path().join("data")).unwrap();
        std::os::unix::fs::symlink("/usr", site.path().join("data/x")).unwrap();
        let error = Places::new(None, Some(site.path())).root(&rule("x")).unwrap_err();
        assert!(error.contains("further down"), "{error}");
        assert!(home("~nobody-is-called-this/x").unwrap_err().contains("no such home"));
    }
}
