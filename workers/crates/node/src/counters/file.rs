//! The two files of counters: the newest rows, and the ones before them. Each has a header and at most 4 MB.
use std::io;
use std::path::{Path, PathBuf};

use downburst_host::CounterRow;
use downburst_model::WallMicros;

use crate::disk;

/// The file of the newest rows, to append to.
pub(super) struct RowsFile {
    directory: PathBuf,
    with_disk: bool,
    file: disk::File,
    bytes: u64,
    last: Option<WallMicros>,
}

impl RowsFile {
    /// Goes on behind the rows of an earlier run. A file with other columns becomes the former one, and a damaged one
    /// is begun anew.
    pub(super) fn open(directory: &Path, with_disk: bool) -> io::Result<Self> {
        disk::make_directory(directory)?;
        let path = directory.join(NEWEST);
        let Some(content) = read(&path)? else { return Self::begin(directory, with_disk) };
        let Some(kept) = Kept::of(&content) else {
            if !content.is_empty() {
                tracing::warn!("{} is damaged; it begins anew", path.display());
            }
            return Self::begin(directory, with_disk);
        };
        if kept.with_disk != with_disk {
            return Self::rotate(directory, with_disk);
        }
        let file = disk::File::open_or_create(&path)?;
        file.set_len(kept.bytes)?;
        Ok(Self { directory: directory.to_owned(), with_disk, file, bytes: kept.bytes, last: kept.last })
    }

    /// True if its rows have a column for the disk.
    pub(super) fn has_disk(&self) -> bool {
        self.with_disk
    }

