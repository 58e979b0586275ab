use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{LegId, RangeSet, Sequence};

use crate::SenderKey;
use crate::catalogue::Content;
use crate::proof::{Hash, Proof, Verifier, content_hash};

/// Holds packets of the group back until the sender's proof shows that they exist, and that what they say of products is the
/// sender's. Whoever has the group's key can make datagrams that open; only the sender can make proofs.
///
/// | packet | event | next |
/// |---|---|---|
/// | above what is proven, at most [`AHEAD`] | comes | held, two candidates at most |
/// | farther above | comes | refused: nothing is asked because of it |
/// | held | its batch is proven | passed; with manifests or a head only if its hash is the proof's |
/// | held | a later batch is proven, its own is not: *dark* | passed if it has blocks only, else held on |
/// | proven | comes later | passed; with manifests or a head only if its hash is the proof's |
///
/// Blocks are not proven: a product's digest, which its manifest tells, decides on them.
pub(crate) struct Gate {
    verifier: Verifier,
    /// All numbers up to here exist. `None` before the first proof.
    top: Option<u64>,
    /// Stretches up to `top` whose own proof has not come. Each ends with the packet that carries one.
    dark: RangeSet,
    /// Dark packets that were passed because they have blocks only. Their proof may say otherwise.
    shown: RangeSet,
    /// What the proven packets with manifests or a head hash to that have not come.
    expected: BTreeMap<u64, Hash>,
    held: BTreeMap<u64, Vec<Held>>,
}

struct Held {
    payload: Bytes,
    content: Content,
}

/// What comes of a packet, in this order.
#[derive(Debug)]
pub(crate) enum Passage {
    /// The first proof came: the leg begins here for this receiver.
    Join { first: u64, announced: Sequence },
    /// The packet exists, and it may be acted on.
    Packet(u64, Bytes, Content),
    /// The packet exists, and has not come.
    Exists(u64),
    /// Nobody but a member of the group can have made this.
    Forged,
    /// It came before.
    Repeated,
    /// What was passed under this number was forged.
    Missing(u64),
}

