use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{ProductInfo, RangeSet, Sequence};

use crate::ReceiverOutput;
use crate::packet::payload::{Frame, Manifest, ManifestPart};
use crate::packet::raw::RawPayload;
use crate::packet::slice::Slice;
use crate::receiver::assembly::Assembly;
use crate::receiver::outputs::Outputs;

/// A receiver's knowledge of the products on the leg, and the blocks received before the manifest of their product.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// Sequences up to here precede the join.
    after: Sequence,
    /// Sequences that are announced, or known to have no product on the leg.
    known: RangeSet,
    held: BTreeMap<Sequence, Vec<Held>>,
    held_bytes: usize,
    assembly: Assembly,
    /// The last HEAD reported.
    told: Option<(Sequence, Sequence)>,
}

#[derive(Debug)]
struct Held {
    packet: u64,
    offset: u64,
    bytes: Slice,
}

/// A packet's content, with all frames parsed.
#[derive(Debug)]
pub(crate) struct Content {
    announced: Sequence,
    parts: Vec<Part>,
    proofs: Vec<Bytes>,
    lists: Vec<Bytes>,
}

#[derive(Debug)]
enum Part {
    Manifest(Box<Manifest>),
    Block { sequence: Sequence, offset: u64, bytes: Slice },
    Head(Sequence),
    OfManifest(ManifestPart),
}

impl Content {
    /// `None` if the payload or a manifest in it is malformed.
    pub(crate) fn read(payload: &RawPayload) -> Option<Self> {
        let (announced, frames) = payload.frames()?;
        let parts = Vec::with_capacity(USUAL_PARTS);
        let mut content = Self { announced, parts, proofs: Vec::new(), lists: Vec::new() };
        for frame in frames {
            content.parts.push(match frame? {
                Frame::Manifest(encoded) => Part::Manifest(Manifest::decode(&encoded)?.into()),
                Frame::Block { sequence, offset, bytes } => Part::Block { sequence, offset, bytes },
                Frame::Head(head) => Part::Head(head),
                Frame::Part(part) => Part::OfManifest(part),
                Frame::Proof(proof) => {
                    content.proofs.push(proof);
                    continue;
                }
                Frame::List(list) => {
                    content.lists.push(list);
                    continue;
                }
            });
        }
        Some(content)
    }

    /// True if it has a frame that a receiver acts on, other than blocks and proofs.
    pub(crate) fn speaks(&self) -> bool {
        !self.lists.is_empty() || self.parts.iter().any(|part| !matches!(part, Part::Block { .. }))
    }

    /// True if it has proofs and nothing else.
    pub(crate) fn only_proves(&self) -> bool {
        self.parts.is_empty() && self.lists.is_empty() && !self.proofs.is_empty()
    }

    /// The lists of hashes of other packets.
    pub(crate) fn lists(&self) -> &[Bytes] {
        &self.lists
    }

    pub(crate) fn proofs(&self) -> &[Bytes] {
        &self.proofs
    }

    /// The products that it announces.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &ProductInfo> {
        self.parts.iter().filter_map(|part| match part {
            Part::Manifest(manifest) => Some(&manifest.info),
            _ => None,
        })
    }

    pub(crate) fn announced(&self) -> Sequence {
        self.announced
    }
}

impl Catalogue {
    /// Joins: all products after `after` are announced from now on.
    pub(crate) fn join(&mut self, after: Sequence) {
        self.after = after;
        self.known.insert(0, after.0);
    }

    /// True if there is room for the content's blocks of unknown products. There always is for the oldest missing
    /// packet: no manifest of its blocks can still arrive, and it may contain the manifest that the others wait
    /// for.
    pub(crate) fn has_room(&self, packet: u64, content: &Content, oldest_missing: Option<u64>) -> bool {
        if oldest_missing.is_none_or(|missing| packet <= missing) {
            return true;
        }
        let more = content.parts.iter().map(|part| self.to_hold_bytes(part)).sum::<usize>();
        more == 0 || self.held_bytes.saturating_add(more) <= HELD_LIMIT_BYTES
    }

    /// The content, with the manifests that its parts complete in place of the parts.
    pub(crate) fn completed(&mut self, mut content: Content) -> Content {
        let complete = |part| match part {
            Part::OfManifest(part) => self.assembly.take(&part).map(|it| Part::Manifest(it.into())),
            whole => Some(whole),
        };
        content.parts = content.parts.into_iter().filter_map(complete).collect();
        content
    }

