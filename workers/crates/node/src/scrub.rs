//! Reads the logs in the background, slowly, so that damage is found before the damaged bytes are needed; also reads
//! the small files beside them, which a process otherwise reads only at its start.
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use downburst_log::{FeedLog, Flaw};
use downburst_model::{FeedName, ProductKey};

/// The rate and the interval of the scrub.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scrub {
    /// The most bytes read per second.
    pub bytes_per_second: u64,
    /// The interval, in hours, at which each log is read; 0: never.
    pub hours: f64,
}

/// The logs that are open now; `None` once their owner is gone.
type OpenLogs = Box<dyn Fn() -> Option<Vec<(FeedName, Arc<FeedLog>)>> + Send>;

/// Receives each product that is no longer served because of damage, by its name at its source, once.
type Lost = Box<dyn Fn(ProductKey) + Send>;

/// The small files that exist now.
type SmallFiles = Box<dyn Fn() -> Vec<SmallFile> + Send>;

/// Receives a sentence on each damaged place, once.
type Report = Box<dyn Fn(&FeedName, String) + Send>;

/// A checksummed file that belongs to a feed, and is replaced or written in place while the process runs.
pub(crate) struct SmallFile {
    pub(crate) feed: FeedName,
    pub(crate) path: PathBuf,
    pub(crate) is_whole: fn(&Path) -> io::Result<bool>,
}

/// Starts the thread.
pub(crate) fn start(
    scrub: Scrub,
    logs: OpenLogs,
    small_files: SmallFiles,
    report: Report,
    lost: Lost,
) -> Result<(), String> {
    if scrub.hours <= 0.0 || scrub.bytes_per_second == 0 {
        return Ok(());
    }
    let period = Duration::from_secs_f64((scrub.hours * 3_600.0).clamp(1.0, 1e8));
    let mut scrubber = Scrubber {
        rate: scrub.bytes_per_second,
        period,
        report,
        lost,
        read: BTreeMap::new(),
        known: BTreeSet::new(),
        small_read: None,
        small_known: BTreeSet::new(),
    };
    let work = move || {
        while let Some(open) = logs() {
            scrubber.read_small(&small_files);
            scrubber.read_due(open);
            thread::sleep(LOOK_INTERVAL.min(period));
        }
    };
    let thread = thread::Builder::new().name("scrub".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| format!("no thread to read the logs through: {error}"))
}

struct Scrubber {
    rate: u64,
    period: Duration,
    report: Report,
    lost: Lost,
    /// The time at which each feed's log was last read.
    read: BTreeMap<FeedName, Instant>,
    /// The damage reported in this pass.
    known: BTreeSet<(PathBuf, u64)>,
    /// The time at which the small files were last read.
    small_read: Option<Instant>,
    /// The files that were reported and have not been seen intact since.
    small_known: BTreeSet<PathBuf>,
}

impl Scrubber {
    /// Reads the small files if they are due.
    fn read_small(&mut self, files: &SmallFiles) {
        if self.small_read.is_some_and(|at| at.elapsed() < self.period) {
            return;
        }
        let mut doubtful: Vec<_> =
            files().into_iter().filter_map(|file| Some((flaw(&file)?, file))).collect();
        if !doubtful.is_empty() {
            // A file that was being written is complete by now.
            thread::sleep(WRITTEN_BY);
            doubtful = doubtful.into_iter().filter_map(|(_, file)| Some((flaw(&file)?, file))).collect();
        }
        for (sentence, file) in &doubtful {
            if !self.small_known.contains(&file.path) {
                (self.report)(&file.feed, format!("feed {}: {sentence}", file.feed));
            }
        }
        self.small_known = doubtful.into_iter().map(|(_, file)| file.path).collect();
        self.small_read = Some(Instant::now());
    }

    /// Reads the logs that are due, those that may be damaged first.
    fn read_due(&mut self, mut open: Vec<(FeedName, Arc<FeedLog>)>) {
        open.retain(|(feed, _)| self.read.get(feed).is_none_or(|at| at.elapsed() >= self.period));
        open.sort_by_key(|(_, log)| !log.is_suspect());
        // Held weakly, so that a removed feed can be opened again in the meantime.
        let open: Vec<_> = open.into_iter().map(|(feed, log)| (feed, Arc::downgrade(&log))).collect();
        for (feed, log) in open {
            self.read_one(&feed, &log);
            self.read.insert(feed, Instant::now());
        }
    }

    fn read_one(&mut self, feed: &FeedName, log: &Weak<FeedLog>) {
        self.known.clear();
        let Self { rate, report, lost, known, .. } = self;
        let mut owed = 0;
        let mut pace = |bytes: u64| {
            owed += bytes;
            if owed >= *rate / 8 {
                thread::sleep(Duration::from_secs_f64(owed as f64 / *rate as f64));
                owed = 0;
            }
        };
        let mut tell = |flaw: Flaw| {
            if known.insert((flaw.path.clone(), flaw.offset)) {
                report(feed, sentence(feed, &flaw));
            }
        };
        if let Err(error) = FeedLog::scrub(log, &mut pace, &mut tell, &mut |key| lost(key)) {
            report(feed, format!("the log of feed {feed} can't be read through: {error}"));
        }
    }
}