    /// Appends the row of a moment, after a rotation if there is no room. A row that is not later than the one before
    /// it is left out; after a long step of the clock into the past, a new file begins.
    pub(super) fn write(mut self, at: WallMicros, line: &str) -> io::Result<Self> {
        if let Some(last) = self.last.filter(|last| at <= *last) {
            if last.0.abs_diff(at.0) < STEP_US {
                return Ok(self);
            }
            self = Self::rotate(&self.directory, self.with_disk)?;
        }
        if self.bytes + line.len() as u64 > FILE_BYTES {
            self = Self::rotate(&self.directory, self.with_disk)?;
        }
        if let Err(error) = self.file.write_all_at(line.as_bytes(), self.bytes) {
            // A part of a row on a full disk.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += line.len() as u64;
        self.last = Some(at);
        Ok(self)
    }

    fn rotate(directory: &Path, with_disk: bool) -> io::Result<Self> {
        disk::rename(&directory.join(NEWEST), &directory.join(FORMER))?;
        Self::begin(directory, with_disk)
    }

    fn begin(directory: &Path, with_disk: bool) -> io::Result<Self> {
        let file = disk::File::create(&directory.join(NEWEST))?;
        let header = CounterRow::header(with_disk);
        file.write_all_at(header.as_bytes(), 0)?;
        Ok(Self { directory: directory.to_owned(), with_disk, file, bytes: header.len() as u64, last: None })
    }
}

/// The whole rows of a file.
struct Kept {
    with_disk: bool,
    bytes: u64,
    last: Option<WallMicros>,
}

impl Kept {
    /// Reads the rows up to the last whole one; `None` if the file is damaged.
    fn of(content: &[u8]) -> Option<Self> {
        let bytes = content.iter().rposition(|byte| *byte == b'\n')? + 1;
        let text = std::str::from_utf8(content.get(..bytes)?).ok()?;
        let with_disk = [true, false].into_iter().find(|it| text.starts_with(&CounterRow::header(*it)))?;
        let mut last = None;
        for line in text.lines().skip(1) {
            let at = time_of(line, CounterRow::header(with_disk).matches(',').count())?;
            if last.is_some_and(|last| at <= last) {
                return None;
            }
            last = Some(at);
        }
        Some(Self { with_disk, bytes: bytes as u64, last })
    }
}

/// The time of a row with so many commas; all columns but the host are numbers.
fn time_of(line: &str, commas: usize) -> Option<WallMicros> {
    let mut cells = line.split(',');
    let at = cells.next()?.parse().ok()?;
    let are_numbers = cells.skip(1).all(|cell| cell.parse::<f64>().is_ok_and(f64::is_finite));
    (are_numbers && line.matches(',').count() == commas).then_some(WallMicros(at))
}

/// The content of a file; `None` if there is none. One that is too long is not of this program.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > FILE_BYTES => Ok(Some(b"\n".to_vec())),
        Ok(_) => std::fs::read(path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

const NEWEST: &str = "newest.csv";
const FORMER: &str = "former.csv";

/// Half a day of rows.
const FILE_BYTES: u64 = 4_000_000;

/// Time synchronisation corrects a clock by less.
const STEP_US: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn row(second: i64) -> (WallMicros, String) {
        let at = WallMicros(second * 1_000_000);
        (at, format!("{},hub,0.5000,0.0000,{second},{second},0.10\n", at.0))
    }

    fn write(file: RowsFile, seconds: impl IntoIterator<Item = i64>) -> RowsFile {
        seconds.into_iter().fold(file, |file, second| {
            let (at, line) = row(second);
            file.write(at, &line).unwrap()
        })
    }

    /// The seconds of a file's rows.
    fn seconds(directory: &Path, name: &str) -> Vec<i64> {
        let text = fs::read_to_string(directory.join(name)).unwrap_or_default();
        text.lines().skip(1).map(|line| time_of(line, 6).unwrap().0 / 1_000_000).collect()
    }

    #[test]
    fn a_new_run_goes_on_behind_the_last_whole_row() {
        let home = tempfile::tempdir().unwrap();
        write(RowsFile::open(home.path(), false).unwrap(), 1..4);
        let path = home.path().join(NEWEST);
        let torn = [fs::read(&path).unwrap(), b"4000000,hu".to_vec()].concat();
        fs::write(&path, torn).unwrap();
        write(RowsFile::open(home.path(), false).unwrap(), 3..6);
        assert_eq!(seconds(home.path(), NEWEST), [1, 2, 3, 4, 5]);
        assert!(!home.path().join(FORMER).exists());
    }

    #[test]
    fn files_are_bounded_and_the_former_one_gives_way() {
        let home = tempfile::tempdir().unwrap();
        let many = i64::try_from(FILE_BYTES).unwrap() / 20;
        write(RowsFile::open(home.path(), false).unwrap(), 0..many);
        let bytes = |name: &str| fs::metadata(home.path().join(name)).unwrap().len();
        assert!(
            bytes(NEWEST) <= FILE_BYTES && bytes(FORMER) <= FILE_BYTES && bytes(FORMER) > FILE_BYTES - 100
        );
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        let kept = [seconds(home.path(), FORMER), seconds(home.path(), NEWEST)].concat();
        assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1) && kept.last() == Some(&(many - 1)));
        assert!(kept[0] > 0, "the oldest rows are gone");
    }

    #[test]
    fn a_short_step_of_the_clock_leaves_rows_out_and_a_long_one_begins_a_file() {
        let home = tempfile::tempdir().unwrap();
        let file = write(RowsFile::open(home.path(), false).unwrap(), [1_000, 990, 1_000, 1_001]);
        assert_eq!(seconds(home.path(), NEWEST), [1_000, 1_001]);
        write(file, [100, 101]);
        assert_eq!(seconds(home.path(), FORMER), [1_000, 1_001]);
        assert_eq!(seconds(home.path(), NEWEST), [100, 101]);
    }

    #[test]
    fn other_columns_begin_a_file_and_a_damaged_one_begins_anew() {
        let home = tempfile::tempdir().unwrap();
        write(RowsFile::open(home.path(), false).unwrap(), 1..3);
        assert!(RowsFile::open(home.path(), true).unwrap().has_disk());
        assert_eq!(seconds(home.path(), FORMER), [1, 2]);
        let path = home.path().join(NEWEST);
        let good = CounterRow::header(false) + &row(1).1 + &row(2).1;
        let too_long = "x".repeat(usize::try_from(FILE_BYTES).unwrap() + 1);
        let damaged = [
            "",
            "\n",
            "time",
            "time,host\n1,2\n",
            &good.replace("0.5", "x.5"),
            &(row(5).1 + &good),
            &too_long,
        ];
        for text in damaged.into_iter().chain([good.replace("2000000", "1000000").as_str()]) {
            fs::write(&path, text).unwrap();
            write(RowsFile::open(home.path(), false).unwrap(), [7]);
            assert_eq!(seconds(home.path(), NEWEST), [7], "{}", &text[..text.len().min(40)]);
        }
    }
}
