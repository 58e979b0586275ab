//! Bytes of products: unique, incompressible, and cheap to generate.

/// A block of noise from which products are cut.
pub(crate) struct Content {
    noise: Vec<u8>,
}

impl Content {
    /// The same noise each time.
    pub(crate) fn new() -> Self {
        let mut noise = vec![0; NOISE_BYTES];
        blake3::Hasher::new_derive_key("downburst load of a measurement").finalize_xof().fill(&mut noise);
        Self { noise }
    }

    /// Fills `out` with the bytes of product `number`: noise from an offset of its own, with the number in front.
    pub(crate) fn write(&self, number: u64, bytes: usize, out: &mut Vec<u8>) {
        out.clear();
        let mut at = usize::try_from(number.wrapping_mul(STRIDE) % NOISE_BYTES as u64).unwrap_or(0);
        while out.len() < bytes {
            let piece = self.noise.get(at..).unwrap_or_default();
            out.extend_from_slice(piece.get(..bytes - out.len()).unwrap_or(piece));
            at = 0;
        }
        out.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, digit)| *byte = digit);
    }
}

/// Larger than the caches, so that consecutive products differ.
const NOISE_BYTES: usize = 8 << 20;
/// Odd, and far from a power of two.
const STRIDE: u64 = 1_000_003;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_their_size_and_differ() {
        let content = Content::new();
        let of = |number, bytes| {
            let mut out = vec![1; 9];
            content.write(number, bytes, &mut out);
            out
        };
        for bytes in [0, 1, 7, 8, 2_000, NOISE_BYTES + 5] {
            assert_eq!(of(3, bytes).len(), bytes);
        }
        assert_eq!(of(3, 100), of(3, 100));
        assert_ne!(of(3, 100), of(4, 100));
        assert_ne!(of(3, 100)[8..], of(4, 100)[8..], "the number is not the only difference");
    }
}
