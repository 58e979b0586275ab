//! The taking role.
use std::collections::BTreeMap;

use blake3::Hasher;
use bytes::{Buf as _, Bytes, BytesMut};
use downburst_model::{Digest, Sequence};
use downburst_session::FetchProduct;

use crate::wire::{END, LACK, LACK_BYTES, PRODUCT, PRODUCT_HEAD_BYTES, REFUSED, Refusal};

/// Reads the answer of a sibling. Only products that the hub described pass, with their size, once each; the last
/// piece of a product passes only if its digest is right.
#[derive(Debug)]
pub struct Taking {
    /// The products that have not come.
    awaited: BTreeMap<Sequence, (u64, Digest)>,
    bytes: BytesMut,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    sequence: Sequence,
    size: u64,
    digest: Digest,
    next: u64,
    hasher: Box<Hasher>,
}

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// Bytes of a product.
    Piece(Piece),
    /// The sibling no longer has a product.
    Lacks(Sequence),
    /// The answer is over.
    End,
    /// The sibling gives nothing more, for this reason.
    Refused(Refusal),
}

/// Bytes of a product.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// The product.
    pub sequence: Sequence,
    /// Their offset in it.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// The sibling's answer is wrong; nothing more is read from it. Names the product whose bytes are spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rubbish(pub Option<Sequence>);

impl Taking {
    /// Awaits these products.
    pub fn new(products: &[FetchProduct]) -> Self {
        let awaited = products.iter().map(|product| (product.sequence, (product.size, product.digest)));
        Self { awaited: awaited.collect(), bytes: BytesMut::new(), current: None }
    }

    /// Takes bytes of the answer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of products that have not come whole.
    pub fn left(&self) -> usize {
        self.awaited.len().saturating_add(usize::from(self.current.is_some()))
    }

    /// The next part of the answer, or `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// The answer is wrong.
    pub fn take(&mut self) -> Result<Option<Taken>, Rubbish> {
        if self.current.is_some() {
            return self.piece();
        }
        let Some(kind) = self.bytes.first().copied() else { return Ok(None) };
        match kind {
            PRODUCT if self.bytes.len() >= PRODUCT_HEAD_BYTES => self.begin(),
            LACK if self.bytes.len() >= LACK_BYTES => {
                self.bytes.advance(1);
                let sequence = Sequence(self.bytes.get_u64());
                let (_, _) = self.awaited.remove(&sequence).ok_or(Rubbish(None))?;
                Ok(Some(Taken::Lacks(sequence)))
            }
            REFUSED if self.bytes.len() >= 2 => {
                self.bytes.advance(1);
                Ok(Some(Taken::Refused(Refusal::of(self.bytes.get_u8()))))
            }
            END => Ok(Some(Taken::End)),
            PRODUCT | LACK | REFUSED => Ok(None),
            _ => Err(Rubbish(None)),
        }
    }

    fn begin(&mut self) -> Result<Option<Taken>, Rubbish> {
        self.bytes.advance(1);
        let (sequence, size) = (Sequence(self.bytes.get_u64()), self.bytes.get_u64());
        let (expected, digest) = self.awaited.remove(&sequence).ok_or(Rubbish(None))?;
        if size != expected || size == 0 {
            return Err(Rubbish(None));
        }
        let hasher = Box::new(Hasher::new());
        self.current = Some(Current { sequence, size, digest, next: 0, hasher });
        self.piece()
    }

