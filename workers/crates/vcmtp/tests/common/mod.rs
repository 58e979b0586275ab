//! A sender and receivers, driven by hand.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{
    Class, Digest, Epoch, FeedName, LegId, Machine, Micros, Now, Origin, ProductId, ProductInfo, ProductKey,
    RangeSet, Sequence, WallMicros,
};
use downburst_vcmtp::{
    LegKey, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, Request, Sender, SenderConfig,
    SenderInput, SenderOutput,
};

pub const LEG: LegId = LegId(7);
pub const LEG_EPOCH: u64 = 0x0123_4567_89ab_cdef;

pub fn key() -> LegKey {
    LegKey::new(3, *b"a key of thirty-two bytes, no le")
}

pub fn sender_config(rate_bps: u64) -> SenderConfig {
    SenderConfig::new(LEG, LEG_EPOCH, key(), Sequence(0), rate_bps)
}

pub fn receiver_config() -> ReceiverConfig {
    ReceiverConfig::new(LEG, LEG_EPOCH, key(), 1)
}

pub fn at(micros: u64) -> Now {
    Now { monotonic: Micros(micros), wall: WallMicros(micros as i64) }
}

pub fn content(sequence: u64, size: usize) -> Bytes {
    (0..size).map(|at| (at as u64).wrapping_mul(31).wrapping_add(sequence * 7) as u8).collect()
}

pub fn info(sequence: u64, size: usize, class: Class) -> ProductInfo {
    ProductInfo {
        key: ProductKey {
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: Epoch(99),
            sequence: Sequence(sequence),
        },
        id: ProductId::parse(&format!("SDUS54 KOUN 161540 /pN0RTLX {sequence}")).unwrap(),
        origin: Origin::parse("idd.example.edu").unwrap(),
        created: WallMicros(1_000),
        stored: WallMicros(2_000),
        size: size as u64,
        digest: Digest([sequence as u8; 32]),
        class,
        hops: None,
        ldm: None,
        properties: None,
    }
}

pub fn product(sequence: u64, size: usize, class: Class) -> SenderInput {
    SenderInput::Product { info: info(sequence, size, class), bytes: content(sequence, size).into() }
}

pub fn nak(site: u64, ranges: &[(u64, u64)]) -> SenderInput {
    SenderInput::Nak { site, request: ranges.iter().copied().collect::<RangeSet>().into() }
}

/// All outputs of a machine at one moment.
pub fn drain<M: Machine>(machine: &mut M, now: Now) -> Vec<M::Output> {
    std::iter::from_fn(|| machine.poll(now)).collect()
}

/// All outputs of a sender until `until`, with their times; the driver is punctual.
pub fn run(sender: &mut Sender, from: u64, until: u64) -> Vec<(u64, SenderOutput)> {
    let (mut now, mut said) = (from, Vec::new());
    loop {
        said.extend(drain(sender, at(now)).into_iter().map(|output| (now, output)));
        match sender.deadline() {
            Some(due) if due.0 <= until => {
                assert!(due.0 > now, "a deadline that has passed after polling");
                now = due.0;
            }
            _ => return said,
        }
    }
}

pub fn datagrams(said: &[(u64, SenderOutput)]) -> Vec<Bytes> {
    said.iter()
        .filter_map(|(_, output)| match output {
            SenderOutput::Datagram(bytes) => Some(bytes.clone().freeze()),
            _ => None,
        })
        .collect()
}

/// The collected outputs of a receiver.
#[derive(Debug, Default)]
pub struct Taken {
    pub joined: Option<Sequence>,
    pub announced: BTreeMap<Sequence, (Sequence, ProductInfo)>,
    pub bytes: BTreeMap<Sequence, Vec<u8>>,
    pub received: BTreeMap<Sequence, u64>,
    pub heads: Vec<(Sequence, Sequence)>,
    pub naks: Vec<RangeSet>,
    pub requests: Vec<Request>,
    /// Datagrams for the hub.
    pub asks: Vec<Bytes>,
    /// The reported states of the repair channel.
    pub channel: Vec<bool>,
    pub given_up: RangeSet,
    pub silent: usize,
    pub alarms: usize,
}

impl Taken {
    pub fn take(&mut self, output: ReceiverOutput) {
        match output {
            ReceiverOutput::Joined { after } => assert_eq!(self.joined.replace(after), None),
            ReceiverOutput::Announce { previous, info } => {
                let sequence = info.key.sequence;
                self.bytes.insert(sequence, vec![0; info.size as usize]);
                assert_eq!(self.announced.insert(sequence, (previous, info)), None, "announced twice");
            }
            ReceiverOutput::Block { sequence, offset, bytes } => {
                let whole = self.bytes.get_mut(&sequence).expect("a block before its announcement");
                let offset = offset as usize;
                whole[offset..offset + bytes.len()].copy_from_slice(&bytes);
                *self.received.entry(sequence).or_default() += bytes.len() as u64;
            }
            ReceiverOutput::Head { previous, head } => self.heads.push((previous, head)),
            ReceiverOutput::Nak(request) => {
                self.naks.push(request.packets.clone());
                self.requests.push(request);
            }
            ReceiverOutput::GaveUp(packets) => {
                packets.iter().for_each(|(first, last)| assert!(self.given_up.insert(first, last) > 0));
            }
            ReceiverOutput::Silent => self.silent += 1,
            ReceiverOutput::TooSlow => {}
            ReceiverOutput::Ask(datagram) => self.asks.push(datagram),
            ReceiverOutput::Channel { open } => self.channel.push(open),
            ReceiverOutput::Forged => self.alarms += 1,
        }
    }

    pub fn feed(&mut self, receiver: &mut Receiver, now: u64, datagram: &Bytes) {
        self.input(receiver, now, ReceiverInput::Datagram(datagram.clone().into()));
    }

    pub fn input(&mut self, receiver: &mut Receiver, now: u64, input: ReceiverInput) {
        receiver.handle(at(now), input);
        self.poll(receiver, now);
    }

    pub fn poll(&mut self, receiver: &mut Receiver, now: u64) {
        drain(receiver, at(now)).into_iter().for_each(|output| self.take(output));
    }

    /// True if the product is complete to the last byte, each byte reported once.
    pub fn is_whole(&self, sequence: u64, size: usize) -> bool {
        self.bytes.get(&Sequence(sequence)).is_some_and(|bytes| *bytes == content(sequence, size))
            && self.received.get(&Sequence(sequence)).copied().unwrap_or(0) == size as u64
    }
}
