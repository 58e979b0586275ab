//! Products stored at sites, receipt by receipt, read from the raw receipts of a hub that has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{DictionaryArray, RecordBatch};
use arrow_ipc::reader::StreamReader;
use serde::Serialize;

use crate::Outcome;

/// The summary before the rows.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Summary {
    /// Rows refer to these by position.
    feeds: Vec<String>,
    sites: Vec<String>,
    rows: usize,
    /// Receipts of products that a site already held, rejected, or will not receive; they have no row.
    not_stored: usize,
}

/// A product stored at a site: site, feed, the hub's sequence, size, created, stored at the hub, stored there; times in
/// microseconds.
type Row = [i64; 7];

/// Prints the summary as a line of JSON, followed by the rows, little-endian, in the order in which the
/// receipts arrived.
pub(crate) fn print(receipts: &Path) -> Outcome {
    let (summary, rows) = read(receipts)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    for figure in rows.iter().flatten() {
        out.write_all(&figure.to_le_bytes())?;
    }
    Ok(out.flush()?)
}

fn read(receipts: &Path) -> Outcome<(Summary, Vec<Row>)> {
    let mut reading = Reading::default();
    for path in files(receipts)? {
        for batch in StreamReader::try_new(BufReader::new(File::open(&path)?), None)? {
            reading.add(&batch?).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let Reading { feeds, sites, rows, not_stored } = reading;
    Ok((Summary { feeds: feeds.words, sites: sites.words, rows: rows.len(), not_stored }, rows))
}

/// Lists the complete files. Receipts in a file left unfinished by the hub are missing, which the counts show.
fn files(receipts: &Path) -> Outcome<Vec<PathBuf>> {
    let listed = std::fs::read_dir(receipts)
        .map_err(|error| format!("{} can't be read: {error}", receipts.display()))?;
    let mut paths = listed.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "arrows"));
    paths.sort();
    Ok(paths)
}

#[derive(Default)]
struct Reading {
    feeds: Places,
    sites: Places,
    rows: Vec<Row>,
    not_stored: usize,
}

impl Reading {
    fn add(&mut self, batch: &RecordBatch) -> Outcome {
        let stored: Vec<bool> = words(batch, "outcome")?.iter().map(|word| word == "stored").collect();
        let columns = [
            self.sites.of(&words(batch, "site")?)?,
            self.feeds.of(&words(batch, "feed")?)?,
            numbers::<UInt64Type>(batch, "sequence")?,
            numbers::<UInt64Type>(batch, "size")?,
            numbers::<TimestampMicrosecondType>(batch, "created")?,
            numbers::<TimestampMicrosecondType>(batch, "hub_stored")?,
            numbers::<TimestampMicrosecondType>(batch, "site_stored")?,
        ];
        for (row, is_stored) in stored.into_iter().enumerate() {
            if is_stored {
                self.rows.push(columns.each_ref().map(|column| column.get(row).copied().unwrap_or_default()));
            } else {
                self.not_stored += 1;
            }
        }
        Ok(())
    }
}

/// Words, numbered in the order of first appearance.
#[derive(Default)]
struct Places {
    words: Vec<String>,
    known: BTreeMap<String, i64>,
}

impl Places {
    fn of(&mut self, words: &[String]) -> Outcome<Vec<i64>> {
        words.iter().map(|word| self.place(word)).collect()
    }

    fn place(&mut self, word: &str) -> Outcome<i64> {
        if let Some(place) = self.known.get(word) {
            return Ok(*place);
        }
        let place = i64::try_from(self.words.len())?;
        self.words.push(word.to_owned());
        self.known.insert(word.to_owned(), place);
        Ok(place)
    }
}

fn words(batch: &RecordBatch, name: &str) -> Outcome<Vec<String>> {
    let column: Option<&DictionaryArray<Int16Type>> =
        batch.column_by_name(name).and_then(|column| column.as_dictionary_opt());
    let typed = column.and_then(|column| column.downcast_dict::<arrow_array::StringArray>());
    let typed = typed.ok_or_else(|| format!("no words are in the column {name}"))?;
    Ok(typed.into_iter().map(|word| word.unwrap_or_default().to_owned()).collect())
}

