//! Manifests that come in parts, because their properties are long.
use std::collections::BTreeMap;

use downburst_model::{RangeSet, Sequence};

use crate::packet::payload::{Manifest, ManifestPart};

/// The manifests of which some part is missing.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    open: BTreeMap<Sequence, Open>,
}

#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    /// The positions that came, counted from 1.
    came: RangeSet,
}

impl Assembly {
    /// Takes a part; returns the manifest once all its bytes are there. A part that does not match the earlier ones is
    /// passed over, and so is a complete manifest of another product: the leg then lacks its product.
    pub(crate) fn take(&mut self, part: &ManifestPart) -> Option<Manifest> {
        let open = self.open.entry(part.sequence).or_insert_with(|| Open::new(part.total_bytes));
        open.put(part);
        if open.is_complete() {
            let bytes = self.open.remove(&part.sequence)?.bytes;
            return Manifest::decode(&bytes).filter(|manifest| manifest.info.key.sequence == part.sequence);
        }
        while self.open.len() > MOST_OPEN {
            self.open.pop_first();
        }
        None
    }
}

impl Open {
    fn new(total_bytes: u16) -> Self {
        Self { bytes: vec![0; usize::from(total_bytes)], came: RangeSet::new() }
    }

    fn put(&mut self, part: &ManifestPart) {
        let from = usize::from(part.offset);
        let to = from.saturating_add(part.bytes.len());
        let matches = usize::from(part.total_bytes) == self.bytes.len();
        if let Some(place) = self.bytes.get_mut(from..to).filter(|place| matches && !place.is_empty()) {
            place.copy_from_slice(&part.bytes);
            self.came.insert(from as u64 + 1, to as u64);
        }
    }

    fn is_complete(&self) -> bool {
        self.came.count() == self.bytes.len() as u64
    }
}

/// A sender announces at most 16 products of each of four classes ahead of their bytes; the rest is for lost packets.
const MOST_OPEN: usize = 256;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_model::{
        Class, Digest, Epoch, FeedName, Origin, ProductId, ProductInfo, ProductKey, Properties, WallMicros,
    };
    use proptest::prelude::*;

    use super::*;

    fn manifest(sequence: u64, properties_bytes: usize) -> Manifest {
        let feed = FeedName::parse("F").unwrap();
        let info = ProductInfo {
            key: ProductKey { feed, epoch: Epoch(1), sequence: Sequence(sequence) },
            id: ProductId::parse("x").unwrap(),
            origin: Origin::parse("hub").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size: 5,
            digest: Digest([1; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: Properties::new(&vec![7; properties_bytes]),
        };
        Manifest { previous: Sequence(sequence - 1), info }
    }

    /// The parts of an encoded manifest, cut at these positions.
    fn parts(sequence: u64, encoded: &Bytes, cuts: &[usize]) -> Vec<ManifestPart> {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % encoded.len()).collect();
        ends.extend([0, encoded.len()]);
        ends.sort_unstable();
        let part = |pair: &[usize]| ManifestPart {
            sequence: Sequence(sequence),
            offset: pair[0] as u16,
            total_bytes: encoded.len() as u16,
            bytes: encoded.slice(pair[0]..pair[1]),
        };
        ends.windows(2).filter(|pair| pair[0] < pair[1]).map(part).collect()
    }

    proptest! {
        #[test]
        fn parts_in_any_order_make_the_manifest_once(
            cuts in prop::collection::vec(any::<usize>(), 0..12),
            rotated: usize,
            bytes in 1..8_192_usize,
        ) {
            let made = manifest(9, bytes);
            let mut parts = parts(9, &made.encode(), &cuts);
            let by = rotated % parts.len();
            parts.rotate_left(by);
            let (last, rest) = parts.split_last().unwrap();
            let mut assembly = Assembly::default();
            for part in rest.iter().chain(rest) {
                prop_assert_eq!(assembly.take(part), None);
            }
            prop_assert_eq!(assembly.take(last), Some(made));
            prop_assert!(assembly.open.is_empty());
        }
    }

    #[test]
    fn parts_of_two_manifests_or_of_another_product_make_none() {
        let mut assembly = Assembly::default();
        let (one, other) = (manifest(9, 900).encode(), manifest(9, 901).encode());
        assert_eq!(assembly.take(&parts(9, &one, &[400])[0]), None);
        assert_eq!(assembly.take(&parts(9, &other, &[400])[1]), None, "another length");
        assert_eq!(assembly.take(&parts(8, &one, &[])[0]), None, "another number");
        assert_eq!(assembly.take(&parts(9, &one, &[400])[1]), Some(manifest(9, 900)));
    }

    #[test]
    fn parts_without_an_end_take_a_bounded_room() {
        let mut assembly = Assembly::default();
        let encoded = manifest(9, 900).encode();
        for sequence in 1..2_000 {
            assert_eq!(assembly.take(&parts(sequence, &encoded, &[400])[0]), None);
        }
        assert_eq!(assembly.open.len(), MOST_OPEN);
    }
}
