use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use downburst_model::{Class, Machine, Micros, ProductInfo, RangeSet, Sequence};
use downburst_vcmtp::{
    Cipher, HubChannel, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput, RepairChannel, Request,
    Sender, SenderConfig, SenderInput, SenderKey, SenderOutput, SigningSeed, SiteSecret,
};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::common::*;

/// The events of a leg, in clear: content under keys is sealed when it is played.
#[derive(Clone)]
pub(crate) struct Story {
    pub(crate) events: Vec<Event>,
}

#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) at_us: u64,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// The recipients of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A datagram's header and payload, to the receivers.
    Group,
    /// A packet number and a payload, to the receivers by their sessions.
    Repair,
    /// Pairs of packet numbers, to the receivers by their sessions.
    Gone,
    /// A request in CBOR, to the sender.
    Request,
    /// Kind and body of the repair channel, to the hub.
    Ask,
    /// The same, to the receivers.
    Answer,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Group, "group"),
    (Kind::Repair, "repair"),
    (Kind::Gone, "gone"),
    (Kind::Request, "request"),
    (Kind::Ask, "ask"),
    (Kind::Answer, "answer"),
];

impl Story {
    /// Two products, one of them repaired by symbols and one packet by the session, in a group that is
    /// announced as large.
    pub(crate) fn told() -> Self {
        let mut sender = sender();
        sender.handle(at(0), SenderInput::Members(40));
        let mut said = run(&mut sender, 0, 0);
        sender.handle(at(1_000), product(3, 300, Class::Warning));
        sender.handle(at(1_000), product(4, 33_000, Class::Grid));
        said.extend(run(&mut sender, 1_000, 40_000));
        for site in [1, 2] {
            sender.handle(at(40_000), nak(site, &[(12, 13)]));
        }
        said.extend(run(&mut sender, 40_000, 400_000));
        let mut events: Vec<Event> =
            said.iter().filter_map(|(at_us, output)| Event::of(*at_us, output)).collect();
        let asked = |request: Request| minicbor::to_vec(request).unwrap();
        let lost: RangeSet = [(5, 7), (12, 13)].into_iter().collect();
        let request = Request { heard: Some(30), ..lost.into() };
        let ask = [vec![1], 41_000u64.to_be_bytes().to_vec(), asked(request.clone())].concat();
        for (at_us, kind, bytes) in [
            (41_000, Kind::Request, asked(request)),
            (41_000, Kind::Ask, ask),
            (42_000, Kind::Answer, [vec![2], 41_000u64.to_be_bytes().to_vec()].concat()),
            (42_500, Kind::Gone, [1u64, 0].map(u64::to_be_bytes).concat()),
        ] {
            events.push(Event { at_us, kind, bytes });
        }
        let repaired = events.iter().find(|event| event.packet() == Some(9)).unwrap().bytes[14..].to_vec();
        for (kind, mut bytes) in [(Kind::Repair, vec![]), (Kind::Answer, vec![3])] {
            bytes.extend(9u64.to_be_bytes().into_iter().chain(repaired.iter().copied()));
            events.push(Event { at_us: 43_000, kind, bytes });
        }
        events.sort_by_key(|event| event.at_us);
        Self { events }
    }

    /// Plays it to a receiver that believes the group, one that checks signatures, and one that checks MACs;
    /// returns the number of products at each.
    pub(crate) fn play(&self) -> Vec<usize> {
        let mut world = World::new();
        for event in &self.events {
            world.take(event);
        }
        world.rest();
        world.receivers.iter().map(Heard::products).collect()
    }

    pub(crate) fn text(&self) -> String {
        self.events.iter().fold(String::new(), |mut text, Event { at_us, kind, bytes }| {
            let name = KINDS.iter().find(|(known, _)| known == kind).unwrap().1;
            write!(text, "{at_us} {name} ").unwrap();
            bytes.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
            text + "\n"
        })
    }

    pub(crate) fn read(text: &str) -> Self {
        let event = |line: &str| {
            let mut fields = line.splitn(3, ' ');
            let at_us = fields.next().unwrap().parse().unwrap();
            let name = fields.next().unwrap();
            let kind = KINDS.iter().find(|(_, known)| *known == name).unwrap().0;
            let digits = fields.next().unwrap_or_default();
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            Event { at_us, kind, bytes: (0..digits.len()).step_by(2).map(byte).collect() }
        };
        Self { events: text.lines().map(event).collect() }
    }
}

