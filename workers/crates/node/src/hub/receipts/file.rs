//! One file of receipts during writing.
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use downburst_model::moment::log_time;
use downburst_model::{Micros, WallMicros};

use super::Batch;
use super::columns::Columns;
use super::directory::{COMPLETE, Contents, UNFINISHED};

/// The file to which receipts are written at present.
pub(super) struct Receiving {
    path: PathBuf,
    stream: StreamWriter<BufWriter<File>>,
    columns: Columns,
    contents: Contents,
    pub(super) begun: Micros,
    /// The time since which rows wait for the next flush.
    pub(super) unflushed: Option<Micros>,
}

impl Receiving {
    /// Creates a file named after the current time.
    pub(super) fn begin(directory: &Path, wall: WallMicros, now: Micros) -> Result<Self, ArrowError> {
        let (path, file) = create(directory, wall)?;
        let columns = Columns::new();
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let stream = StreamWriter::try_new_with_options(BufWriter::new(file), columns.schema(), options)?;
        Ok(Self { path, stream, columns, contents: Contents::default(), begun: now, unflushed: None })
    }

    /// Adds a site's receipts, and writes once enough are buffered. False: another name does not fit into this file.
    pub(super) fn add(&mut self, batch: &Batch, now: Micros) -> Result<bool, ArrowError> {
        let Some(site) = self.columns.site(&batch.site) else { return Ok(false) };
        for row in &batch.rows {
            if !self.columns.push(site, batch.clock, row) {
                return Ok(false);
            }
            self.contents.add(&row.receipt.key);
        }
        self.unflushed.get_or_insert(now);
        if self.columns.len() >= ROWS_AT_ONCE {
            self.write()?;
        }
        Ok(true)
    }

    /// The number of rows that are not in the file yet.
    pub(super) fn rows_waiting(&self) -> u64 {
        self.columns.len() as u64
    }

    /// The number of rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.contents.rows
    }

    /// Writes all rows so far to the file, where other processes see them.
    pub(super) fn flush(&mut self) -> Result<(), ArrowError> {
        self.write()?;
        self.unflushed = None;
        self.stream.flush()
    }

    /// Ends the stream and gives the file its final name.
    pub(super) fn complete(mut self) -> Result<(), ArrowError> {
        self.flush()?;
        self.stream.finish()?;
        self.contents.write(&self.path)?;
        Ok(fs::rename(&self.path, self.path.with_extension(COMPLETE))?)
    }

    fn write(&mut self) -> Result<(), ArrowError> {
        if self.columns.len() == 0 {
            return Ok(());
        }
        let rows = self.columns.take()?;
        self.stream.write(&rows)
    }
}

/// Creates a file under the first free name from now on: a clock that was set back may have used the name.
fn create(directory: &Path, wall: WallMicros) -> io::Result<(PathBuf, File)> {
    for micros in 0..NAMES_TRIED {
        let stem = log_time(WallMicros(wall.0.saturating_add(micros)));
        let path = directory.join(format!("{stem}.{UNFINISHED}"));
        if path.with_extension(COMPLETE).exists() {
            continue;
        }
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Large enough that columns compress and headers cost nothing, small enough to hold in memory: about 2 MB.
const ROWS_AT_ONCE: usize = 16_384;
const NAMES_TRIED: i64 = 1_000;