    /// The bytes at hand of the current product. Its last bytes wait until all of them are there.
    fn piece(&mut self) -> Result<Option<Taken>, Rubbish> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let left = current.size.saturating_sub(current.next);
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.bytes.len());
        if here == 0 {
            return Ok(None);
        }
        let (sequence, offset) = (current.sequence, current.next);
        let bytes = self.bytes.split_to(here).freeze();
        current.hasher.update(&bytes);
        current.next = offset.saturating_add(here as u64);
        if current.next == current.size {
            let is_right = *current.hasher.finalize().as_bytes() == current.digest.0;
            self.current = None;
            if !is_right {
                return Err(Rubbish(Some(sequence)));
            }
        }
        Ok(Some(Taken::Piece(Piece { sequence, offset, bytes })))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{end, lacks, product, refused};

    fn bytes_of(sequence: u64) -> Vec<u8> {
        (0..sequence * 700).map(|at| (at * sequence) as u8).collect()
    }

    fn awaited(sequence: u64) -> FetchProduct {
        let bytes = bytes_of(sequence);
        let digest = Digest(*blake3::hash(&bytes).as_bytes());
        FetchProduct { sequence: Sequence(sequence), size: bytes.len() as u64, digest }
    }

    fn answer(sequences: &[u64]) -> Vec<u8> {
        let mut all = Vec::new();
        for sequence in sequences {
            let bytes = bytes_of(*sequence);
            all.extend_from_slice(&product(*sequence, bytes.len() as u64));
            all.extend_from_slice(&bytes);
        }
        all.extend_from_slice(&end());
        all
    }

    /// The products that pass, and how the answer ended.
    fn taken(answer: &[u8], chunk: usize) -> (BTreeMap<u64, Vec<u8>>, Result<Option<Taken>, Rubbish>) {
        let mut taking = Taking::new(&[awaited(3), awaited(4), awaited(9)]);
        let mut came = BTreeMap::<u64, Vec<u8>>::new();
        for part in answer.chunks(chunk) {
            taking.push(part);
            loop {
                match taking.take() {
                    Ok(Some(Taken::Piece(piece))) => {
                        let bytes = came.entry(piece.sequence.0).or_default();
                        assert_eq!(bytes.len() as u64, piece.offset);
                        bytes.extend_from_slice(&piece.bytes);
                    }
                    Ok(Some(Taken::Lacks(_))) => {}
                    Ok(None) => break,
                    last => return (came, last),
                }
            }
        }
        (came, Ok(None))
    }

    proptest! {
        #[test]
        fn products_pass_whole_in_chunks_of_any_size(chunk in 1_usize..5_000) {
            let (came, end) = taken(&answer(&[9, 3, 4]), chunk);
            prop_assert_eq!(end, Ok(Some(Taken::End)));
            for (sequence, bytes) in came {
                prop_assert_eq!(bytes, bytes_of(sequence));
            }
        }

        #[test]
        fn no_product_with_a_wrong_byte_passes_whole(at in 0_usize..11_300, chunk in 1_usize..5_000, flip in 1_u8..) {
            let mut bad = answer(&[3, 4, 9]);
            prop_assume!(at < bad.len());
            bad[at] ^= flip;
            let (came, _) = taken(&bad, chunk);
            for (sequence, bytes) in came {
                let whole = bytes_of(sequence);
                prop_assert!(bytes.len() < whole.len() || bytes == whole);
            }
        }

        #[test]
        fn any_bytes_end_without_a_panic_and_pass_nothing_whole(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let (came, _) = taken(&bytes, 7);
            prop_assert!(came.iter().all(|(sequence, bytes)| bytes.len() < bytes_of(*sequence).len()));
        }
    }

    #[test]
    fn what_was_not_asked_for_is_rubbish() {
        let of = |bytes: &[u8]| taken(bytes, 64).1;
        assert_eq!(of(&answer(&[5])), Err(Rubbish(None)), "a product without a description");
        assert_eq!(of(&answer(&[3, 3])), Err(Rubbish(None)), "twice");
        assert_eq!(of(&product(3, 1)), Err(Rubbish(None)), "another size");
        assert_eq!(of(&product(3, u64::MAX)), Err(Rubbish(None)));
        assert_eq!(of(&lacks(5)), Err(Rubbish(None)));
        assert_eq!(of(b"HTTP/1.1"), Err(Rubbish(None)));
        let mut wrong = answer(&[3]);
        wrong[20] ^= 1;
        assert_eq!(of(&wrong), Err(Rubbish(Some(Sequence(3)))));
    }

    #[test]
    fn lacks_and_refusals_are_distinguished() {
        let some = [lacks(3), refused(Refusal::DayIsSpent)].concat();
        assert_eq!(taken(&some, 4).1, Ok(Some(Taken::Refused(Refusal::DayIsSpent))));
        let mut taking = Taking::new(&[awaited(3), awaited(4)]);
        taking.push(&lacks(3));
        assert_eq!(taking.take(), Ok(Some(Taken::Lacks(Sequence(3)))));
        assert_eq!(taking.left(), 1);
    }
}
