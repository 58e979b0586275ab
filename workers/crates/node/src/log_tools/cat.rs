//! `log cat`: the bytes of one product.
use std::io::{self, Write};

use downburst_log::{Copied, LogReader, StoredEntry};
use downburst_model::Sequence;

use super::{CatArguments, Outcome, Stop, places};

pub(super) fn run(arguments: &CatArguments) -> Outcome {
    let readers = places::readers(&arguments.dir, arguments.feed.as_deref())?;
    let found = match (arguments.sequence, &arguments.id) {
        (Some(sequence), _) => by_sequence(&readers, sequence)?,
        (None, Some(id)) => newest_with_id(&readers, id)?,
        (None, None) => None,
    };
    let Some(entry) = found else { return Err(Stop::Failed(missing(arguments))) };
    let mut out = io::stdout().lock();
    let copied = entry.copy_to(&mut |piece| out.write_all(piece))?;
    out.flush()?;
    let (feed, sequence) = (&entry.info.key.feed, entry.info.key.sequence.0);
    match copied {
        Copied::Intact => Ok(()),
        Copied::Gone => Err(Stop::Failed(format!(
            "the bytes of {feed} {sequence} are evicted; only its description is remembered"
        ))),
        Copied::Damaged(damage) => Err(Stop::Failed(format!(
            "the bytes of {feed} {sequence} are damaged, don't use them; they lie in {} at offset {}",
            damage.segment.display(),
            damage.offset
        ))),
    }
}

fn by_sequence(readers: &[LogReader], sequence: u64) -> Result<Option<StoredEntry>, Stop> {
    match readers {
        [reader] => Ok(reader.entry(Sequence(sequence))?),
        _ => {
            let feeds: Vec<&str> = readers.iter().map(|reader| reader.feed().as_str()).collect();
            Err(Stop::BadUse(format!(
                "every feed has its own sequences; name one with --feed: {}",
                feeds.join(", ")
            )))
        }
    }
}

/// The newest product with an id, if possible one that still has its bytes.
fn newest_with_id(readers: &[LogReader], id: &str) -> Result<Option<StoredEntry>, Stop> {
    let mut newest: Option<StoredEntry> = None;
    for reader in readers {
        for entry in reader.entries(Sequence(0)) {
            let entry = entry?;
            let rank = |entry: &StoredEntry| (entry.has_bytes(), entry.info.stored);
            if entry.info.id.as_str() == id && newest.as_ref().is_none_or(|it| rank(it) <= rank(&entry)) {
                newest = Some(entry);
            }
        }
    }
    Ok(newest)
}

fn missing(arguments: &CatArguments) -> String {
    let what = match (&arguments.id, arguments.sequence) {
        (Some(id), _) => format!("with the id {id:?}"),
        (None, sequence) => format!("with sequence {}", sequence.unwrap_or(0)),
    };
    let dir = arguments.dir.display();
    format!("there is no product {what} in {dir}; `downburst-node log tail {dir}` lists the newest")
}