    /// Takes a packet's [`completed`](Self::completed) content, and adds the resulting outputs. `oldest_missing`
    /// determines whether an unknown manifest can still arrive.
    pub(crate) fn accept(
        &mut self,
        packet: u64,
        content: Content,
        oldest_missing: Option<u64>,
        outputs: &mut Outputs,
    ) {
        let mut announced = content.announced;
        for part in content.parts {
            match part {
                Part::Manifest(manifest) => {
                    announced = announced.max(manifest.info.key.sequence);
                    self.announce(*manifest, outputs);
                }
                Part::Block { sequence, offset, bytes } if self.known.contains(sequence.0) => {
                    if sequence > self.after {
                        outputs.push_block(sequence, offset, bytes);
                    }
                }
                Part::Block { sequence, offset, bytes } => {
                    if oldest_missing.is_some_and(|missing| missing < packet) {
                        self.hold(sequence, Held { packet, offset, bytes });
                    }
                }
                Part::Head(head) => self.head(announced, head, outputs),
                Part::OfManifest(_) => {}
            }
        }
    }

    /// Drops the blocks for which no manifest can arrive any more.
    pub(crate) fn drop_orphans(&mut self, oldest_missing: Option<u64>) {
        let held_bytes = &mut self.held_bytes;
        self.held.retain(|_, blocks| {
            let first = blocks.iter().map(|held| held.packet).min();
            let hope = oldest_missing.is_some_and(|missing| first.is_some_and(|first| missing < first));
            if !hope {
                *held_bytes = held_bytes.saturating_sub(blocks.iter().map(Held::memory_bytes).sum());
            }
            hope
        });
    }

    fn to_hold_bytes(&self, part: &Part) -> usize {
        match part {
            Part::Block { sequence, bytes, .. } if !self.known.contains(sequence.0) => held_bytes(bytes),
            _ => 0,
        }
    }

    fn announce(&mut self, manifest: Manifest, outputs: &mut Outputs) {
        let Manifest { previous, info } = manifest;
        let sequence = info.key.sequence;
        if sequence <= self.after || self.known.contains(sequence.0) {
            return;
        }
        self.known.insert(previous.0.saturating_add(1), sequence.0);
        outputs.push_back(ReceiverOutput::Announce { previous, info });
        for held in self.held.remove(&sequence).unwrap_or_default() {
            self.held_bytes = self.held_bytes.saturating_sub(held.memory_bytes());
            outputs.push_block(sequence, held.offset, held.bytes);
        }
    }

    fn hold(&mut self, sequence: Sequence, held: Held) {
        self.held_bytes = self.held_bytes.saturating_add(held.memory_bytes());
        self.held.entry(sequence).or_default().push(held);
    }

    fn head(&mut self, previous: Sequence, head: Sequence, outputs: &mut Outputs) {
        if self.told != Some((previous, head)) {
            self.told = Some((previous, head));
            outputs.push_back(ReceiverOutput::Head { previous, head });
        }
    }
}

impl Held {
    fn memory_bytes(&self) -> usize {
        held_bytes(&self.bytes)
    }
}

/// A held block keeps the memory of its whole datagram.
fn held_bytes(bytes: &[u8]) -> usize {
    bytes.len().saturating_add(1_500)
}

/// A packet of a large product has one block.
const USUAL_PARTS: usize = 1;

/// The limit on blocks held for missing manifests; packets beyond it count as missing themselves.
pub(crate) const HELD_LIMIT_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::packet::payload::Payload;

    fn block(sequence: u64) -> Content {
        let bytes = Bytes::from_static(b"bytes").into();
        let frames = vec![Frame::Block { sequence: Sequence(sequence), offset: 0, bytes }];
        let mut buffer = BytesMut::new();
        Payload { announced: Sequence(0), frames, padding: 0 }.write(&mut buffer);
        Content::read(&RawPayload::split(buffer.freeze())).unwrap()
    }

    #[test]
    fn orphans_are_dropped_and_the_others_kept() {
        let mut catalogue = Catalogue::default();
        catalogue.join(Sequence(0));
        let mut nothing = Outputs::default();
        catalogue.accept(5, block(1), Some(4), &mut nothing);
        catalogue.accept(6, block(1), Some(4), &mut nothing);
        catalogue.accept(9, block(2), Some(4), &mut nothing);
        assert!(nothing.is_empty(), "nothing is known, so nothing is output");
        assert_eq!(catalogue.held_bytes, 3 * held_bytes(&Bytes::from_static(b"bytes")));
        catalogue.drop_orphans(Some(7));
        assert_eq!(catalogue.held.keys().collect::<Vec<_>>(), [&Sequence(2)]);
        assert_eq!(catalogue.held_bytes, held_bytes(&Bytes::from_static(b"bytes")));
        catalogue.drop_orphans(None);
        assert_eq!((catalogue.held.len(), catalogue.held_bytes), (0, 0));
    }

    #[test]
    fn a_block_whose_manifest_cannot_come_is_not_held() {
        let mut catalogue = Catalogue::default();
        catalogue.join(Sequence(0));
        catalogue.accept(5, block(1), Some(6), &mut Outputs::default());
        catalogue.accept(5, block(1), None, &mut Outputs::default());
        assert!(catalogue.held.is_empty());
    }
}