/// The column's figures; 0 for a missing one, as for a product that never reached the site.
fn numbers<T: ArrowPrimitiveType>(batch: &RecordBatch, name: &str) -> Outcome<Vec<i64>>
where
    i64: TryFrom<T::Native>,
{
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<T>());
    let column = column.ok_or_else(|| format!("no numbers are in the column {name}"))?;
    let figure = |value: T::Native| i64::try_from(value).map_err(|_| format!("{name} is too large"));
    let figures = column.iter().map(|value| value.map_or(Ok(0), figure));
    Ok(figures.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, TimestampMicrosecondArray, UInt64Array};
    use arrow_ipc::writer::StreamWriter;

    use super::*;

    /// A receipt as it is kept: site, feed, outcome, sequence, stored at the site.
    type Said = (&'static str, &'static str, &'static str, u64, Option<i64>);

    fn write(path: &Path, said: &[Said]) {
        let names = |word: fn(&Said) -> &'static str| {
            Arc::new(said.iter().map(word).collect::<DictionaryArray<Int16Type>>()) as ArrayRef
        };
        let count = said.len();
        let stamp = |at: Vec<Option<i64>>| {
            Arc::new(TimestampMicrosecondArray::from(at).with_timezone("UTC")) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter([
            ("feed", names(|said| said.1)),
            ("site", names(|said| said.0)),
            ("sequence", Arc::new(said.iter().map(|said| said.3).collect::<UInt64Array>())),
            ("outcome", names(|said| said.2)),
            ("size", Arc::new(UInt64Array::from(vec![2_000; count]))),
            ("created", stamp(vec![Some(1_000); count])),
            ("hub_stored", stamp(vec![Some(2_000); count])),
            ("site_stored", stamp(said.iter().map(|said| said.4).collect())),
        ])
        .unwrap();
        let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn receipts_of_several_files_are_read_in_order_with_one_numbering() {
        let directory = tempfile::tempdir().unwrap();
        write(&directory.path().join("2.arrows"), &[("psu", "HDS", "stored", 9, Some(4_000))]);
        let first = [("unl", "NGRID", "stored", 7, Some(3_000)), ("psu", "NGRID", "stored", 7, Some(3_500))];
        write(&directory.path().join("1.arrows"), &first);
        std::fs::write(directory.path().join("1.json"), b"{}").unwrap();
        let (summary, rows) = read(directory.path()).unwrap();
        assert_eq!(
            (summary.sites, summary.feeds),
            (vec!["unl".to_owned(), "psu".to_owned()], vec!["NGRID".to_owned(), "HDS".to_owned()])
        );
        assert_eq!(
            rows,
            [
                [0, 0, 7, 2_000, 1_000, 2_000, 3_000],
                [1, 0, 7, 2_000, 1_000, 2_000, 3_500],
                [1, 1, 9, 2_000, 1_000, 2_000, 4_000],
            ]
        );
    }

    #[test]
    fn what_was_not_stored_is_counted_and_has_no_row() {
        let directory = tempfile::tempdir().unwrap();
        let said = [
            ("unl", "F", "held", 1, Some(3_000)),
            ("unl", "F", "expired", 2, None),
            ("unl", "F", "stored", 3, Some(3_000)),
        ];
        write(&directory.path().join("1.arrows"), &said);
        let (summary, rows) = read(directory.path()).unwrap();
        assert_eq!((summary.rows, summary.not_stored, rows.len()), (1, 2, 1));
    }

    #[test]
    fn a_file_that_is_torn_or_something_else_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(&directory.path().join("missing")).is_err());
        let path = directory.path().join("1.arrows");
        write(&path, &[("unl", "F", "stored", 1, Some(3_000))]);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(read(directory.path()).is_err());
    }
}