impl Event {
    fn of(at_us: u64, output: &SenderOutput) -> Option<Self> {
        let SenderOutput::Datagram(datagram) = output else { return None };
        let (header, sealed) = datagram.split_at(14);
        let mut payload = sealed.to_vec();
        let length =
            aead(&key().secret).open_in_place(nonce(header), Aad::from(header), &mut payload).unwrap().len();
        payload.truncate(length);
        Some(Self { at_us, kind: Kind::Group, bytes: [header, &payload].concat() })
    }

    fn packet(&self) -> Option<u64> {
        (self.kind == Kind::Group).then(|| u64::from_be_bytes(self.bytes[6..14].try_into().unwrap()))
    }
}

struct World {
    sender: Sender,
    hub: HubChannel,
    receivers: Vec<Heard>,
    now: u64,
    counter: u64,
}

/// A receiver and its outputs.
struct Heard {
    receiver: Receiver,
    checks: bool,
    known: BTreeMap<Sequence, (ProductInfo, RangeSet)>,
}

impl World {
    fn new() -> Self {
        let mut sender = sender();
        let key = sender.key();
        sender.handle(at(0), product(3, 300, Class::Warning));
        sender.handle(at(0), product(4, 33_000, Class::Grid));
        let receivers = vec![Heard::new(None), Heard::new(key), Heard::new(key)];
        let mut world = Self { sender, hub: HubChannel::new(&channel()), receivers, now: 0, counter: 0 };
        world.poll();
        world
    }

    fn take(&mut self, event: &Event) {
        self.now = self.now.max(event.at_us.min(self.now + 5_000_000));
        let now = at(self.now);
        match event.kind {
            Kind::Group => self.hear(&group_datagram(&event.bytes)),
            Kind::Repair => {
                let (number, payload) = numbered(&event.bytes);
                let payload = Bytes::copy_from_slice(payload);
                self.tell(&ReceiverInput::Repair { packet: number, payload });
            }
            Kind::Gone => self.tell(&ReceiverInput::Gone(ranges(&event.bytes))),
            Kind::Request => {
                if let Ok(request) = minicbor::decode::<Request>(&event.bytes) {
                    self.sender.handle(now, SenderInput::Nak { site: 1, request });
                }
            }
            Kind::Ask => {
                let datagram = self.channel_datagram(0xc1, &event.bytes);
                let heard = self.hub.hear(Micros(self.now), datagram);
                if let Some(request) = heard.and_then(|heard| heard.request) {
                    self.sender.handle(now, SenderInput::Nak { site: 2, request });
                }
            }
            Kind::Answer => {
                let datagram = self.channel_datagram(0xb1, &event.bytes);
                self.hear(&datagram);
            }
        }
        self.poll();
    }

    fn hear(&mut self, datagram: &Bytes) {
        self.tell(&ReceiverInput::Datagram(datagram.clone().into()));
    }

    fn tell(&mut self, input: &ReceiverInput) {
        for heard in &mut self.receivers {
            heard.receiver.handle(at(self.now), input.clone());
            heard.poll(self.now);
        }
    }

    fn channel_datagram(&mut self, mark: u8, said: &[u8]) -> Bytes {
        self.counter += 1;
        let header = [&[mark], &channel().id.to_be_bytes()[..], &self.counter.to_be_bytes()[2..]].concat();
        let nonce = [&[mark, 0, 0, 0], &self.counter.to_be_bytes()[..]].concat();
        let mut sealed = said.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce.try_into().unwrap());
        aead(&channel().secret).seal_in_place_append_tag(nonce, Aad::from(&header), &mut sealed).unwrap();
        [header, sealed].concat().into()
    }

    fn poll(&mut self) {
        let said = drain(&mut self.sender, at(self.now));
        assert!(said.len() < MOST_OUTPUTS, "the sender talks for ever");
        assert!(self.sender.deadline().is_none_or(|due| due.0 > self.now), "the sender's timer has passed");
        self.receivers.iter_mut().for_each(|heard| heard.poll(self.now));
    }

    /// A minute without further input: timers go off, and end.
    fn rest(&mut self) {
        for _ in 0..120 {
            self.now += 500_000;
            self.poll();
        }
    }
}

