//! `log verify`: reads everything and reports the damage.
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use downburst_log::{Finding, Flaw, LogReader};

use super::{Outcome, Stop, VerifyArguments, places};

pub(super) fn run(arguments: &VerifyArguments) -> Outcome {
    let mut flaws = 0;
    for dir in places::logs(&arguments.dir)? {
        match LogReader::open(&dir) {
            Ok(reader) => flaws += verify(&reader)?,
            // A log that has lost its identity is damaged; the others are still checked.
            Err(error) => {
                writeln!(io::stdout(), "{error}")?;
                flaws += 1;
            }
        }
    }
    if flaws == 0 { Ok(()) } else { Err(Stop::Told) }
}

fn verify(reader: &LogReader) -> Result<u64, Stop> {
    let feed = reader.feed();
    let total = reader.summary()?.bytes;
    let mut progress = Progress { total, read: 0, told: Instant::now() };
    let mut written = Ok(());
    let verified = reader.verify(&mut |finding| match finding {
        Finding::Read(bytes) => progress.add(feed.as_str(), bytes),
        Finding::Flaw(flaw) if written.is_ok() => written = writeln!(io::stdout(), "{}", line(&flaw)),
        Finding::Flaw(_) => {}
    })?;
    written?;
    let damage = match verified.flaws {
        0 => "no damage".to_owned(),
        1 => "1 place damaged".to_owned(),
        places => format!("{places} places damaged"),
    };
    writeln!(
        io::stdout(),
        "{feed}: {} intact, {} remembered without bytes, {damage}",
        verified.products,
        verified.remembered
    )?;
    Ok(verified.flaws)
}

fn line(flaw: &Flaw) -> String {
    let path: &Path = &flaw.path;
    let product = flaw.sequence.map_or_else(String::new, |sequence| format!(" sequence {}:", sequence.0));
    format!("{}: offset {}:{product} {}", path.display(), flaw.offset, flaw.sentence)
}

/// Reports the progress on standard error, for logs that take long.
struct Progress {
    total: u64,
    read: u64,
    told: Instant,
}

impl Progress {
    fn add(&mut self, feed: &str, bytes: u64) {
        self.read += bytes;
        if self.told.elapsed() >= TELL_INTERVAL {
            self.told = Instant::now();
            let (read, total) = (self.read as f64 / 1e6, self.total.max(self.read) as f64 / 1e6);
            // Progress is a courtesy; a failed write does not matter.
            let _ = writeln!(io::stderr(), "{feed}: {read:.0} of {total:.0} MB read");
        }
    }
}

const TELL_INTERVAL: Duration = Duration::from_secs(2);
