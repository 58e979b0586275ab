mod blocks;
mod frequent_requesters;
mod head_schedule;
pub(crate) mod pacer;
mod parity;
mod pending_repairs;
pub(crate) mod queue;
pub(crate) mod repairs;
mod share;
mod trains;
mod window;

use std::collections::VecDeque;

use bytes::BytesMut;
use downburst_model::{Class, Content, LegId, Machine, Micros, Now, ProductInfo};

use crate::packet::payload::{FRAME_BYTES, Frame, PREFIX_BYTES, Payload};
use crate::packet::seal::{HEADER_BYTES, Seal, TAG_BYTES};
use crate::packet::symbol::{self, SYMBOL_BYTES};
use crate::proof::signature::ProofSigner;
use crate::proof::{Hashed, Prover, content_hash};
use crate::{Request, SenderConfig, SenderInput, SenderKey, SenderOutput, SenderStats};
use head_schedule::HeadSchedule;
use pacer::Pacer;
use parity::Parity;
use queue::{Filled, Queue};
use repairs::{Answer, ForGroup, Repairs};
use trains::{Train, Trains};
use window::Window;

/// The hub's half of a leg: turns products into paced, sealed datagrams and answers requests for lost ones.
///
/// | state | event | outputs, next |
/// |---|---|---|
/// | idle | a head is due | a packet with HEAD; idle, the next one after twice the time, at most `head_interval` |
/// | idle | Product | busy |
/// | idle, busy | Nak | see `repairs.rs`; to the group means busy |
/// | any | a batch is full or old, or nothing else waits | the packet that proves it, if it has a seed to sign with |
/// | busy | the pacer is open | the next packet: new data or a group repair; idle after the last |
/// | busy | the pacer is shut | nothing until a train is due, see `trains.rs` |
///
/// New data and group repairs share the rate: the more urgent one (repairs if equal) gets three datagrams of
/// four while both wait. Memory is bounded by the repair window and by what the driver pushes ahead of the
/// rate: it holds products back while [`backlog_products`](Self::backlog_products) or
/// [`backlog_bytes`](Self::backlog_bytes) are high.
pub struct Sender {
    leg: LegId,
    leg_epoch: u64,
    seal: Seal,
    prover: Option<Prover>,
    datagram_bytes: usize,
    arena: BytesMut,
    queue: Queue,
    window: Window,
    repairs: Repairs,
    pacer: Pacer,
    trains: Trains,
    head_schedule: HeadSchedule,
    outputs: VecDeque<SenderOutput>,
    stats: SenderStats,
    turn: u8,
}

enum Choice {
    Proof,
    Fresh,
    Head,
    Notice,
    Repair(ForGroup),
}

impl Sender {
    /// Begins a life of a leg. The size of datagrams is kept between 800 bytes and the largest UDP payload.
    pub fn new(config: SenderConfig) -> Self {
        let datagram_bytes = config.datagram_bytes.clamp(SMALLEST_DATAGRAM_BYTES, LARGEST_DATAGRAM_BYTES);
        let room = proof_room(datagram_bytes);
        let life = (config.leg, config.leg_epoch);
        Self {
            prover: config
                .signing_seed
                .and_then(|seed| Some(Prover::new(ProofSigner::new(&seed, life)?, room))),
            leg: config.leg,
            leg_epoch: config.leg_epoch,
            seal: Seal::new(config.leg, config.leg_epoch, &config.key),
            datagram_bytes,
            arena: BytesMut::with_capacity(ARENA_BYTES),
            queue: Queue::new(config.after),
            window: Window::new(config.repair_window_bytes, config.repair_window),
            repairs: Repairs::new(config.repair_hold, config.rate_bps, Parity::up_to(config.most_parity)),
            pacer: Pacer::new(
                config.rate_bps,
                config.burst_bytes,
                datagram_bytes,
                config.frame_overhead_bytes,
            ),
            trains: Trains::default(),
            head_schedule: HeadSchedule::new(config.after, config.head_interval),
            outputs: VecDeque::new(),
            stats: SenderStats::default(),
            turn: 0,
        }
    }

    /// The key with which receivers check this sender's proofs; `None` if it makes none.
    pub fn key(&self) -> Option<SenderKey> {
        self.prover.as_ref().and_then(|prover| prover.voucher.key())
    }

