//! The bytes of a product on their way into a segment or a body, before its record.

use std::io::{self, Read};

use downburst_model::ProductId;

use crate::{
    Durability, LogError, LogOptions, NewProduct,
    disk::File,
    feed_log::active::Active,
    feed_log::hashing::{BUFFER_BYTES, ContentHasher, Contents, fill},
    feed_log::spool::Spool,
    segment::body,
};

/// The source of a product's bytes.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack, for the length of an append")]
pub(crate) enum Source<'a> {
    Reader(&'a mut dyn Read),
    /// A file whose digest is known.
    Spool(Spool<'a>),
}

/// A product on its way into the tail of the segment.
pub(super) struct Draft<'a> {
    pub(super) active: &'a Active,
    pub(super) target: Target,
    /// The number of bytes written.
    pub(super) size: u64,
}

/// The place of a product's bytes.
pub(super) enum Target {
    Segment {
        at: u64,
    },
    /// A file of their own, once there are bytes.
    Body {
        sequence: u64,
        file: Option<File>,
    },
}

impl Draft<'_> {
    /// Copies and hashes in one pass, then checks the announced size and digest.
    pub(super) fn copy(
        &mut self,
        product: &NewProduct,
        bytes: &mut dyn Read,
        buffer: &mut Vec<u8>,
        options: &LogOptions,
    ) -> Result<Contents, LogError> {
        buffer.resize(BUFFER_BYTES, 0);
        let id = || product.id.clone();
        let mut hashing = ContentHasher::for_rule(options.duplicate_rule, product.ldm.is_some());
        loop {
            let filled = fill(bytes, buffer).map_err(|source| LogError::Source { id: id(), source })?;
            if filled.is_empty() {
                break;
            }
            let size = self.size + filled.len() as u64;
            check_size(&product.id, size, options.max_product_bytes, product.expected_size)?;
            hashing.update(filled);
            // Counted first, so that a write that stops half-way is released completely.
            let at = self.size;
            self.size = size;
            self.write(filled, at, options)?;
        }
        let contents = hashing.finish();
        contents.check(product)?;
        Ok(contents)
    }

    /// Turns a complete file into the body.
    pub(super) fn adopt(&mut self, spool: Spool<'_>, options: &LogOptions) -> Result<Contents, LogError> {
        let segment = &self.active.segment.path;
        if let Target::Body { sequence, .. } = self.target {
            let is_durable = options.durability == Durability::Power;
            spool.put(segment, sequence, is_durable).map_err(|error| self.failed("write", error))?;
        }
        self.size = spool.contents.size;
        Ok(spool.contents)
    }

    /// Writes at an offset of the product.
    fn write(&mut self, bytes: &[u8], at: u64, options: &LogOptions) -> Result<(), LogError> {
        let active = self.active;
        let failed = |error| active.failed("write", error);
        match &mut self.target {
            Target::Segment { at: begin } => active.file.write_all_at(bytes, *begin + at).map_err(failed),
            Target::Body { file: Some(file), .. } => file.write_all_at(bytes, at).map_err(failed),
            Target::Body { sequence, file } => {
                let is_durable = options.durability == Durability::Power;
                let created = body::create(&active.segment.path, *sequence, is_durable).map_err(failed)?;
                file.insert(created).write_all_at(bytes, at).map_err(failed)
            }
        }
    }

    /// Makes the body durable if the feed requires it: its bytes and its name precede the record.
    pub(super) fn sync_body(&self, options: &LogOptions) -> Result<(), LogError> {
        match &self.target {
            Target::Body { sequence, .. } if options.durability == Durability::Power => {
                body::sync(&self.active.segment.path, &[*sequence])
                    .map_err(|error| self.failed("sync", error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn write_header(&self, bytes: &[u8], at: u64) -> Result<(), LogError> {
        self.active.file.write_all_at(bytes, at).map_err(|error| self.failed("write", error))
    }

    pub(super) fn sync(&self, options: &LogOptions) -> Result<(), LogError> {
        match options.durability {
            Durability::Process => Ok(()),
            Durability::Power => self.active.file.sync_data().map_err(|error| self.failed("sync", error)),
        }
    }

    pub(super) fn failed(&self, action: &'static str, error: io::Error) -> LogError {
        self.active.failed(action, error)
    }
}

pub(crate) fn check_size(
    id: &ProductId,
    size: u64,
    limit_bytes: u64,
    expected: Option<u64>,
) -> Result<(), LogError> {
    match expected {
        _ if size > limit_bytes => Err(LogError::TooLarge { id: id.clone(), limit_bytes }),
        Some(expected) if size > expected => {
            Err(LogError::SizeMismatch { id: id.clone(), expected, found: size })
        }
        _ => Ok(()),
    }
}
