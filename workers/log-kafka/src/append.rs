//! Appending: small products in groups, large ones part by part.

use std::io::Read;

use bytes::Bytes;
use downburst_log::{Appended, Clock, LogError, NewProduct};
use downburst_model::{Digest, ProductInfo, ProductKey, Sequence, WallMicros};

use crate::{
    KafkaLog,
    index::{Index, Keys},
    record::{PART_BYTES, Row},
    writer::{Delivery, Failure, Writer},
};

/// Products of a group that will be stored.
struct Draft {
    rows: Vec<(Row, Bytes)>,
    keys: Keys,
}

/// Why a product is undone after parts of it were sent.
enum Halt {
    Repeats(u64),
    Refused(LogError),
}

/// What a product's bytes were found to be.
struct Found {
    size: u64,
    digest: Digest,
    stored: WallMicros,
}

impl KafkaLog {
    pub(crate) fn append_from(
        &self,
        product: NewProduct,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<Appended, LogError> {
        let mut writer = self.writer();
        let first = read_part(&product, bytes)?;
        if first.len() < PART_BYTES {
            let mut results = self.append_group(&mut writer, vec![(product, first.into())], clock);
            return results.pop().unwrap_or_else(|| Err(LogError::Closed { feed: self.feed.clone() }));
        }
        let sent = writer.transact(|writer| self.send_large(writer, product, first, bytes, clock));
        match sent {
            Ok((row, noted)) => {
                let appended = stored(&row);
                self.publish(&writer, vec![(row, noted)])?;
                Ok(appended)
            }
            Err(Halt::Repeats(of)) => Ok(Appended::Duplicate { of: Sequence(of) }),
            Err(Halt::Refused(error)) => Err(error),
        }
    }

    /// One transaction for all of them.
    pub(crate) fn append_group(
        &self,
        writer: &mut Writer,
        products: Vec<(NewProduct, Bytes)>,
        clock: Clock<'_>,
    ) -> Vec<Result<Appended, LogError>> {
        if products.is_empty() {
            return Vec::new();
        }
        let now = clock();
        let mut draft = Draft { rows: Vec::new(), keys: Keys::default() };
        let results: Vec<Result<Appended, LogError>> = {
            let index = self.index();
            products
                .into_iter()
                .map(|(product, bytes)| self.stage(&index, &mut draft, product, bytes, now))
                .collect()
        };
        if draft.rows.is_empty() {
            return results;
        }
        let head = self.index().head;
        let sent = writer.transact(|writer| send_group(writer, draft.rows));
        match sent.and_then(|rows| self.publish(writer, rows)) {
            Ok(()) => results,
            Err(failure) => results.into_iter().map(|result| undo(result, head, &failure)).collect(),
        }
    }

    fn stage(
        &self,
        index: &Index,
        draft: &mut Draft,
        product: NewProduct,
        bytes: Bytes,
        stored_at: WallMicros,
    ) -> Result<Appended, LogError> {
        let digest = Digest(*blake3::hash(&bytes).as_bytes());
        let found = Found { size: bytes.len() as u64, digest, stored: stored_at };
        self.check(&product, &found)?;
        let repeated = |keys: &Keys| keys.find(product.source.as_ref(), &product.id, found.size, &digest);
        if let Some(of) = repeated(&index.keys).or_else(|| repeated(&draft.keys)) {
            return Ok(Appended::Duplicate { of: Sequence(of) });
        }
        let row = self.describe(product, index.head + 1 + draft.rows.len() as u64, found);
        let appended = stored(&row);
        draft.keys.insert(&row);
        draft.rows.push((row, bytes));
        Ok(appended)
    }

    /// Sends parts as they come. Only the last one tells whether the product is one that the log wants.
    fn send_large(
        &self,
        writer: &Writer,
        product: NewProduct,
        first: Vec<u8>,
        bytes: &mut dyn Read,
        clock: Clock<'_>,
    ) -> Result<(Row, Delivery), Halt> {
        let sequence = self.index().head + 1;
        let place = writer.part(sequence, 0, &first)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&first);
        let (mut parts, mut part) = (1, read_part(&product, bytes)?);
        while !part.is_empty() {
            self.check_size(&product, hasher.count() + part.len() as u64)?;
            hasher.update(&part);
            writer.part(sequence, parts, &part)?;
            parts += 1;
            part = read_part(&product, bytes)?;
        }
        let digest = Digest(*hasher.finalize().as_bytes());
        let found = Found { size: hasher.count(), digest, stored: clock() };
        self.check(&product, &found)?;
        if let Some(of) =
            self.index().keys.find(product.source.as_ref(), &product.id, found.size, &found.digest)
        {
            return Err(Halt::Repeats(of));
        }
        writer.flush()?;
        let mut row = self.describe(product, sequence, found);
        (row.offset, row.parts) = (writer.offset(&place)?, parts);
        let noted = writer.note(&row)?;
        writer.flush()?;
        Ok((row, noted))
    }