    /// Counters since the start.
    pub fn stats(&self) -> SenderStats {
        SenderStats {
            backlog_bytes: self.backlog_bytes(),
            packets: self.window.next().saturating_sub(1),
            ..self.stats
        }
    }

    /// Product bytes taken in and not yet handed out.
    pub fn backlog_bytes(&self) -> u64 {
        self.queue.backlog_bytes()
    }

    /// Products that are not yet handed out completely.
    pub fn backlog_products(&self) -> usize {
        self.queue.products()
    }

    fn take(&mut self, now: Now, info: ProductInfo, bytes: Content) {
        let (sequence, class, length) = (info.key.sequence, info.class, bytes.len() as u64);
        let stored = self.window.deadline().and_then(|_| stored_at(now, &info));
        if stored.is_some_and(|at| at < self.late_before(now.monotonic)) {
            return self.queue.leave_out(sequence);
        }
        if self.queue.push(info, bytes, stored) {
            self.trains.product(sequence, class, length);
            self.stats.products += 1;
            self.stats.product_bytes += length;
        }
    }

    /// Products that the hub stored before this wait no longer for the leg.
    fn late_before(&self, now: Micros) -> Micros {
        let in_time = self.window.deadline().map(|deadline| deadline.0 - deadline.0 / RESERVE_PART);
        in_time.map_or(Micros(0), |in_time_us| Micros(now.0.saturating_sub(in_time_us)))
    }

    /// The deadline of products that the hub stored before this is over.
    fn over_before(&self, now: Micros) -> Micros {
        self.window.deadline().map_or(Micros(0), |deadline| Micros(now.0.saturating_sub(deadline.0)))
    }

    /// Drops the products that are late, before the next packet is filled.
    fn drop_late(&mut self, now: Micros) {
        if self.window.deadline().is_some() && !self.queue.is_empty() {
            let dropped = self.queue.drop_older(self.late_before(now), self.over_before(now));
            self.trains.dropped(&dropped);
        }
    }

    fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.repairs.group().is_some()
    }

    fn asked(&mut self, now: Micros, site: u64, request: &Request) {
        let gone = self.repairs.ask(now, site, request, &mut self.window);
        if !gone.is_empty() {
            self.outputs.push_back(SenderOutput::Gone { site, packets: gone });
        }
    }

    /// Answers one due request of a single site; false if none is due.
    fn answer(&mut self, now: Micros) -> bool {
        let Some(answer) = self.repairs.answer(now, &self.window) else { return false };
        match answer {
            Answer::Gone { site, packet } => {
                let packets = [(packet, packet)].into_iter().collect();
                self.outputs.push_back(SenderOutput::Gone { site, packets });
            }
            Answer::Repair { site, packet } => self.repair_site(site, packet),
        }
        true
    }

    fn repair_site(&mut self, site: u64, packet: u64) {
        let Some(kept) = self.window.packet(packet) else { return };
        let mut payload = BytesMut::with_capacity(kept.payload.encoded_bytes());
        kept.payload.write(&mut payload);
        self.stats.site_repair_bytes += payload.len() as u64;
        self.outputs.push_back(SenderOutput::Repair { site, packet, payload: payload.freeze() });
    }

    /// Hands out the next datagram; false if nothing waits or the pacer is shut.
    fn send(&mut self, now: Micros) -> bool {
        self.pacer.fill(now);
        let Some(choice) = self.choose(now) else { return false };
        let is_urgent = self.urgent_due().is_some_and(|due| due <= now);
        if !self.pacer.is_open(if is_urgent { Train::Short } else { self.next_train() }) {
            return false;
        }
        match choice {
            Choice::Proof => self.send_proof(now),
            Choice::Fresh => self.send_fresh(now),
            Choice::Head => self.send_head(now),
            Choice::Notice => self.send_notice(now),
            Choice::Repair(ForGroup::Packet(class, packet)) => self.repair_group(now, class, packet),
            Choice::Repair(ForGroup::Symbol(_)) => self.send_symbol(now),
        }
        true
    }

    /// The time of the next statement that sites wait for.
    fn urgent_due(&self) -> Option<Micros> {
        let proof = self.proof_due().filter(|_| self.trains.hurries_proof());
        proof.into_iter().chain(self.repairs.notice_due()).min()
    }

    /// The train of data and repairs that wait.
    fn next_train(&self) -> Train {
        self.trains.next(&self.queue, self.repairs.group().map(|(_, repair)| repair))
    }

    fn choose(&self, now: Micros) -> Option<Choice> {
        let fresh = self.queue.urgency();
        let repair = self.repairs.group();
        match (fresh, repair) {
            _ if self.proof_due().is_some_and(|due| due <= self.last_moment(now)) => Some(Choice::Proof),
            _ if self.repairs.notice_due().is_some_and(|due| due <= now) => Some(Choice::Notice),
            (None, _) if self.head_schedule.due() <= now => Some(Choice::Head),
            (None, None) => None,
            (Some(_), None) => Some(Choice::Fresh),
            (None, Some((_, repair))) => Some(Choice::Repair(repair)),
            (Some(fresh), Some((class, repair))) => {
                let repair_first = (class <= fresh) != (self.turn == 0);
                Some(if repair_first { Choice::Repair(repair) } else { Choice::Fresh })
            }
        }
    }

    /// The time until which a proof that does not leave now has to wait. Receivers hold packets until their proof
    /// comes, so a long train ends with a proof that is due before the next one.
    fn last_moment(&self, now: Micros) -> Micros {
        self.until_next_train().map_or(now, |wait| now.plus(wait))
    }

    /// The time to the next train, if a long one is about to end.
    fn until_next_train(&self) -> Option<Micros> {
        let train = self.next_train();
        (train != Train::Short).then(|| self.pacer.last_before(train)).flatten()
    }

    fn send_fresh(&mut self, now: Micros) {
        // A symbol is longer than the payloads it is made of, and no datagram may exceed the limit.
        let room = self.datagram_bytes - HEADER_BYTES - TAG_BYTES - SYMBOL_BYTES;
        let Some(filled) = self.queue.fill(room) else { return };
        self.trains.sent(&filled);
        let Filled { payload, class, hurried, first, last, stored } = filled;
        self.window.stored(stored.unwrap_or(now));
        self.outputs.extend(first.into_iter().map(SenderOutput::FirstByte));
        self.head_schedule.data_sent(now);
        self.send_packet(now, payload, (class, hurried), true);
        self.outputs.extend(last.into_iter().map(SenderOutput::Sent));
    }

    fn send_head(&mut self, now: Micros) {
        let announced = self.queue.announced();
        let frames = vec![Frame::Head(self.head_schedule.head(announced))];
        self.head_schedule.said(now);
        self.send_packet(now, Payload { announced, frames, padding: 0 }, (Class::Warning, true), false);
    }

    /// Ends the batch with the packet that proves it, once no hashes wait; that packet is part of no further batch.
    fn send_proof(&mut self, now: Micros) {
        if let Some(list) = self.prover.as_mut().and_then(Prover::take_list) {
            let frames = vec![Frame::List(list)];
            let payload = Payload { announced: self.queue.announced(), frames, padding: 0 };
            return self.send_packet(now, payload, (Class::Warning, true), false);
        }
        let bodies = self.prover.as_mut().map(|prover| prover.close(now)).unwrap_or_default();
        self.trains.proven();
        let frames = bodies.into_iter().map(Frame::Proof).collect();
        let payload = Payload { announced: self.queue.announced(), frames, padding: 0 };
        let packet = self.window.next();
        let datagram = self.sealed(now, packet, &payload).map(|(datagram, _)| datagram);
        datagram.into_iter().for_each(|datagram| self.hand_out(datagram));
        self.window.push(payload, Class::Warning, true, now);
        self.repairs.sent(now, packet, Class::Warning, false);
        if self.last_moment(now) > now {
            self.pacer.end_train();
        }
    }

    /// Starts the lists with the packets that a receiver may doubt by now.
    fn alarm(&mut self, now: Micros) {
        let Some(prover) = self.prover.as_mut() else { return };
        if !prover.lists(now) {
            let next = self.window.next();
            let late = (next.saturating_sub(LISTED_LATE)..next).filter_map(|packet| {
                let kept =
                    self.window.packet(packet).filter(|kept| now.since(kept.sent) <= LISTED_LATE_TIME)?;
                Some((packet, &kept.payload)).filter(|(_, payload)| payload.is_blocks())
            });
            let mut written = BytesMut::new();
            for (packet, payload) in late {
                written.clear();
                payload.write(&mut written);
                prover.note_past(packet, content_hash(&[&written]));
            }
        }
        prover.alarm(now);
    }

    /// A long train that contains an urgent packet ends with its proof, too.
    fn proof_due(&self) -> Option<Micros> {
        let prover = self.prover.as_ref()?;
        let is_last = || self.trains.hurries_proof() && self.until_next_train().is_some();
        prover.due(!self.is_busy() || is_last())
    }

    fn send_notice(&mut self, now: Micros) {
        let Some((number, notice)) = self.repairs.take_notice(now) else { return };
        self.arena.reserve(SMALLEST_DATAGRAM_BYTES);
        if let Some(datagram) = self.seal.seal(number, &mut self.arena, |buffer| notice.write(buffer)) {
            self.stats.notices += 1;
            self.hand_out(datagram);
        }
    }

    fn send_packet(&mut self, now: Micros, payload: Payload, (class, hurried): (Class, bool), data: bool) {
        let packet = self.window.next();
        let (datagram, hashed) = self.sealed(now, packet, &payload).unzip();
        datagram.into_iter().for_each(|datagram| self.hand_out(datagram));
        if let Some(prover) = &mut self.prover {
            prover.note(now, packet, payload.announced, hashed.unwrap_or(Hashed::No));
        }
        self.window.push(payload, class, hurried, now);
        self.repairs.sent(now, packet, class, data);
    }

    fn send_symbol(&mut self, now: Micros) {
        let Some(symbol) = self.repairs.take_symbol(now) else { return };
        self.arena.reserve(HEADER_BYTES + SYMBOL_BYTES + symbol.bytes.len() + TAG_BYTES);
        let Some(number) = symbol::number(symbol.first, symbol.index) else { return };
        let (prover, next, announced) = (&mut self.prover, self.window.next(), self.queue.announced());
        let datagram = self.seal.seal(number, &mut self.arena, |buffer| {
            let start = buffer.len();
            symbol::write(buffer, symbol.count, symbol.made, &symbol.bytes);
            if let Some((prover, payload)) = prover.as_mut().zip(buffer.get(start..)) {
                prover.note_symbol(now, next, announced, (number, content_hash(&[payload])));
            }
        });
        if let Some(datagram) = datagram {
            self.stats.group_repair_bytes += datagram.len() as u64;
            self.stats.coded_repair_bytes += datagram.len() as u64;
            self.hand_out(datagram);
        }
    }

    fn repair_group(&mut self, now: Micros, class: Class, packet: u64) {
        self.repairs.take_group(now, class, packet, &mut self.window);
        let Some(payload) = self.window.packet(packet).map(|kept| kept.payload.clone()) else { return };
        if let Some((datagram, _)) = self.sealed(now, packet, &payload) {
            self.stats.group_repair_bytes += datagram.len() as u64;
            self.hand_out(datagram);
        }
    }

    /// The datagram, and the hash of its payload if the payload has to be proven.
    fn sealed(&mut self, now: Micros, packet: u64, payload: &Payload) -> Option<(BytesMut, Hashed)> {
        let mut hashed = Hashed::No;
        let lists = self.prover.as_ref().map(|prover| prover.lists(now));
        self.arena.reserve(HEADER_BYTES + payload.encoded_bytes() + TAG_BYTES);
        let datagram = self.seal.seal(packet, &mut self.arena, |buffer| {
            let start = buffer.len();
            payload.write(buffer);
            let written = buffer.get(start..).unwrap_or_default();
            hashed = match lists {
                Some(_) if payload.speaks() => Hashed::Control(content_hash(&[written])),
                Some(true) => Hashed::Block(content_hash(&[written])),
                _ => Hashed::No,
            };
        })?;
        Some((datagram, hashed))
    }

    fn hand_out(&mut self, datagram: BytesMut) {
        self.turn = (self.turn + 1) % TURNS;
        self.stats.datagrams += 1;
        self.stats.datagram_bytes += datagram.len() as u64;
        self.pacer.spend(datagram.len());
        self.outputs.push_back(SenderOutput::Datagram(datagram));
    }
}

