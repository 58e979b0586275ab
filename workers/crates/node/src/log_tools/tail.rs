//! `log tail`: the newest products, a line each, in the layout of LDM's `notifyme`.
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use downburst_log::{Entries, LogReader, StoredEntry};
use downburst_model::{Sequence, WallMicros, moment};

use super::{Outcome, Stop, TailArguments, places};

pub(super) fn run(arguments: &TailArguments) -> Outcome {
    let mut followed = BTreeMap::new();
    let mut newest = Vec::new();
    for reader in places::readers(&arguments.dir, None)? {
        let (lines, cursor) = last_lines(&reader, arguments.lines)?;
        newest.extend(lines);
        followed.insert(reader.dir().to_owned(), reader.follow(cursor));
    }
    // Sorting is stable: products of one feed stay in order even if the clock stepped back within one moment.
    newest.sort_by_key(|(stored, _)| *stored);
    let mut out = io::stdout().lock();
    for (_, line) in newest.iter().skip(newest.len().saturating_sub(arguments.lines)) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    if arguments.follow { follow(&arguments.dir, followed, &mut out) } else { Ok(()) }
}

/// Reads all feeds in turn, and picks up feeds that are created later.
fn follow(dir: &Path, mut followed: BTreeMap<PathBuf, Entries>, out: &mut impl Write) -> Outcome {
    let mut looked = Instant::now();
    loop {
        let mut quiet = true;
        for entries in followed.values_mut() {
            for entry in entries.by_ref().take(TURN_ENTRIES) {
                writeln!(out, "{}", line(&entry?))?;
                quiet = false;
            }
        }
        out.flush()?;
        if looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            take_in(dir, &mut followed)?;
        }
        if quiet {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn take_in(dir: &Path, followed: &mut BTreeMap<PathBuf, Entries>) -> Result<(), Stop> {
    for log in places::logs(dir)? {
        if let Entry::Vacant(place) = followed.entry(log) {
            let reader = LogReader::open(place.key())?;
            place.insert(reader.follow(Sequence(0)));
        }
    }
    Ok(())
}

/// The last lines of a feed with their stamps, and the cursor after them.
fn last_lines(reader: &LogReader, count: usize) -> Result<(VecDeque<(WallMicros, String)>, Sequence), Stop> {
    let mut cursor = reader.start_of_last(count)?;
    let mut lines = VecDeque::new();
    for entry in reader.entries(cursor) {
        let entry = entry?;
        cursor = entry.info.key.sequence;
        lines.push_back((entry.info.stored, line(&entry)));
        if lines.len() > count {
            lines.pop_front();
        }
    }
    Ok((lines, cursor))
}

fn line(entry: &StoredEntry) -> String {
    let info = &entry.info;
    let (stored, created) = (moment::log_time(info.stored), moment::creation_time(info.created));
    let (feed, sequence) = (info.key.feed.as_str(), info.key.sequence.0);
    format!("{stored} {:>8} {created} {feed:>7} {sequence:03}  {}", info.size, info.id)
}

const POLL_INTERVAL: Duration = Duration::from_millis(100);
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The most products of one feed per turn, so that a busy feed does not block the others.
const TURN_ENTRIES: usize = 1_000;
