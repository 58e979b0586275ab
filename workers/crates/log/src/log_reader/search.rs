//! Finding products by id, or by the beginning of a digest.
//!
//! Rows are searched from the newest to the oldest. A row is compared by its print, eight bytes of a hash, so that
//! a million of them cost some milliseconds; only matching rows are read and compared in full.

use std::ops::ControlFlow;

use downburst_model::{ProductId, ProductInfo, Sequence};

use crate::{
    FeedLog, LogEntry, LogError, ProductLog,
    segment::Segment,
    segment::index::{Prints, Row, id_print},
};

/// The value to search for.
#[derive(Clone, Debug, PartialEq)]
pub enum Sought {
    /// The whole identifier.
    Id(ProductId),
    /// The first hexadecimal digits of the digest, in lower case.
    Digest(String),
}

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// The number of products after which the search ends.
    pub entries: usize,
    /// The maximum number of rows to check.
    pub rows: u64,
}

/// The extent of a look back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookedBack {
    /// The number of products shown.
    pub shown: u64,
    /// Every remembered product after this one was shown.
    pub searched_to: Sequence,
    /// True if the range holds nothing more.
    pub complete: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// The newest first.
    pub entries: Vec<LogEntry>,
    /// Every remembered product after this one was checked.
    pub searched_to: Sequence,
    /// False if a limit ended the search: there may be older ones.
    pub complete: bool,
}

impl FeedLog {
    /// The newest matching products before a sequence, including those without bytes.
    pub fn search(
        &self,
        sought: &Sought,
        before: Sequence,
        limits: SearchLimits,
    ) -> Result<Searched, LogError> {
        let Some(print) = Print::of(sought) else { return Ok(Searched::nothing()) };
        let segments: Vec<_> =
            self.segments().range(..before.0).map(|(_, segment)| segment.clone()).collect();
        let mut found = Searched { searched_to: before, ..Searched::nothing() };
        let mut rows_left = limits.rows;
        for segment in segments.iter().rev() {
            let mut candidates = Vec::new();
            let ended = segment.visit_backwards(before.0, |row| {
                if rows_left == 0 {
                    return ControlFlow::Break(());
                }
                rows_left -= 1;
                found.searched_to = Sequence(row.sequence.saturating_sub(1));
                if print.agrees(&row.prints) {
                    candidates.push(row);
                }
                ControlFlow::Continue(())
            });
            if self.take_candidates(sought, &candidates, limits.entries, &mut found)? || ended.is_break() {
                return Ok(Searched { complete: false, ..found });
            }
        }
        Ok(Searched { searched_to: Sequence(0), ..found })
    }

    /// Shows the products with `after < sequence < before`, the newest first and including those without bytes,
    /// until `visit` breaks off or `most` were shown. The flag passed with each is true if its bytes are kept.
    pub fn look_back(
        &self,
        after: Sequence,
        before: Sequence,
        most: u64,
        mut visit: impl FnMut(&ProductInfo, bool) -> ControlFlow<()>,
    ) -> Result<LookedBack, LogError> {
        let mut looked = LookedBack { shown: 0, searched_to: before, complete: false };
        let segments: Vec<_> =
            self.segments().range(..before.0).map(|(_, segment)| segment.clone()).collect();
        for segment in segments.iter().rev() {
            // Rows are taken in small lots, so that appenders do not wait for the search.
            loop {
                let rows = rows_before(segment, looked.searched_to.0);
                if rows.is_empty() {
                    break;
                }
                for row in &rows {
                    if row.sequence <= after.0 {
                        return Ok(LookedBack { searched_to: after, complete: true, ..looked });
                    }
                    if looked.shown == most {
                        return Ok(looked);
                    }
                    looked.searched_to = Sequence(row.sequence);
                    let Some(header) = segment.header(row, self.identity.salt)? else { continue };
                    looked.shown += 1;
                    if visit(&self.info(&header), segment.has_bytes()).is_break() {
                        return Ok(looked);
                    }
                }
            }
        }
        Ok(LookedBack { searched_to: after, complete: true, ..looked })
    }

    /// Reads the matching rows; returns true if enough products were found.
    fn take_candidates(
        &self,
        sought: &Sought,
        candidates: &[Row],
        enough: usize,
        found: &mut Searched,
    ) -> Result<bool, LogError> {
        for row in candidates {
            let entry = self.entry(Sequence(row.sequence))?.filter(|entry| sought.is(&entry.info));
            found.entries.extend(entry);
            if found.entries.len() >= enough {
                found.searched_to = Sequence(row.sequence.saturating_sub(1));
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Sought {
    fn is(&self, info: &ProductInfo) -> bool {
        match self {
            Self::Id(id) => info.id == *id,
            Self::Digest(prefix) => info.digest.to_string().starts_with(prefix),
        }
    }
}

impl Searched {
    fn nothing() -> Self {
        Self { entries: Vec::new(), searched_to: Sequence(0), complete: true }
    }
}

/// Some rows before a sequence, the newest first; none if there are no more.
fn rows_before(segment: &Segment, before: u64) -> Vec<Row> {
    let mut rows = Vec::with_capacity(ROWS_AT_ONCE);
    let _ = segment.visit_backwards(before, |row| {
        rows.push(row);
        if rows.len() < ROWS_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    rows
}

/// The print that a row must match.
enum Print {
    Id(u64),
    /// The first bits of the digest, and a mask of the known ones.
    Digest {
        bits: u64,
        mask: u64,
    },
}

impl Print {
    /// `None` if nothing can match.
    fn of(sought: &Sought) -> Option<Self> {
        match sought {
            Sought::Id(id) => Some(Self::Id(id_print(id))),
            Sought::Digest(prefix) if prefix.is_empty() || prefix.len() > DIGEST_DIGITS => None,
            Sought::Digest(prefix) => {
                let known = prefix.get(..prefix.len().min(PRINT_DIGITS))?;
                let unknown_bits = u32::try_from(4 * (PRINT_DIGITS - known.len())).ok()?;
                let bits = u64::from_str_radix(known, 16).ok()?.checked_shl(unknown_bits).unwrap_or(0);
                Some(Self::Digest { bits, mask: u64::MAX.checked_shl(unknown_bits).unwrap_or(0) })
            }
        }
    }

    fn agrees(&self, prints: &Prints) -> bool {
        match self {
            Self::Id(print) => prints.id == *print,
            // A print is the first bytes of the digest as a little-endian number; digits are written big-endian.
            Self::Digest { bits, mask } => prints.digest.swap_bytes() & mask == *bits,
        }
    }
}

/// Hexadecimal digits of a digest, and of a print.
const DIGEST_DIGITS: usize = 64;
const PRINT_DIGITS: usize = 16;

const ROWS_AT_ONCE: usize = 1_024;