impl Machine for Sender {
    type Input = SenderInput;
    type Output = SenderOutput;

    fn handle(&mut self, now: Now, input: SenderInput) {
        let (clocks, now) = (now, now.monotonic);
        self.pacer.fill(now);
        match input {
            SenderInput::Product { info, bytes } => self.take(clocks, info, bytes),
            SenderInput::Deadline(deadline) => self.window.set_deadline(deadline),
            SenderInput::Listener => self.head_schedule.expected(now),
            SenderInput::Head(head) => self.head_schedule.moved(now, head),
            SenderInput::Nak { site, request } => {
                if !request.packets.is_empty() {
                    self.stats.requests += 1;
                    self.asked(now, site, &request);
                }
            }
            SenderInput::Rate(rate_bps) => {
                self.pacer.change_rate(rate_bps);
                self.repairs.change_rate(rate_bps);
            }
            SenderInput::DatagramBytes(bytes) => {
                self.datagram_bytes = bytes.clamp(SMALLEST_DATAGRAM_BYTES, LARGEST_DATAGRAM_BYTES);
                let room = proof_room(self.datagram_bytes);
                self.prover.iter_mut().for_each(|prover| prover.change_room(room));
            }
            SenderInput::Key(key) => self.seal = Seal::new(self.leg, self.leg_epoch, &key),
            SenderInput::Members(members) => self.repairs.change_members(members),
            SenderInput::Reader { site, secret } => {
                self.prover.iter_mut().for_each(|prover| prover.voucher.take(site, secret.as_ref()));
            }
            SenderInput::ReaderLeft(site) => {
                self.prover.iter_mut().for_each(|prover| prover.voucher.forget(site));
            }
            SenderInput::Forged => self.alarm(now),
        }
    }

