//! Checking one product's bytes again, after a recipient reported that they are not as announced.

use std::{fs::File, io};

use downburst_model::Sequence;

use crate::{Copied, Damage, FeedLog, LogEntry, LogError, segment::scanner::copy_checked};

impl FeedLog {
    /// Reads a product's bytes and checks their digest. Damaged bytes are no longer served, and the product no
    /// longer counts as a duplicate, so that its source may deliver it again.
    ///
    /// A product is reported damaged once, and gone from then on.
    pub fn examine(&self, sequence: Sequence) -> Result<Copied, LogError> {
        let Some((segment, row)) = self.locate(sequence.0) else { return Ok(Copied::Gone) };
        let Some(LogEntry { info, bytes: Some(_), .. }) = self.read_entry(sequence)? else {
            return Ok(Copied::Gone);
        };
        let file = match File::open(&segment.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Copied::Gone),
            opened => opened.map_err(|error| LogError::io("open", &segment.path, error))?,
        };
        let offset = row.offset + u64::from(row.header_bytes);
        let examined = copy_checked(&file, offset, info.size, &info.digest, &mut |_| Ok(()));
        if examined.map_err(|error| LogError::io("read", &segment.path, error))? {
            return Ok(Copied::Intact);
        }
        if segment.mark_damaged(row.sequence) {
            self.keys().remove(&row);
        }
        Ok(Copied::Damaged(Damage { segment: segment.path.clone(), offset, bytes: row.size }))
    }
}
