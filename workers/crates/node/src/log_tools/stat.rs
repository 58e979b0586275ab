//! `log stat`: figures of each log.
use std::io::{self, Write};

use downburst_log::{LogReader, LogSummary};
use downburst_model::{WallMicros, moment};
use serde_json::{Value, json};

use super::{Outcome, StatArguments, Stop, places};

pub(super) fn run(arguments: &StatArguments) -> Outcome {
    let mut found = Vec::new();
    for dir in &arguments.dirs {
        for reader in places::readers(dir, None)? {
            let summary = reader.summary()?;
            found.push((reader, summary));
        }
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let all: Vec<Value> = found.iter().map(|(reader, summary)| as_json(reader, summary)).collect();
        let text = serde_json::to_string_pretty(&all).map_err(|error| Stop::Failed(error.to_string()))?;
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let rows: Vec<Cells> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(found.iter().map(as_cells)).collect();
    for row in &rows {
        writeln!(out, "{}", aligned(row, &rows))?;
    }
    Ok(())
}

type Cells = [String; HEADINGS.len()];

fn as_json(reader: &LogReader, summary: &LogSummary) -> Value {
    json!({
        "feed": reader.feed(), "dir": reader.dir(), "epoch": format!("{:016x}", reader.epoch().0),
        "first": summary.first, "head": summary.head, "products": summary.products,
        "remembered": summary.remembered, "bytes": summary.bytes, "memory_bytes": summary.memory_bytes,
        "segments": summary.segments, "oldest_stored_us": summary.oldest_stored,
        "newest_stored_us": summary.newest_stored,
    })
}

fn as_cells((reader, summary): &(LogReader, LogSummary)) -> Cells {
    let stamp = |stamp: Option<WallMicros>| stamp.map_or_else(|| "-".to_owned(), moment::rfc3339);
    [
        reader.feed().to_string(),
        format!("{:016x}", reader.epoch().0),
        summary.first.0.to_string(),
        summary.head.0.to_string(),
        summary.products.to_string(),
        summary.bytes.to_string(),
        summary.segments.to_string(),
        stamp(summary.oldest_stored),
        stamp(summary.newest_stored),
    ]
}

/// Numbers to the right, everything else to the left.
fn aligned(row: &Cells, rows: &[Cells]) -> String {
    let mut line = String::new();
    for (at, cell) in row.iter().enumerate() {
        let width = rows.iter().filter_map(|row| row.get(at)).map(String::len).max().unwrap_or(0);
        let padded =
            if NUMBERS.contains(&at) { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
        line.push_str(&padded);
        line.push_str("  ");
    }
    line.trim_end().to_owned()
}

const HEADINGS: [&str; 9] =
    ["FEED", "EPOCH", "FIRST", "HEAD", "PRODUCTS", "BYTES", "SEGMENTS", "OLDEST", "NEWEST"];
const NUMBERS: std::ops::Range<usize> = 2..7;