    fn poll(&mut self, now: Now) -> Option<SenderOutput> {
        let now = now.monotonic;
        self.window.expire(now);
        self.drop_late(now);
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            if !self.answer(now) && !self.repairs.decide(now, &self.window) && !self.send(now) {
                return None;
            }
        }
    }

    fn deadline(&self) -> Option<Micros> {
        if !self.outputs.is_empty() {
            return Some(Micros(0));
        }
        let statements = self.proof_due().into_iter().chain(self.repairs.notice_due());
        let idle_due = statements.fold(self.head_schedule.due(), Micros::min);
        let wanted = if self.is_busy() { Micros(0) } else { idle_due };
        let open_at = |train| self.pacer.shut_until(train).unwrap_or_default();
        let send = wanted.max(open_at(self.next_train()));
        let urgent = self.urgent_due().map(|due| due.max(open_at(Train::Short)));
        let send = urgent.into_iter().fold(send, Micros::min);
        let send = (send < Micros(u64::MAX)).then_some(send);
        send.into_iter().chain(self.repairs.deadline()).min()
    }
}

/// The time at which the hub stored a product, by the sender's own clock; a heartbeat is never late.
fn stored_at(now: Now, info: &ProductInfo) -> Option<Micros> {
    let age_us = now.wall.0.saturating_sub(info.stored.0).max(0).unsigned_abs();
    (!info.id.is_heartbeat()).then(|| Micros(now.monotonic.0.saturating_sub(age_us)))
}

/// The room for frame bodies in a packet with a proof.
fn proof_room(datagram_bytes: usize) -> usize {
    datagram_bytes - HEADER_BYTES - TAG_BYTES - PREFIX_BYTES - FRAME_BYTES
}

/// Nearly every manifest fits; one with a long way through hubs makes its datagram longer.
pub(crate) const SMALLEST_DATAGRAM_BYTES: usize = 800;

/// The largest datagram that fits into an IPv4 packet.
const LARGEST_DATAGRAM_BYTES: usize = 65_507;

/// Datagrams are made side by side in blocks of this size, so that a train needs no gathering.
const ARENA_BYTES: usize = 64 << 10;

/// The number of packets that are listed late, and their age: 8 ms of hashing, and the packets of a leg of 1
/// Gbit/s while the report of a forgery travels.
const LISTED_LATE: u64 = 8_192;
const LISTED_LATE_TIME: Micros = Micros::from_millis(500);

/// One datagram in this many goes to the less urgent of data and repair.
const TURNS: u8 = 4;

/// The part of a deadline that is kept in reserve for the path, its proof and a repair: without it a full leg would
/// send each product just too late.
const RESERVE_PART: u64 = 4;
