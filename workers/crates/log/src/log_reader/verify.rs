//! Reading every record of a log from the outside and checking it.

use std::{path::PathBuf, thread};

use downburst_model::Sequence;

use crate::{
    LogError, LogReader, files,
    log_reader::part::{FileHeader, Part, describe},
    segment::body,
    segment::index::{Index, Row},
    segment::record::{self, Header, Place},
    segment::scanner::{Found, LOOK_INTERVAL, LOOKS, SegmentScanner, copy_checked, header_at},
};

/// A damaged place in a file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The file.
    pub path: PathBuf,
    /// Its offset.
    pub offset: u64,
    /// The product, if it is known.
    pub sequence: Option<Sequence>,
    /// The damage and its consequence.
    pub sentence: String,
}

/// A report made during a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// This many more bytes were read from disk.
    Read(u64),
    /// Damage was found.
    Flaw(Flaw),
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Products whose bytes are intact.
    pub products: u64,
    /// Remembered products whose bytes are evicted and whose description is intact.
    pub remembered: u64,
    /// The number of reported flaws.
    pub flaws: u64,
}

impl LogReader {
    /// Reads every record, checks its checksum and the digest of its bytes, and passes flaws and progress to
    /// `report`.
    ///
    /// Records that a writer has begun but not finished are not damage; neither are bytes evicted during the
    /// check.
    pub fn verify(&self, report: &mut dyn FnMut(Finding)) -> Result<Verified, LogError> {
        let mut check = Check { reader: self, report, verified: Verified::default() };
        for base in self.bases()? {
            check.part(base)?;
        }
        Ok(check.verified)
    }
}

struct Check<'a> {
    reader: &'a LogReader,
    report: &'a mut dyn FnMut(Finding),
    verified: Verified,
}

impl Check<'_> {
    fn part(&mut self, base: u64) -> Result<(), LogError> {
        let mut part = self.reader.part(base)?;
        let index_path = files::index_path(&self.reader.dir, base);
        if part.index.is_none() && index_path.exists() {
            // It may have been sealed between two looks.
            part = self.reader.part(base)?;
            if part.index.is_none() && index_path.exists() {
                let sentence = match part.file {
                    Some(_) => "the index is damaged; the node rebuilds it from the segment when it starts",
                    None => "the index is damaged, and with it the memory of products that were evicted",
                };
                self.flaw(index_path.clone(), 0, None, sentence);
            }
        }
        if !self.file_header(&part)? {
            return Ok(());
        }
        match part.index.take() {
            Some(index) => self.rows(&part, &index, index_path),
            None => match part.scanner()? {
                Some(scanner) => self.scan(scanner),
                None => Ok(()),
            },
        }
    }

    /// False if nothing after a damaged file header can be trusted to belong to this log.
    fn file_header(&mut self, part: &Part) -> Result<bool, LogError> {
        let Some(file) = &part.file else { return Ok(true) };
        let state = part.file_header(file)?;
        if state == FileHeader::Good || (state == FileHeader::Blank && part.index.is_none()) {
            return Ok(true);
        }
        self.flaw(part.path.clone(), 0, None, "the header of the segment is damaged or of another log");
        Ok(part.index.is_some())
    }

    fn rows(&mut self, part: &Part, index: &Index, index_path: PathBuf) -> Result<(), LogError> {
        for row in (0..index.len()).map_while(|at| index.row(at)) {
            let place = Place { salt: self.reader.identity.salt, offset: row.offset };
            let copy = index.header(&row).and_then(|copy| record::decode(place, &copy));
            let good = copy.is_some_and(|header| header.sequence == row.sequence);
            if !good {
                let sentence = "the index's copy of a product's description doesn't match its checksum";
                self.flaw(index_path.clone(), row.header_at, Some(row.sequence), sentence);
            }
            match &part.file {
                Some(_) => self.row(part, &row, place),
                None if good => self.verified.remembered += 1,
                None => {}
            }
        }
        Ok(())
    }

    fn row(&mut self, part: &Part, row: &Row, place: Place) {
        let Some(file) = &part.file else { return };
        let header = header_at(file, place).ok().flatten();
        match header.filter(|header| header.sequence == row.sequence) {
            Some(header) => {
                let found = Found { header, offset: row.offset, skipped_from: None };
                let scanner = SegmentScanner::new(file.clone(), part.path.clone(), place.salt);
                self.bytes(&scanner, &found);
            }
            None => {
                let sentence = "the header of a record doesn't match its checksum; the product can't be read";
                self.flaw(part.path.clone(), row.offset, Some(row.sequence), sentence);
            }
        }
    }

    fn scan(&mut self, mut scanner: SegmentScanner) -> Result<(), LogError> {
        loop {
            let place = scanner.offset;
            match scanner.next(true) {
                Ok(Some(found)) => {
                    if let Some(from) = found.skipped_from {
                        let sentence = format!("{} bytes can't be read as records", found.offset - from);
                        self.flaw(scanner.path.clone(), from, None, &sentence);
                    }
                    scanner.settle(&found)?;
                    self.bytes(&scanner, &found);
                }
                Ok(None) => return self.end(&mut scanner),
                Err(error) => {
                    self.flaw(scanner.path, place, None, &format!("the file can't be read on: {error}"));
                    return Ok(());
                }
            }
        }
    }

    /// A header is written as a whole, after its bytes: a mark without a header is damage unless it is being written.
    fn end(&mut self, scanner: &mut SegmentScanner) -> Result<(), LogError> {
        for _ in 0..LOOKS {
            if !scanner.is_stuck()? {
                return Ok(());
            }
            thread::sleep(LOOK_INTERVAL);
        }
        let sentence = "the header of the last record doesn't match its checksum; the product can't be read";
        self.flaw(scanner.path.clone(), scanner.offset, None, sentence);
        Ok(())
    }

    fn bytes(&mut self, scanner: &SegmentScanner, found: &Found) {
        let Header { size, sequence, .. } = found.header;
        let info = describe(&self.reader.identity, &found.header);
        let id = info.id.as_str();
        let Ok(Some(place)) = scanner.place_of_bytes(found) else {
            if self.is_evicted(scanner) {
                return;
            }
            let sentence =
                format!("the file with the {size} bytes of product {id:?} is missing or has another length");
            return self.flaw(body::path(&scanner.path, sequence), 0, Some(sequence), &sentence);
        };
        let report = &mut self.report;
        let good = copy_checked(&place.file, place.offset, size, &info.digest, &mut |piece| {
            report(Finding::Read(piece.len() as u64));
            Ok(())
        });
        if good.unwrap_or(false) {
            self.verified.products += 1;
        } else {
            let sentence = format!("the {size} bytes of product {id:?} don't have its digest");
            self.flaw(place.path, place.offset, Some(sequence), &sentence);
        }
    }

    /// True if the segment was deleted during the check, and its bodies with it.
    fn is_evicted(&self, scanner: &SegmentScanner) -> bool {
        !scanner.path.exists()
    }

    fn flaw(&mut self, path: PathBuf, offset: u64, sequence: Option<u64>, sentence: &str) {
        self.verified.flaws += 1;
        let (sequence, sentence) = (sequence.map(Sequence), sentence.to_owned());
        (self.report)(Finding::Flaw(Flaw { path, offset, sequence, sentence }));
    }
}