/// The reason why a small file is not intact.
fn flaw(file: &SmallFile) -> Option<String> {
    let path = file.path.display();
    match (file.is_whole)(&file.path) {
        Ok(true) => None,
        Ok(false) => {
            Some(format!("{path} is damaged: its checksum does not match; the next change rewrites it"))
        }
        Err(error) => Some(format!("{path} can't be read: {error}")),
    }
}

fn sentence(feed: &FeedName, flaw: &Flaw) -> String {
    let Flaw { path, offset, sequence, sentence } = flaw;
    let product = sequence.map(|sequence| format!(" (product {})", sequence.0)).unwrap_or_default();
    format!("feed {feed}: {} is damaged at {offset}{product}: {sentence}", path.display())
}

/// The longest time that writing a small file takes.
const WRITTEN_BY: Duration = Duration::from_millis(200);

/// The longest time until a newly opened log is found.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;
    use std::sync::{Mutex, mpsc};

    use downburst_log::{LogOptions, ProductLog as _, contract};
    use downburst_model::WallMicros;

    use super::*;

    #[test]
    fn damage_is_reported_with_file_and_product_and_the_log_is_let_go_of() {
        let dir = tempfile::tempdir().unwrap();
        let feed = FeedName::parse("X").unwrap();
        let (log, _) = FeedLog::open(dir.path(), feed.clone(), LogOptions::default(), 1).unwrap();
        let product = contract::product("a").unwrap();
        log.append(product, &mut [7; 5_000].as_slice(), &|| WallMicros(0)).unwrap();
        let path = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = path.into_iter().find(|path| path.extension().is_some_and(|it| it == "segment")).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[8], 3_000).unwrap();
        let (log, (told, reports)) = (Arc::new(log), mpsc::channel());
        let open = Mutex::new(vec![(feed, Arc::clone(&log))]);
        let logs = move || Some(std::mem::take(&mut *open.lock().unwrap()));
        let report = move |feed: &FeedName, sentence: String| told.send((feed.clone(), sentence)).unwrap();
        let plan = Scrub { bytes_per_second: 1 << 30, hours: 1.0 };
        start(plan, Box::new(logs), Box::new(Vec::new), Box::new(report), Box::new(|_| ())).unwrap();
        let (feed, sentence) = reports.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(feed.as_str(), "X");
        assert!(
            sentence.contains(&path.display().to_string()) && sentence.contains("(product 1)"),
            "{sentence}"
        );
        assert!(
            log.entry(downburst_model::Sequence(1)).unwrap().unwrap().bytes.is_none(),
            "it is handed out no more"
        );
    }

    #[test]
    fn a_small_file_is_reported_once_until_it_was_whole_again_and_one_that_is_being_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let [bad, torn] = ["bad", "torn"].map(|name| dir.path().join(name));
        std::fs::write(&bad, "damaged").unwrap();
        std::fs::write(&torn, "damaged").unwrap();
        let feed = FeedName::parse("X").unwrap();
        let files = {
            let (feed, bad, torn) = (feed.clone(), bad.clone(), torn.clone());
            move || {
                let paths =
                    [(&bad, is_whole as fn(&Path) -> _), (&torn, is_whole_the_second_time as fn(&Path) -> _)];
                let file = |(path, is_whole): (&PathBuf, fn(&Path) -> io::Result<bool>)| SmallFile {
                    feed: feed.clone(),
                    path: path.clone(),
                    is_whole,
                };
                paths.into_iter().map(file).collect::<Vec<_>>()
            }
        };
        let files: SmallFiles = Box::new(files);
        let (told, reports) = mpsc::channel();
        let mut scrubber = Scrubber {
            rate: 1,
            period: Duration::ZERO,
            report: Box::new(move |_, sentence| told.send(sentence).unwrap()),
            lost: Box::new(|_| ()),
            read: BTreeMap::new(),
            known: BTreeSet::new(),
            small_read: None,
            small_known: BTreeSet::new(),
        };
        for (contents, count) in [("damaged", 1), ("damaged", 0), ("whole", 0), ("damaged", 1)] {
            std::fs::write(&bad, contents).unwrap();
            std::fs::write(&torn, "damaged").unwrap();
            scrubber.read_small(&files);
            let heard: Vec<String> = reports.try_iter().collect();
            assert_eq!(heard.len(), count, "{contents}: {heard:?}");
            assert!(heard.iter().all(|sentence| sentence.contains(&bad.display().to_string())), "{heard:?}");
        }
    }

    fn is_whole(path: &Path) -> io::Result<bool> {
        Ok(std::fs::read_to_string(path)? == "whole")
    }

    /// Acts as if the file's writer had finished after the first check.
    fn is_whole_the_second_time(path: &Path) -> io::Result<bool> {
        let found = is_whole(path);
        std::fs::write(path, "whole")?;
        found
    }
}
