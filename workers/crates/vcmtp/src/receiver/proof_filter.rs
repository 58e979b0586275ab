use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use downburst_model::{RangeSet, Sequence};

use crate::packet::raw::RawPayload;
use crate::proof::signature::{ProofVerifier, Refusal};
use crate::proof::{Hash, Proof, content_hash, read_list};
use crate::receiver::catalogue::Content;

/// Holds packets of the group until the sender's proof shows that they exist, and that their statements about
/// products are the sender's. Any holder of the group's key can make datagrams that open; only the sender can
/// make proofs.
///
/// | packet | event | next |
/// |---|---|---|
/// | above the proven packets, at most [`AHEAD`] | arrives | held, [`CANDIDATES`] of different content at most |
/// | farther above | arrives | refused: it causes no requests |
/// | held, hash known from proof or list | its batch is proven | its candidate is passed, the others are forged |
/// | held, blocks only, its list is missing | its batch is proven | waits for the list, and is not requested |
/// | held, its number is the proof's own | its batch is proven | passed if only that proof, or with the one before |
/// | held, blocks only, no hash | its batch is proven | passed if the only one, else in doubt: waits for the list |
/// | held | a later batch is proven, its own is not: *dark* | passed if the only candidate, blocks only; else held |
/// | proven | arrives later | passed if it has the hash, or if none is known and it has blocks only |
/// | symbol | arrives, and so does a proof with its hash, in any order | passed if it has the hash, else forged |
///
/// Packets with blocks only have a known hash for a while after a receiver reported a forged one to the
/// sender, and for a moment before that. Otherwise the product's digest in its manifest decides on them.
pub(crate) struct ProofFilter {
    verifier: ProofVerifier,
    /// All numbers up to here exist. `None` before the first proof.
    top: Option<u64>,
    /// Ranges up to `top` without their own proof. Each ends with the packet that carries one.
    dark: RangeSet,
    /// Dark packets that were passed because they have blocks only. Their proof may contradict that.
    shown: RangeSet,
    /// The hashes of proven packets with manifests or a head that have not arrived.
    expected: BTreeMap<u64, Hash>,
    held: BTreeMap<u64, Vec<Held>>,
    /// The hashes of packets with blocks only, from the sender's lists.
    listed: BTreeMap<u64, Hash>,
    /// Packets of batches with lists.
    awaited: RangeSet,
    /// Proven packets that carry only proofs.
    carriers: RangeSet,
    /// The last verified proof.
    latest: Bytes,
    /// Packets received before their list, and those in doubt.
    waiting: BTreeMap<u64, Vec<Held>>,
    /// Symbols without a proof yet, the oldest first.
    symbols: VecDeque<(u64, Bytes)>,
    /// The hashes of proven symbols that have not arrived.
    signed: BTreeMap<u64, Hash>,
}

struct Held {
    payload: RawPayload,
    content: Content,
}

/// The decision on a packet; several apply in order.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The first proof has arrived: the leg begins here for this receiver.
    Join { first: u64, announced: Sequence },
    /// The packet exists, and its content is accepted.
    Packet(u64, RawPayload, Content),
    /// A symbol of the sender, with its number and payload.
    Symbol(u64, Bytes),
    /// The packet exists, and has not arrived.
    Exists(u64),
    /// The packet exists, and was received; a list must confirm its content.
    Waits(u64),
    /// The packet exists; the sender is about to identify it among several candidates. If it does not, it is missing.
    InDoubt(u64),
    /// The packet is too far above the proven ones to be held.
    TooFar,
    /// A member of the group forged this.
    Forged,
    /// The packet was received before.
    Repeated,
    /// The packet passed under this number was forged, or none was passed so far.
    Missing(u64),
}

impl ProofFilter {
    pub(crate) fn new(verifier: ProofVerifier) -> Self {
        Self {
            verifier,
            top: None,
            dark: RangeSet::new(),
            shown: RangeSet::new(),
            expected: BTreeMap::new(),
            held: BTreeMap::new(),
            listed: BTreeMap::new(),
            awaited: RangeSet::new(),
            carriers: RangeSet::new(),
            latest: Bytes::new(),
            waiting: BTreeMap::new(),
            symbols: VecDeque::new(),
            signed: BTreeMap::new(),
        }
    }