    fn check(&self, product: &NewProduct, found: &Found) -> Result<(), LogError> {
        self.check_size(product, found.size)?;
        match (product.expected_size, product.expected_digest) {
            (Some(expected), _) if expected != found.size => {
                Err(LogError::SizeMismatch { id: product.id.clone(), expected, found: found.size })
            }
            (_, Some(expected)) if expected != found.digest => {
                Err(LogError::DigestMismatch { id: product.id.clone(), expected, found: found.digest })
            }
            _ => Ok(()),
        }
    }

    fn check_size(&self, product: &NewProduct, size: u64) -> Result<(), LogError> {
        let limit_bytes = self.options.max_product_bytes;
        if size > limit_bytes {
            return Err(LogError::TooLarge { id: product.id.clone(), limit_bytes });
        }
        Ok(())
    }

    fn describe(&self, product: NewProduct, sequence: u64, found: Found) -> Row {
        let key = ProductKey { feed: self.feed.clone(), epoch: self.epoch, sequence: Sequence(sequence) };
        let NewProduct { id, origin, created, class, source, hops, .. } = product;
        let Found { size, digest, stored } = found;
        let info = ProductInfo { key, id, origin, created, stored, size, digest, class, hops };
        Row { info, source, offset: 0, parts: 0 }
    }

    /// Makes committed products visible.
    fn publish(&self, writer: &Writer, rows: Vec<(Row, Delivery)>) -> Result<(), Failure> {
        let head = {
            let mut index = self.index_mut();
            for (row, noted) in rows {
                index.insert(row, writer.offset(&noted)?);
            }
            index.head
        };
        self.tell(head);
        Ok(())
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure.into())
    }
}

impl From<LogError> for Halt {
    fn from(error: LogError) -> Self {
        Self::Refused(error)
    }
}

fn send_group(writer: &Writer, rows: Vec<(Row, Bytes)>) -> Result<Vec<(Row, Delivery)>, Failure> {
    let sent = rows.into_iter().map(|(row, bytes)| {
        let (place, parts) = writer.product(row.sequence(), &bytes)?;
        Ok((row, place, parts))
    });
    let sent = sent.collect::<Result<Vec<_>, Failure>>()?;
    writer.flush()?;
    let noted = sent.into_iter().map(|(row, place, parts)| {
        let row = Row { offset: writer.offset(&place)?, parts, ..row };
        let noted = writer.note(&row)?;
        Ok((row, noted))
    });
    let noted = noted.collect::<Result<Vec<_>, Failure>>()?;
    writer.flush()?;
    Ok(noted)
}

/// What was to be stored failed with its group, and with it what would have repeated it.
fn undo(result: Result<Appended, LogError>, head: u64, failure: &Failure) -> Result<Appended, LogError> {
    match result {
        Ok(Appended::Stored { .. }) => Err(failure.clone().into()),
        Ok(Appended::Duplicate { of }) if of.0 > head => Err(failure.clone().into()),
        settled => settled,
    }
}

fn stored(row: &Row) -> Appended {
    Appended::Stored { sequence: row.info.key.sequence, info: row.info.clone() }
}

/// Less than a part is the end.
fn read_part(product: &NewProduct, bytes: &mut dyn Read) -> Result<Vec<u8>, LogError> {
    let mut part = Vec::new();
    match bytes.take(PART_BYTES as u64).read_to_end(&mut part) {
        Ok(_) => Ok(part),
        Err(source) => Err(LogError::Source { id: product.id.clone(), source }),
    }
}