impl Heard {
    fn new(sender_key: Option<SenderKey>) -> Self {
        let config = ReceiverConfig {
            sender_key,
            proof_secret: sender_key.map(|_| SiteSecret { slot: 7, secret: [7; 32] }),
            channel: Some(channel()),
            ..receiver_config()
        };
        let mut receiver = Receiver::new(config);
        receiver.handle(at(0), ReceiverInput::RoundTrip(Micros(20_000)));
        Self { receiver, checks: sender_key.is_some(), known: BTreeMap::new() }
    }

    fn poll(&mut self, now: u64) {
        let said = drain(&mut self.receiver, at(now));
        assert!(said.len() < MOST_OUTPUTS, "the receiver talks for ever");
        said.into_iter().for_each(|output| self.note(output));
        assert!(self.receiver.deadline().is_none_or(|due| due.0 > now), "the receiver's timer has passed");
    }

    fn note(&mut self, output: ReceiverOutput) {
        match output {
            ReceiverOutput::Announce { info: told, .. } if self.checks => {
                let sequence = told.key.sequence;
                let made = [info(3, 300, Class::Warning), info(4, 33_000, Class::Grid)];
                assert!(made.contains(&told), "believed: {told:?}");
                assert!(self.known.insert(sequence, (told, RangeSet::new())).is_none(), "announced twice");
            }
            ReceiverOutput::Announce { info, .. } => {
                drop(self.known.insert(info.key.sequence, (info, RangeSet::new())))
            }
            ReceiverOutput::Block { sequence, offset, bytes } => {
                let known = self.known.get_mut(&sequence);
                let is_made = [3, 4].contains(&sequence.0);
                assert!(known.is_some() || !is_made || !self.checks, "a block before its announcement");
                let last = offset.checked_add(bytes.len() as u64).and_then(|end| end.checked_sub(1));
                if let Some(((_, got), last)) = known.zip(last).filter(|_| !bytes.is_empty()) {
                    got.insert(offset, last);
                }
            }
            ReceiverOutput::Nak(request) => assert!(request.packets.count() <= MOST_MISSING),
            _ => {}
        }
    }

    fn products(&self) -> usize {
        self.known.values().filter(|(info, got)| got.count() >= info.size).count()
    }
}

fn sender() -> Sender {
    let seed = Some(SigningSeed([5; 32]));
    Sender::new(SenderConfig { signing_seed: seed, datagram_bytes: 800, ..sender_config(100_000_000) })
}

fn channel() -> RepairChannel {
    let secret = *b"the secret of one site, 32 bytes";
    RepairChannel { id: 0x0102_0304, port: 7370, secret, cipher: Cipher::default() }
}

/// Seals header and payload as a member of the group can.
fn group_datagram(clear: &[u8]) -> Bytes {
    let Some((header, payload)) = clear.split_at_checked(14) else { return Bytes::copy_from_slice(clear) };
    let mut sealed = payload.to_vec();
    aead(&key().secret).seal_in_place_append_tag(nonce(header), Aad::from(header), &mut sealed).unwrap();
    [header, &sealed].concat().into()
}

fn aead(secret: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, secret).unwrap())
}

fn nonce(header: &[u8]) -> Nonce {
    let nonce = [&LEG_EPOCH.to_be_bytes()[4..], &header[6..14]].concat();
    Nonce::assume_unique_for_key(nonce.try_into().unwrap())
}

fn numbered(bytes: &[u8]) -> (u64, &[u8]) {
    bytes.split_first_chunk().map_or((0, bytes), |(number, rest)| (u64::from_be_bytes(*number), rest))
}

fn ranges(bytes: &[u8]) -> RangeSet {
    let (pairs, _) = bytes.as_chunks::<16>();
    let half = |pair: &[u8; 16], at: usize| u64::from_be_bytes(pair[at..at + 8].try_into().unwrap());
    pairs.iter().map(|pair| (half(pair, 0), half(pair, 8))).filter(|(first, last)| first <= last).collect()
}

/// The most outputs at one moment.
const MOST_OUTPUTS: usize = 100_000;

/// A receiver that misses more packets gives up the oldest.
const MOST_MISSING: u64 = 65_536;
