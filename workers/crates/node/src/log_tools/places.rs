//! Finds the logs below a directory.
use std::fs;
use std::path::{Path, PathBuf};

use downburst_log::LogReader;
use downburst_model::FeedName;

use super::Stop;

/// The directories of all logs in `dir`: itself, or those of a hub's or a site's data directory, in order of name.
pub(super) fn logs(dir: &Path) -> Result<Vec<PathBuf>, Stop> {
    if !dir.is_dir() {
        return Err(Stop::BadUse(format!("{} is not a directory; check the path", dir.display())));
    }
    if LogReader::is_log(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    // A log directory, a site's or a node's directory, a hub's.
    for parent in [dir.to_owned(), dir.join("log"), dir.join("node").join("log")] {
        let found = logs_in(&parent)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(Stop::BadUse(format!(
        "there is no product log in {}; name the log of a feed, or the data directory of a hub or a site",
        dir.display()
    )))
}

/// Opens all logs in `dir`, or the one of a feed.
pub(super) fn readers(dir: &Path, feed: Option<&str>) -> Result<Vec<LogReader>, Stop> {
    let mut readers = Vec::new();
    for log in logs(dir)? {
        readers.push(LogReader::open(&log)?);
    }
    let Some(feed) = feed else { return Ok(readers) };
    let feed = FeedName::parse(feed).map_err(|error| Stop::BadUse(error.to_string()))?;
    let names: Vec<&str> = readers.iter().map(|reader| reader.feed().as_str()).collect();
    let there =
        format!("there is no log of feed {feed} in {}; there are: {}", dir.display(), names.join(", "));
    readers.retain(|reader| *reader.feed() == feed);
    if readers.is_empty() { Err(Stop::BadUse(there)) } else { Ok(readers) }
}

fn logs_in(parent: &Path) -> Result<Vec<PathBuf>, Stop> {
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let unreadable =
        |error| Stop::Failed(format!("{} can't be listed: {error}; check its rights", parent.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        // A hidden log is the hub's own, for its proofs.
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && path.is_dir() && LogReader::is_log(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_from_every_directory_above_them() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join("node/log");
        for feed in ["B", "A", ".probe"] {
            fs::create_dir_all(log.join(feed)).unwrap();
            fs::write(log.join(feed).join("identity"), b"").unwrap();
        }
        fs::create_dir_all(log.join("lost+found")).unwrap();
        let both = vec![log.join("A"), log.join("B")];
        for dir in [root.path(), &root.path().join("node"), &log] {
            assert_eq!(logs(dir).unwrap(), both, "{}", dir.display());
        }
        assert_eq!(logs(&log.join("B")).unwrap(), [log.join("B")]);
    }

    #[test]
    fn a_directory_without_logs_is_bad_use() {
        let root = tempfile::tempdir().unwrap();
        for dir in [root.path(), &root.path().join("gone")] {
            assert!(matches!(logs(dir), Err(Stop::BadUse(_))), "{}", dir.display());
        }
    }
}
