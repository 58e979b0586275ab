//! Checking one product's bytes again, after a recipient reported that they are not as announced.

use std::{fs::File, io, sync::Arc};

use downburst_model::Sequence;

use crate::{
    Copied, Damage, FeedLog, LogError,
    segment::index::Row,
    segment::place::BytesPlace,
    segment::scanner::copy_checked,
    segment::{Segment, body},
};

impl FeedLog {
    /// Reads a product's bytes and checks their digest. Damaged bytes are no longer served, and the product no
    /// longer counts as a duplicate, so that its source may deliver it again.
    ///
    /// A product is reported damaged once, and gone from then on.
    pub fn examine(&self, sequence: Sequence) -> Result<Copied, LogError> {
        let Some((segment, row)) = self.locate(sequence.0) else { return Ok(Copied::Gone) };
        if !segment.has_bytes() || segment.is_damaged(row.sequence) {
            return Ok(Copied::Gone);
        }
        let damage = self.damage_of(&segment, &row)?;
        // A body is missing without damage if the segment was evicted since.
        let Some(damage) = damage.filter(|_| segment.has_bytes()) else {
            return Ok(if segment.has_bytes() { Copied::Intact } else { Copied::Gone });
        };
        if segment.mark_damaged(row.sequence) {
            self.keys().remove(&row);
        }
        Ok(Copied::Damaged(damage))
    }

    /// The damage of a product; `None` if it is intact.
    fn damage_of(&self, segment: &Segment, row: &Row) -> Result<Option<Damage>, LogError> {
        let failed = |action, error| LogError::io(action, &segment.path, error);
        let whole = |path| Some(Damage { segment: path, offset: 0, bytes: row.size });
        let Some(header) = segment.header(row, self.identity.salt)? else {
            return Ok(whole(segment.path.clone()));
        };
        let file = match File::open(&segment.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(whole(segment.path.clone())),
            opened => Arc::new(opened.map_err(|error| failed("open", error))?),
        };
        let place =
            BytesPlace::find(&file, &segment.path, row).map_err(|error| failed("open the body of", error))?;
        let Some(BytesPlace { file, path, offset }) = place else {
            return Ok(whole(body::path(&segment.path, row.sequence)));
        };
        let is_intact = copy_checked(&file, offset, row.size, &header.metadata.digest, &mut |_| Ok(()))
            .map_err(|error| LogError::io("read", &path, error))?;
        Ok((!is_intact).then_some(Damage { segment: path, offset, bytes: row.size }))
    }
}
