//! The schedule of products: a text file with one product per line, in order of time.

use std::path::Path;

use crate::Outcome;

/// One product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Due {
    /// Time after the beginning, in microseconds.
    pub(crate) at_us: u64,
    pub(crate) feed: String,
    pub(crate) bytes: usize,
    pub(crate) id: String,
}

/// Reads lines of `AT_MICROSECONDS FEED BYTES ID`; the id may contain spaces.
pub(crate) fn read(path: &Path) -> Outcome<Vec<Due>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    text.lines().enumerate().map(|(at, line)| parse(line).ok_or_else(|| wrong(path, at + 1, line))).collect()
}

fn parse(line: &str) -> Option<Due> {
    let mut fields = line.splitn(4, ' ');
    let (at_us, feed, bytes, id) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Due {
        at_us: at_us.parse().ok()?,
        feed: feed.to_owned(),
        bytes: bytes.parse().ok()?,
        id: id.to_owned(),
    })
}

fn wrong(path: &Path, number: usize, line: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("{}, line {number}: '{line}' is not 'AT_MICROSECONDS FEED BYTES ID'", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_wrong_ones_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("schedule");
        std::fs::write(&path, "0 F 10 an id with spaces\n250 IDS|DDPLUS 0 b\n").unwrap();
        let due = read(&path).unwrap();
        assert_eq!(due[0].id, "an id with spaces");
        assert_eq!(due[1], Due { at_us: 250, feed: "IDS|DDPLUS".to_owned(), bytes: 0, id: "b".to_owned() });
        std::fs::write(&path, "0 F 10 a\n0 F ten b\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 2: '0 F ten b'"));
    }
}