    /// Takes a packet from the group.
    pub(crate) fn take(&mut self, packet: u64, payload: RawPayload, content: Content) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let proofs = content.proofs().to_vec();
        self.put(packet, Held { payload, content }, &mut verdicts);
        proofs.iter().for_each(|proof| self.prove(proof, &mut verdicts));
        self.release(&mut verdicts);
        verdicts
    }

    /// Takes a symbol from the group.
    pub(crate) fn take_symbol(&mut self, number: u64, payload: Bytes) -> Option<Verdict> {
        self.top?;
        match self.signed.get(&number) {
            Some(hash) if content_hash(&[&payload]) == *hash => {
                self.signed.remove(&number);
                return Some(Verdict::Symbol(number, payload));
            }
            Some(_) => return Some(Verdict::Forged),
            None => self.symbols.push_back((number, payload)),
        }
        if self.symbols.len() > SYMBOLS {
            self.symbols.pop_front();
        }
        None
    }

    /// Takes a packet from the session, sent by the hub itself; returns the verdicts that its proofs allow.
    pub(crate) fn trust(&mut self, packet: u64, content: &Content) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        self.expected.remove(&packet);
        self.waiting.remove(&packet);
        self.note_lists(content);
        content.proofs().iter().for_each(|proof| self.prove(proof, &mut verdicts));
        self.release(&mut verdicts);
        verdicts
    }

    /// Forgets packets that no longer matter. Packets with a list that may have been among them are missing.
    pub(crate) fn forget(&mut self, packets: &RangeSet) -> Vec<Verdict> {
        for (first, last) in packets.iter() {
            self.dark.remove(first, last);
            self.shown.remove(first, last);
            self.expected.retain(|packet, _| !(first..=last).contains(packet));
            self.held.retain(|packet, _| !(first..=last).contains(packet));
            self.waiting.retain(|packet, _| !(first..=last).contains(packet));
        }
        let last = packets.iter().last().map_or(0, |(_, last)| last);
        let unlisted = self.waiting.range(..=last).map(|(packet, _)| Verdict::Missing(*packet)).collect();
        self.waiting = self.waiting.split_off(&last.saturating_add(1));
        unlisted
    }

    fn put(&mut self, packet: u64, held: Held, verdicts: &mut Vec<Verdict>) {
        let top = self.top.unwrap_or(0);
        if self.top.is_some() && packet > top.saturating_add(AHEAD) {
            verdicts.push(Verdict::TooFar);
        } else if packet > top {
            self.hold(packet, held, verdicts);
        } else if !self.dark.contains(packet) {
            verdicts.extend(self.pass(packet, held));
        } else if held.content.speaks() || self.dark.end_of_range_at(packet) == Some(packet) {
            self.hold(packet, held, verdicts);
        } else {
            self.shown.insert(packet, packet);
            verdicts.push(Verdict::Packet(packet, held.payload, held.content));
        }
    }

    fn hold(&mut self, packet: u64, held: Held, verdicts: &mut Vec<Verdict>) {
        let candidates = self.held.entry(packet).or_insert_with(|| Vec::with_capacity(1));
        if candidates.iter().any(|other| other.payload == held.payload) {
            return verdicts.push(Verdict::Repeated);
        }
        if candidates.len() >= CANDIDATES {
            // Neither the first nor the last forgeries can displace the true packet.
            candidates.remove(CANDIDATES / 2);
        }
        candidates.push(held);
        if self.held.len() > usize::try_from(AHEAD).unwrap_or(usize::MAX) {
            self.held.pop_first();
        }
    }

    /// Decides on a packet that arrives after its batch is proven.
    fn pass(&mut self, packet: u64, held: Held) -> Option<Verdict> {
        Some(match self.hash_of(packet) {
            Some(hash) if held.payload.hash() == hash => self.passed(packet, held),
            Some(_) => Verdict::Forged,
            None if self.carriers.contains(packet) && !held.content.only_proves() => Verdict::Forged,
            None if held.content.speaks() => Verdict::Repeated,
            None if self.awaited.contains(packet) || self.waiting.contains_key(&packet) => {
                let candidates = self.waiting.entry(packet).or_default();
                let is_known = candidates.iter().any(|other| other.payload == held.payload);
                if !is_known && candidates.len() < CANDIDATES {
                    candidates.push(held);
                }
                return None;
            }
            None => Verdict::Packet(packet, held.payload, held.content),
        })
    }

    fn prove(&mut self, bytes: &Bytes, verdicts: &mut Vec<Verdict>) {
        let known = |(first, last)| self.top.is_some_and(|top| last <= top) && !self.is_dark(first, last);
        if Proof::range(bytes).is_some_and(known) {
            return;
        }
        match Proof::check(bytes, &self.verifier) {
            Ok(proof) => {
                let is_latest = self.top.is_none_or(|top| proof.last > top);
                self.proven(proof, bytes, verdicts);
                if is_latest {
                    self.latest = bytes.clone();
                }
            }
            Err(Refusal::Forged) => verdicts.push(Verdict::Forged),
            Err(Refusal::ForOthers) => {}
        }
    }

    fn proven(&mut self, proof: Proof, bytes: &Bytes, verdicts: &mut Vec<Verdict>) {
        let Proof { first, last, announced, is_listed, controls, symbols } = proof;
        let top = self.top.unwrap_or_else(|| {
            self.held = self.held.split_off(&first);
            verdicts.push(Verdict::Join { first, announced });
            first.saturating_sub(1)
        });
        self.top = Some(top.max(last));
        if top.saturating_add(1) < first {
            self.darken(top.saturating_add(1), first.saturating_sub(1), verdicts);
        }
        self.dark.remove(first, last);
        let carrier_before = first.saturating_sub(1);
        let carrier_before = self.dark.contains(carrier_before).then_some(carrier_before);
        let certain = controls.iter().map(|(packet, _)| *packet).chain(carrier_before);
        verdicts.extend(certain.filter(|packet| self.shown.contains(*packet)).map(Verdict::Missing));
        self.shown.remove(first, last);
        if is_listed {
            self.await_lists(first, last, &controls);
        }
        self.expected.extend(controls);
        while self.expected.len() > EXPECTED {
            self.expected.pop_first();
        }
        let mut held = self.take_held(first, last);
        let carriers = held.remove(&last).unwrap_or_default();
        self.read_lists(&held);
        for (packet, candidates) in held {
            self.choose(packet, candidates, verdicts);
        }
        self.choose_carrier(last, carriers, bytes, verdicts);
        symbols.into_iter().for_each(|(number, hash)| self.prove_symbol(number, hash, verdicts));
        while self.signed.len() > SYMBOLS {
            self.signed.pop_first();
        }
    }

    /// All packets of a batch but the controls and the proof itself are in lists.
    fn await_lists(&mut self, first: u64, last: u64, controls: &[(u64, Hash)]) {
        self.awaited.insert(first, last);
        let others = controls.iter().map(|(packet, _)| *packet).chain([last]);
        others.for_each(|packet| {
            self.awaited.remove(packet, packet);
        });
        if let Some(oldest) = last.checked_sub(EXPECTED as u64) {
            self.awaited.remove(0, oldest);
        }
    }

    /// Decides on packets whose awaited list has arrived.
    fn release(&mut self, verdicts: &mut Vec<Verdict>) {
        let listed: Vec<u64> =
            self.waiting.keys().filter(|packet| self.listed.contains_key(packet)).copied().collect();
        for packet in listed {
            verdicts.push(Verdict::Missing(packet));
            let candidates = self.waiting.remove(&packet).unwrap_or_default();
            self.choose(packet, candidates, verdicts);
        }
        while self.waiting.len() > WAITING {
            verdicts.extend(self.waiting.pop_first().map(|(packet, _)| Verdict::Missing(packet)));
        }
    }

    /// Reads the lists of a batch, which describe the packets before them.
    fn read_lists(&mut self, held: &BTreeMap<u64, Vec<Held>>) {
        for (packet, candidates) in held {
            let Some(hash) = self.expected.get(packet).copied() else { continue };
            let lists = candidates.iter().filter(|it| !it.content.lists().is_empty());
            lists.filter(|it| it.payload.hash() == hash).for_each(|it| self.note_lists(&it.content));
        }
    }

    fn note_lists(&mut self, content: &Content) {
        self.listed.extend(content.lists().iter().filter_map(|list| read_list(list)).flatten());
        while self.listed.len() > EXPECTED {
            self.listed.pop_first();
        }
    }

    fn prove_symbol(&mut self, number: u64, hash: Hash, verdicts: &mut Vec<Verdict>) {
        let (mut came, mut others) = (None, VecDeque::new());
        for (other, payload) in self.symbols.drain(..) {
            match &came {
                _ if other != number => others.push_back((other, payload)),
                None if content_hash(&[&payload]) == hash => came = Some(payload),
                Some(true_one) if *true_one == payload => verdicts.push(Verdict::Repeated),
                _ => verdicts.push(Verdict::Forged),
            }
        }
        self.symbols = others;
        match came {
            Some(payload) => verdicts.push(Verdict::Symbol(number, payload)),
            None => {
                self.signed.insert(number, hash);
            }
        }
    }

    fn hash_of(&self, packet: u64) -> Option<Hash> {
        self.expected.get(&packet).or_else(|| self.listed.get(&packet)).copied()
    }

    fn passed(&mut self, packet: u64, held: Held) -> Verdict {
        self.expected.remove(&packet);
        self.waiting.remove(&packet);
        self.note_lists(&held.content);
        Verdict::Packet(packet, held.payload, held.content)
    }

    /// Decides between the candidates for a packet of a newly proven batch.
    fn choose(&mut self, packet: u64, candidates: Vec<Held>, verdicts: &mut Vec<Verdict>) {
        let hash = self.hash_of(packet);
        let is_good = |held: &Held| match hash {
            Some(hash) => held.payload.hash() == hash,
            None => !held.content.speaks(),
        };
        let (came, mut good) = (candidates.len(), candidates);
        good.retain(is_good);
        verdicts.extend((good.len()..came).map(|_| Verdict::Forged));
        if hash.is_none() && !good.is_empty() && self.awaited.contains(packet) {
            self.waiting.insert(packet, good);
            return verdicts.push(Verdict::Waits(packet));
        }
        match (good.pop(), good.len()) {
            (Some(held), 0) => verdicts.push(self.passed(packet, held)),
            (Some(held), _) => {
                good.push(held);
                self.waiting.insert(packet, good);
                verdicts.extend([Verdict::Forged, Verdict::InDoubt(packet)]);
            }
            (None, _) => verdicts.push(Verdict::Exists(packet)),
        }
    }

    /// Decides between the candidates for the packet of this proof: it contains only this and the previous one.
    fn choose_carrier(&mut self, packet: u64, held: Vec<Held>, proof: &Bytes, verdicts: &mut Vec<Verdict>) {
        self.carriers.insert(packet, packet);
        if let Some(oldest) = packet.checked_sub(EXPECTED as u64) {
            self.carriers.remove(0, oldest);
        }
        let is_own = |held: &Held| held.content.only_proves() && held.content.proofs().last() == Some(proof);
        let (mut good, bad): (Vec<Held>, Vec<Held>) = held.into_iter().partition(is_own);
        verdicts.extend(bad.iter().map(|_| Verdict::Forged));
        // After losses the previous proof may be unknown; then the packet is requested.
        let is_known = |before: &Bytes| before == proof || *before == self.latest;
        good.retain(|held| held.content.proofs().iter().all(is_known));
        match (good.pop(), good.len()) {
            (Some(held), 0) => verdicts.push(Verdict::Packet(packet, held.payload, held.content)),
            (Some(_), _) => verdicts.extend([Verdict::Forged, Verdict::Exists(packet)]),
            (None, _) => verdicts.push(Verdict::Exists(packet)),
        }
    }

    /// Marks packets before a proven batch as dark: their numbers exist. The last of them carries a proof,
    /// whatever was received under its number.
    fn darken(&mut self, first: u64, last: u64, verdicts: &mut Vec<Verdict>) {
        self.dark.insert(first, last);
        for (packet, mut candidates) in self.take_held(first, last) {
            match candidates.pop() {
                Some(held) if candidates.is_empty() => self.put(packet, held, verdicts),
                last => {
                    candidates.extend(last);
                    self.held.insert(packet, candidates);
                }
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

/// The distance above the last proven packet up to which packets are held: three batches, and 6 MB, four
/// times as much during an attack with forgeries. A lost proof comes again with the next one, so more is not
/// needed, and an insider's numbers can't cause requests for more.
const AHEAD: u64 = 4_096;

/// The true packet and forged ones. With more forgeries the true one is requested.
const CANDIDATES: usize = 4;

/// The limit of missing packets with a known hash: as many as a receiver may miss.
const EXPECTED: usize = 65_536;

/// The number of packets that may wait for their list: fifty times the content of a lost list (6 MB, four
/// times as much during an attack with forgeries).
const WAITING: usize = 4_096;

/// The maximum number of symbols that wait for their proof, or of proven symbols to come: 3 MB, 25 ms at 1 Gbit/s.
const SYMBOLS: usize = 2_048;