impl Gate {
    pub(crate) fn new(key: &SenderKey, leg: LegId, leg_epoch: u64) -> Self {
        Self {
            verifier: Verifier::new(key, leg, leg_epoch),
            top: None,
            dark: RangeSet::new(),
            shown: RangeSet::new(),
            expected: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// Takes a packet from the group.
    pub(crate) fn take(&mut self, packet: u64, payload: Bytes, content: Content) -> Vec<Passage> {
        let mut passages = Vec::new();
        let proofs = content.proofs().to_vec();
        self.put(packet, Held { payload, content }, &mut passages);
        proofs.iter().for_each(|proof| self.prove(proof, &mut passages));
        passages
    }

    /// True if packets up to here were sent for certain.
    pub(crate) fn is_proven(&self, packet: u64) -> bool {
        self.top.is_some_and(|top| packet <= top)
    }

    /// Takes a packet that came by the session, from the hub itself; returns what its proofs set free.
    pub(crate) fn trust(&mut self, packet: u64, content: &Content) -> Vec<Passage> {
        let mut passages = Vec::new();
        self.expected.remove(&packet);
        content.proofs().iter().for_each(|proof| self.prove(proof, &mut passages));
        passages
    }

    /// These packets don't matter any more.
    pub(crate) fn forget(&mut self, packets: &RangeSet) {
        for (first, last) in packets.iter() {
            self.dark.remove(first, last);
            self.shown.remove(first, last);
            self.expected.retain(|packet, _| !(first..=last).contains(packet));
            self.held.retain(|packet, _| !(first..=last).contains(packet));
        }
    }

    fn put(&mut self, packet: u64, held: Held, passages: &mut Vec<Passage>) {
        let top = self.top.unwrap_or(0);
        if self.top.is_some() && packet > top.saturating_add(AHEAD) {
            passages.push(Passage::Forged);
        } else if packet > top {
            self.hold(packet, held, passages);
        } else if !self.dark.contains(packet) {
            passages.push(self.pass(packet, held));
        } else if held.content.speaks() || self.dark.end_of_range_at(packet) == Some(packet) {
            self.hold(packet, held, passages);
        } else {
            self.shown.insert(packet, packet);
            passages.push(Passage::Packet(packet, held.payload, held.content));
        }
    }

    fn hold(&mut self, packet: u64, held: Held, passages: &mut Vec<Passage>) {
        let candidates = self.held.entry(packet).or_default();
        if candidates.len() >= CANDIDATES || candidates.iter().any(|other| other.payload == held.payload) {
            passages.push(Passage::Repeated);
        } else {
            candidates.push(held);
        }
        if self.held.len() > usize::try_from(AHEAD).unwrap_or(usize::MAX) {
            self.held.pop_first();
        }
    }

    /// Decides on a packet that comes when its batch is proven.
    fn pass(&mut self, packet: u64, held: Held) -> Passage {
        match self.expected.get(&packet) {
            Some(hash) if content_hash(&held.payload) == *hash => {
                self.expected.remove(&packet);
                Passage::Packet(packet, held.payload, held.content)
            }
            Some(_) => Passage::Forged,
            None if held.content.speaks() => Passage::Repeated,
            None => Passage::Packet(packet, held.payload, held.content),
        }
    }

    fn prove(&mut self, bytes: &[u8], passages: &mut Vec<Passage>) {
        let known = |(first, last)| self.top.is_some_and(|top| last <= top) && !self.is_dark(first, last);
        if Proof::range(bytes).is_some_and(known) {
            return;
        }
        match self.verifier.read(bytes) {
            Some(proof) => self.proven(proof, passages),
            None => passages.push(Passage::Forged),
        }
    }

    fn proven(&mut self, proof: Proof, passages: &mut Vec<Passage>) {
        let Proof { first, last, announced, controls } = proof;
        let top = self.top.unwrap_or_else(|| {
            self.held = self.held.split_off(&first);
            passages.push(Passage::Join { first, announced });
            first.saturating_sub(1)
        });
        self.top = Some(top.max(last));
        if top.saturating_add(1) < first {
            self.darken(top.saturating_add(1), first.saturating_sub(1), passages);
        }
        self.dark.remove(first, last);
        let carrier_before = first.saturating_sub(1);
        let carrier_before = self.dark.contains(carrier_before).then_some(carrier_before);
        let certain = controls.iter().map(|(packet, _)| *packet).chain(carrier_before);
        passages.extend(certain.filter(|packet| self.shown.contains(*packet)).map(Passage::Missing));
        self.shown.remove(first, last);
        self.expected.extend(controls);
        while self.expected.len() > EXPECTED {
            self.expected.pop_first();
        }
        let carrier_came = self.held.contains_key(&last);
        for (packet, candidates) in self.take_held(first, last) {
            self.choose(packet, candidates, passages);
        }
        if !carrier_came {
            passages.push(Passage::Exists(last));
        }
    }

    /// Decides between the candidates for a packet whose batch was proven just now.
    fn choose(&mut self, packet: u64, candidates: Vec<Held>, passages: &mut Vec<Passage>) {
        let hash = self.expected.get(&packet).copied();
        for held in candidates {
            let good = match hash {
                Some(hash) => content_hash(&held.payload) == hash,
                None => !held.content.speaks(),
            };
            if good {
                self.expected.remove(&packet);
            }
            passages.push(if good {
                Passage::Packet(packet, held.payload, held.content)
            } else {
                Passage::Forged
            });
        }
    }

    /// A later batch is proven: what is between exists. The last packet carries a proof, whatever came under its number.
    fn darken(&mut self, first: u64, last: u64, passages: &mut Vec<Passage>) {
        self.dark.insert(first, last);
        for (packet, candidates) in self.take_held(first, last) {
            for held in candidates {
                self.put(packet, held, passages);
            }
        }
    }

    fn take_held(&mut self, first: u64, last: u64) -> BTreeMap<u64, Vec<Held>> {
        let mut taken = self.held.split_off(&first);
        let mut later = taken.split_off(&last.saturating_add(1));
        self.held.append(&mut later);
        taken
    }

    fn is_dark(&self, first: u64, last: u64) -> bool {
        self.dark.gaps(first, last).next() != Some((first, last))
    }
}

/// How far above what is proven packets are held: three batches, and 12 MB with both candidates. A proof that is lost comes again with
/// the next one, so more is not needed, and an insider's numbers can't make anybody ask for more.
const AHEAD: u64 = 4_096;

/// The true packet and a forged one, whichever comes first. With more forgeries the true one is asked for.
const CANDIDATES: usize = 2;

/// Packets that are missing and have manifests: as many as a receiver may miss.
const EXPECTED: usize = 65_536;
