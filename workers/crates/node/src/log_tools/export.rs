//! `log export`: writes products to files, named as at a receiving site.
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use downburst_log::{Copied, StoredEntry};
use downburst_model::{Pattern, Sequence, WallMicros, moment};

use super::{ExportArguments, Outcome, Stop, places};
use crate::file_names::received_path;

pub(super) fn run(arguments: &ExportArguments) -> Outcome {
    let wanted = Wanted::parse(arguments)?;
    let readers = places::readers(&arguments.dir, arguments.feed.as_deref())?;
    let to = &arguments.to;
    fs::create_dir_all(to).map_err(|error| unwritable(to, &error))?;
    let mut counts = Counts::default();
    for reader in readers {
        for entry in reader.entries(Sequence(0)) {
            let entry = entry?;
            if wanted.takes(&entry) {
                counts.add(export(&entry, to)?);
            }
        }
    }
    writeln!(io::stdout(), "{}", counts.sentence(to))?;
    if counts.damaged == 0 { Ok(()) } else { Err(Stop::Told) }
}

struct Wanted {
    pattern: Option<Pattern>,
    from: Option<WallMicros>,
    until: Option<WallMicros>,
}

impl Wanted {
    fn parse(arguments: &ExportArguments) -> Result<Self, Stop> {
        let moment = |text: &Option<String>| text.as_deref().map(moment::parse).transpose();
        let pattern = arguments.pattern.as_deref().map(Pattern::parse).transpose();
        Ok(Self {
            pattern: pattern.map_err(|error| Stop::BadUse(error.to_string()))?,
            from: moment(&arguments.from).map_err(Stop::BadUse)?,
            until: moment(&arguments.until).map_err(Stop::BadUse)?,
        })
    }

    fn takes(&self, entry: &StoredEntry) -> bool {
        let stored = entry.info.stored;
        !entry.info.id.is_heartbeat()
            && self.from.is_none_or(|from| stored >= from)
            && self.until.is_none_or(|until| stored < until)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(entry.info.id.as_str()))
    }
}

enum Exported {
    Written,
    ThereBefore,
    Gone,
    Damaged,
}

#[derive(Default)]
struct Counts {
    written: u64,
    there_before: u64,
    gone: u64,
    damaged: u64,
}

impl Counts {
    fn add(&mut self, exported: Exported) {
        match exported {
            Exported::Written => self.written += 1,
            Exported::ThereBefore => self.there_before += 1,
            Exported::Gone => self.gone += 1,
            Exported::Damaged => self.damaged += 1,
        }
    }

    fn sentence(&self, to: &Path) -> String {
        let Self { written, there_before, gone, damaged } = self;
        let mut sentence = format!("{written} written to {}", to.display());
        for (count, what) in
            [(there_before, "already there"), (gone, "evicted"), (damaged, "damaged and left out")]
        {
            if *count > 0 {
                sentence.push_str(&format!(", {count} {what}"));
            }
        }
        sentence
    }
}

/// Writes to a temporary file and renames it, so that an existing file is always complete.
fn export(entry: &StoredEntry, to: &Path) -> Result<Exported, Stop> {
    let key = entry.source.as_ref().map_or(&entry.info.key, |source| &source.key);
    let target = to.join(received_path(key, entry.info.id.as_str()));
    if !entry.has_bytes() {
        return Ok(Exported::Gone);
    }
    if fs::metadata(&target).is_ok_and(|found| found.is_file() && found.len() == entry.info.size) {
        return Ok(Exported::ThereBefore);
    }
    let aside = to.join(format!(".export-{}.part", std::process::id()));
    let exported = write(entry, &aside, &target);
    if !matches!(exported, Ok(Exported::Written)) {
        // The first failure is the one to report.
        let _ = fs::remove_file(&aside);
    }
    exported.map_err(|error| unwritable(&target, &error))
}

fn write(entry: &StoredEntry, aside: &PathBuf, target: &Path) -> io::Result<Exported> {
    let mut file = File::create(aside)?;
    match entry.copy_to(&mut |piece| file.write_all(piece))? {
        Copied::Intact => {}
        Copied::Gone => return Ok(Exported::Gone),
        Copied::Damaged(damage) => {
            let (feed, sequence) = (&entry.info.key.feed, entry.info.key.sequence.0);
            let (segment, offset) = (damage.segment.display(), damage.offset);
            eprintln!("downburst-node: {feed} {sequence} is damaged in {segment} at offset {offset}");
            return Ok(Exported::Damaged);
        }
    }
    fs::create_dir_all(target.parent().unwrap_or(target))?;
    fs::rename(aside, target)?;
    Ok(Exported::Written)
}

fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::Failed(format!("{} can't be written: {error}; check its rights and the disk", path.display()))
}
