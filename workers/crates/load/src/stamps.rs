//! Products that arrived, one by one, read from the logs of a node that has ended.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use downburst_log::{Copied, LogReader, StoredEntry};
use downburst_model::{ProductKey, Sequence, WallMicros};
use serde::Serialize;

use crate::Outcome;

/// The summary before the rows.
#[derive(Debug, PartialEq, Serialize)]
struct Summary {
    /// Rows refer to these by position.
    feeds: Vec<String>,
    rows: usize,
    /// Number of products with missing bytes or a wrong digest.
    damaged: usize,
    /// BLAKE3 over feed, hub's sequence, size and digest of every product, in that order; equal for equal sets.
    fingerprint: String,
}

/// A product: feed, the hub's sequence, size, created, stored at the hub, stored here; times in microseconds.
type Row = [i64; 6];

/// Prints the summary as a line of JSON, followed by the rows, little-endian, in the order of storage per feed.
pub(crate) fn print(logs: &Path) -> Outcome {
    let (summary, rows) = read(logs)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    for figure in rows.iter().flatten() {
        out.write_all(&figure.to_le_bytes())?;
    }
    Ok(out.flush()?)
}

fn read(logs: &Path) -> Outcome<(Summary, Vec<Row>)> {
    let mut summary = Summary { feeds: Vec::new(), rows: 0, damaged: 0, fingerprint: String::new() };
    let (mut rows, mut identities) = (Vec::new(), Vec::new());
    for reader in readers(logs)? {
        let feed = i64::try_from(summary.feeds.len())?;
        summary.feeds.push(reader.feed().as_str().to_owned());
        for entry in reader.entries(Sequence(0)) {
            let entry = entry?;
            if entry.copy_to(&mut |_| Ok(()))? != Copied::Intact {
                summary.damaged += 1;
            }
            let (key, hub_stored) = upstream(&entry);
            identities.push((
                key.feed.as_str().to_owned(),
                key.sequence.0,
                entry.info.size,
                entry.info.digest.0,
            ));
            let info = &entry.info;
            let stamps = [info.created.0, hub_stored.0, info.stored.0];
            let [created, hub_stored, stored] = stamps;
            let (sequence, size) = (i64::try_from(key.sequence.0)?, i64::try_from(info.size)?);
            rows.push([feed, sequence, size, created, hub_stored, stored]);
        }
    }
    summary.rows = rows.len();
    summary.fingerprint = fingerprint(identities);
    Ok((summary, rows))
}

fn readers(logs: &Path) -> Outcome<Vec<LogReader>> {
    let mut directories = Vec::new();
    for entry in
        std::fs::read_dir(logs).map_err(|error| format!("{} can't be read: {error}", logs.display()))?
    {
        directories.push(entry?.path());
    }
    directories.retain(|directory| LogReader::is_log(directory));
    directories.sort();
    Ok(directories.iter().map(|directory| LogReader::open(directory)).collect::<Result<_, _>>()?)
}

/// The key and stamp from the hub: at a site they arrived with the product, at the hub they are the log's own.
fn upstream(entry: &StoredEntry) -> (&ProductKey, WallMicros) {
    let own = (&entry.info.key, entry.info.stored);
    entry.source.as_ref().map_or(own, |source| (&source.key, source.hub_stored))
}

fn fingerprint(mut identities: Vec<(String, u64, u64, [u8; 32])>) -> String {
    identities.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for (feed, sequence, size, digest) in identities {
        hasher.update(feed.as_bytes()).update(&[0]);
        hasher.update(&sequence.to_le_bytes()).update(&size.to_le_bytes()).update(&digest);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use downburst_log::{FeedLog, LogOptions, NewProduct, ProductLog as _, SourceStamp, contract};
    use downburst_model::{Epoch, FeedName};

    fn log(directory: &Path, name: &str) -> FeedLog {
        let feed = FeedName::parse("F").unwrap();
        FeedLog::open(&directory.join(name).join("F"), feed, LogOptions::default(), 1).unwrap().0
    }

    fn from_hub(sequence: u64) -> NewProduct {
        let key =
            ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(sequence) };
        let source = SourceStamp::live(key, WallMicros(2_000), None);
        NewProduct { source: Some(source), ..contract::product("p").unwrap() }
    }

    #[test]
    fn a_site_that_has_the_hubs_products_in_another_order_has_its_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let (hub, site) = (log(directory.path(), "hub"), log(directory.path(), "site"));
        for text in ["one", "two"] {
            let product = contract::product("p").unwrap();
            hub.append(product, &mut text.as_bytes(), &|| WallMicros(2_000)).unwrap();
        }
        for (sequence, text) in [(2, "two"), (1, "one")] {
            site.append(from_hub(sequence), &mut text.as_bytes(), &|| WallMicros(3_000)).unwrap();
        }
        let (at_hub, _) = read(&directory.path().join("hub")).unwrap();
        let (at_site, rows) = read(&directory.path().join("site")).unwrap();
        assert_eq!(at_hub, at_site);
        assert_eq!(rows, [[0, 2, 3, 1_000, 2_000, 3_000], [0, 1, 3, 1_000, 2_000, 3_000]]);
        site.append(from_hub(3), &mut b"three".as_slice(), &|| WallMicros(4_000)).unwrap();
        assert_ne!(at_hub, read(&directory.path().join("site")).unwrap().0);
    }

    #[test]
    fn bytes_that_changed_on_disk_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let site = log(directory.path(), "site");
        site.append(from_hub(1), &mut b"unmistakable".as_slice(), &|| WallMicros(3_000)).unwrap();
        drop(site);
        let logs = directory.path().join("site");
        for file in std::fs::read_dir(logs.join("F")).unwrap().map(|entry| entry.unwrap().path()) {
            let mut bytes = std::fs::read(&file).unwrap();
            if let Some(at) = bytes.windows(12).position(|window| window == b"unmistakable") {
                bytes[at] ^= 1;
                std::fs::write(&file, bytes).unwrap();
            }
        }
        assert_eq!(read(&logs).unwrap().0.damaged, 1);
    }
}
