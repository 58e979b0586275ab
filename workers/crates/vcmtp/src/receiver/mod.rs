mod asking;
mod assembly;
mod catalogue;
mod lag;
pub(crate) mod loss_reports;
mod missing;
pub(crate) mod opening;
mod outputs;
mod payload_store;
mod proof_filter;
mod reordering;
mod shared_losses;
mod suppression;

use bytes::Bytes;
use downburst_model::{Machine, Micros, Now, RangeSet, Sequence};

use crate::channel::{Answer, SiteChannel, is_from_hub};
use crate::keys::ring::{KeyRing, Opening};
use crate::packet::notice::{self, Notice};
use crate::packet::raw::RawPayload;
use crate::packet::symbol;
use crate::proof::signature::ProofVerifier;
use crate::{ReceiverConfig, ReceiverInput, ReceiverOutput, ReceiverStats};
use catalogue::{Catalogue, Content};
use lag::Lag;
use loss_reports::LossReports;
use missing::Missing;
use opening::{Datagram, Opened, tail_at};
use outputs::Outputs;
use payload_store::{PayloadStore, SYMBOL_PAUSE};
use proof_filter::{ProofFilter, Verdict};
use reordering::Reordering;
use shared_losses::SharedLosses;
use suppression::Suppression;

/// A site's half of a leg: opens datagrams, reports announced products and received bytes, and requests
/// missing packets.
///
/// | state | event | outputs, next |
/// |---|---|---|
/// | listening | the first valid packet, or proof if the sender proves | Joined; joined from this packet number on |
/// | any | a packet that is not proven | see `proof_filter.rs` |
/// | joined | a packet in order | its content |
/// | joined | a packet ahead | its content; those between are missing |
/// | joined | a missing packet, from the group or by Repair | its content |
/// | joined | a repeated packet, or one from before the join | nothing |
/// | joined | blocks before their manifest, over the bound | the packet counts as missing |
/// | joined | missing packets are due, and their repair is not announced | Nak |
/// | joined | Gone, or more missing than the limit | GaveUp |
/// | joined | great loss for some time, or packets missing for too long (`lag.rs`) | TooSlow, once |
/// | joined | the group is silent for the limit | Silent, once until something is received |
pub struct Receiver {
    config: ReceiverConfig,
    keys: KeyRing,
    forgery: ForgeryWatch,
    joined: Option<Joined>,
    missing: Missing,
    reordering: Reordering,
    catalogue: Catalogue,
    payload_store: PayloadStore,
    shared_losses: SharedLosses,
    lag: Lag,
    loss_reports: LossReports,
    channel: Option<SiteChannel>,
    suppression: Suppression,
    outputs: Outputs,
    stats: ReceiverStats,
}

struct ForgeryWatch {
    /// `None` if the sender signs nothing.
    filter: Option<ProofFilter>,
    reported: Option<Micros>,
}

#[derive(Clone, Copy, Debug)]
struct Joined {
    first: u64,
    highest: u64,
    heard: Micros,
    silent: bool,
}

fn proof_filter(config: &ReceiverConfig) -> Option<ProofFilter> {
    let life = (config.leg, config.leg_epoch);
    let key = config.sender_key.as_ref()?;
    Some(ProofFilter::new(ProofVerifier::new(key, config.proof_secret.as_ref(), life)))
}

impl Receiver {
    /// Starts to listen to a life of a leg.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            keys: KeyRing::new(config.leg, config.leg_epoch, &config.key),
            forgery: ForgeryWatch { filter: proof_filter(&config), reported: None },
            joined: None,
            missing: Missing::new(config.retry_wait),
            reordering: Reordering::new(config.reorder_wait),
            catalogue: Catalogue::default(),
            payload_store: PayloadStore::default(),
            shared_losses: SharedLosses::default(),
            lag: Lag::default(),
            loss_reports: LossReports::new(config.seed),
            channel: config.channel.as_ref().map(SiteChannel::new),
            suppression: Suppression::new(config.seed, Micros(config.retry_wait.0 / 3)),
            outputs: Outputs::default(),
            stats: ReceiverStats::default(),
            config,
        }
    }

    /// True if no packet is missing: a number that was not announced is left out by the sender.
    pub fn is_complete(&self) -> bool {
        self.missing.count() == 0
    }

    /// Counters since the start.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    fn datagram(&mut self, now: Micros, datagram: Datagram) {
        let taken = match datagram {
            Datagram::Sealed(datagram) if is_from_hub(&datagram) => {
                return self.answer(now, datagram.freeze());
            }
            Datagram::Sealed(mut datagram) => self
                .keys
                .open(now, &mut datagram)
                .and_then(|opening| self.content(now, opening.number, opened(datagram.freeze(), opening))),
            Datagram::Opened(Opened { key, number, payload }) => {
                let is_valid = self.keys.used(now, key);
                is_valid.then_some(()).and_then(|()| self.content(now, number, payload))
            }
            Datagram::Refused => None,
        };
        match taken {
            Some(()) => self.stats.datagrams += 1,
            None => self.stats.refused += 1,
        }
    }

    /// Takes the content of a datagram; `None` if it is malformed.
    fn content(&mut self, now: Micros, number: u64, payload: RawPayload) -> Option<()> {
        if notice::is_notice(number) {
            self.suppression.hear(now, Notice::read(payload.into_bytes())?);
        } else if symbol::is_symbol(number) {
            self.coded(now, number, payload.into_bytes())?;
        } else {
            self.packet(now, number, payload)?;
        }
        Some(())
    }

    fn answer(&mut self, now: Micros, datagram: Bytes) {
        let Some(channel) = &mut self.channel else { return self.stats.refused += 1 };
        let was_open = channel.is_open();
        let Some(answer) = channel.take(now, datagram) else { return self.stats.refused += 1 };
        self.missing.change_retry_wait(channel.retry_wait().unwrap_or(self.config.retry_wait));
        if !was_open {
            self.outputs.push_back(ReceiverOutput::Channel { open: true });
        }
        if let Answer::Repair { packet, payload } = answer {
            self.stats.channel_repairs += 1;
            self.repair(now, packet, payload);
        }
    }

    fn packet(&mut self, now: Micros, packet: u64, payload: RawPayload) -> Option<()> {
        let content = Content::read(&payload)?;
        match &mut self.forgery.filter {
            Some(proof_filter) => {
                let verdicts = proof_filter.take(packet, payload, content);
                self.pass(now, verdicts);
            }
            None => {
                if self.joined.is_none() {
                    self.join(now, packet, content.announced());
                }
                self.hear(now, packet, (payload, content));
            }
        }
        Some(())
    }

    fn coded(&mut self, now: Micros, number: u64, payload: Bytes) -> Option<()> {
        let symbol = symbol::read(number, payload.clone())?;
        match &mut self.forgery.filter {
            Some(proof_filter) => {
                let verdicts = proof_filter.take_symbol(number, payload);
                self.pass(now, verdicts.into_iter().collect());
            }
            None => self.symbol(now, symbol),
        }
        Some(())
    }

    /// Takes a repair symbol of a block. Its range may be the only sign of the block's last packets.
    fn symbol(&mut self, now: Micros, symbol: symbol::Symbol) {
        let Some(joined) = &mut self.joined else { return };
        (joined.heard, joined.silent) = (now, false);
        self.stats.symbols += 1;
        self.suppression.symbol(symbol.first, symbol.made);
        self.exists(now, symbol.last);
        let (first, last) = (symbol.first, symbol.last);
        if self.missing.within(first, last).is_empty() {
            return;
        }
        self.payload_store.take(now, symbol);
        let pause = SYMBOL_PAUSE.plus(self.suppression.backoff(now));
        self.missing.postpone(first, last, now.plus(pause));
        self.restore(now, first);
    }

    /// Records that the packet was sent, received or not.
    fn exists(&mut self, now: Micros, packet: u64) {
        if self.notice_gap(now, packet) {
            self.stats.missed += 1;
            let due = self.first_request(now);
            self.missing.insert(packet, packet, due);
        }
    }

    /// The packet exists, and its forgery is reported to the sender: the sender's answer decides between the
    /// candidates, unless it takes too long.
    fn doubt(&mut self, now: Micros, packet: u64) {
        let due = now.plus(DOUBT);
        if self.notice_gap(now, packet) {
            self.missing.insert(packet, packet, due);
        } else {
            self.missing.postpone(packet, packet, due);
        }
    }

    /// Takes the packets that coded repairs restore in the packet's block.
    fn restore(&mut self, now: Micros, packet: u64) {
        for (packet, payload) in self.payload_store.restore(packet) {
            if !self.missing.contains(packet) {
                continue;
            }
            let payload = payload.map(RawPayload::split);
            let content = payload.and_then(|payload| Content::read(&payload).map(|it| (payload, it)));
            match content {
                Some((payload, content)) => {
                    self.stats.decoded += 1;
                    match &mut self.forgery.filter {
                        Some(proof_filter) => {
                            let verdicts = proof_filter.take(packet, payload, content);
                            self.pass(now, verdicts);
                        }
                        None => self.arrive(now, packet, (payload, content)),
                    }
                }
                None => self.stats.refused += 1,
            }
        }
    }

    /// Acts on the verdicts of the proof filter.
    fn pass(&mut self, now: Micros, verdicts: Vec<Verdict>) {
        for verdict in verdicts {
            match verdict {
                Verdict::Join { first, announced } => self.join(now, first, announced),
                Verdict::Packet(packet, payload, content) => self.hear(now, packet, (payload, content)),
                Verdict::Symbol(number, payload) => {
                    symbol::read(number, payload).into_iter().for_each(|symbol| self.symbol(now, symbol));
                }
                Verdict::Exists(packet) => self.exists(now, packet),
                Verdict::TooFar => self.stats.refused += 1,
                Verdict::Forged => self.forged(now),
                Verdict::Repeated => self.stats.repeated += 1,
                Verdict::Waits(packet) => {
                    self.notice_gap(now, packet);
                }
                Verdict::InDoubt(packet) => self.doubt(now, packet),
                Verdict::Missing(packet) if self.missing.contains(packet) => {}
                Verdict::Missing(packet) => self.missing.insert(packet, packet, now),
            }
        }
    }

    /// Counts a forgery and reports it to the sender.
    fn forged(&mut self, now: Micros) {
        self.stats.forged += 1;
        if self.forgery.reported.is_none_or(|at| now.since(at) >= ALARM_PAUSE) {
            self.forgery.reported = Some(now);
            self.outputs.push_back(ReceiverOutput::Forged);
        }
    }

    fn join(&mut self, now: Micros, first: u64, announced: Sequence) {
        self.catalogue.join(announced);
        self.outputs.push_back(ReceiverOutput::Joined { after: announced });
        let highest = first.saturating_sub(1);
        self.joined = Some(Joined { first, highest, heard: now, silent: false });
    }

    /// Records a sign of life, and takes the packet unless it precedes the join.
    fn hear(&mut self, now: Micros, packet: u64, content: (RawPayload, Content)) {
        let Some(joined) = &mut self.joined else { return };
        (joined.heard, joined.silent) = (now, false);
        if packet >= joined.first {
            self.arrive(now, packet, content);
        }
    }

    fn arrive(&mut self, now: Micros, packet: u64, (payload, content): (RawPayload, Content)) {
        let ahead = self.notice_gap(now, packet);
        if !ahead && !self.missing.contains(packet) {
            self.stats.repeated += 1;
            self.reordering.repeated(packet);
            if self.forgery.filter.is_some() && self.payload_store.has_other(packet, &payload) {
                self.forged(now);
            }
        } else if self.catalogue.has_room(packet, &content, self.missing.first()) {
            match self.missing.remove(packet) {
                Some(true) => {
                    self.stats.repaired += 1;
                    self.reordering.repaired(packet);
                }
                Some(false) => self.reordering.came(),
                None => {}
            }
            self.payload_store.keep(packet, payload);
            self.accept(packet, content);
        } else if ahead {
            let due = self.first_request(now);
            self.missing.insert(packet, packet, due);
        }
        let excess = self.missing.shrink(self.config.missing_limit);
        self.give_up(now, excess);
        self.restore(now, packet);
        let highest = self.joined.map_or(packet, |joined| joined.highest);
        self.payload_store.release(highest, self.missing.first());
    }

    /// True if the packet is above the highest; then the packets between are missing.
    fn notice_gap(&mut self, now: Micros, packet: u64) -> bool {
        let Some(joined) = self.joined.as_mut().filter(|joined| packet > joined.highest) else {
            return false;
        };
        let first = joined.highest + 1;
        joined.highest = packet;
        self.stats.missed = self.stats.missed.saturating_add(packet - first);
        if first < packet {
            let due = self.first_request(now);
            self.missing.insert_below(packet, first, due);
        }
        true
    }

    /// The time of the first request for packets detected as missing now.
    fn first_request(&mut self, now: Micros) -> Micros {
        now.plus(self.reordering.wait()).plus(self.suppression.backoff(now))
    }

    fn accept(&mut self, packet: u64, content: Content) {
        let content = self.catalogue.completed(content);
        content.manifests().for_each(|info| self.shared_losses.announced(info));
        self.catalogue.accept(packet, content, self.missing.first(), &mut self.outputs);
    }

    fn repair(&mut self, now: Micros, packet: u64, payload: Bytes) {
        if !self.missing.contains(packet) {
            self.stats.repeated += 1;
            self.reordering.repeated(packet);
            return;
        }
        let payload = RawPayload::split(payload);
        let Some(content) = Content::read(&payload) else {
            self.stats.refused += 1;
            return;
        };
        let verdicts = self.forgery.filter.as_mut().map(|proof_filter| proof_filter.trust(packet, &content));
        self.arrive(now, packet, (payload, content));
        self.pass(now, verdicts.unwrap_or_default());
    }

    fn gone(&mut self, now: Micros, packets: &RangeSet) {
        let mut given_up = RangeSet::new();
        for (first, last) in packets.iter() {
            for (first, last) in self.missing.cut(first, last).iter() {
                given_up.insert(first, last);
            }
        }
        self.give_up(now, given_up);
    }

    fn give_up(&mut self, now: Micros, packets: RangeSet) {
        if packets.is_empty() {
            return;
        }
        self.stats.given_up = self.stats.given_up.saturating_add(packets.count());
        let unlisted = self
            .forgery
            .filter
            .as_mut()
            .map(|proof_filter| proof_filter.forget(&packets))
            .unwrap_or_default();
        self.catalogue.drop_orphans(self.missing.first());
        self.outputs.push_back(ReceiverOutput::GaveUp(packets));
        self.pass(now, unlisted);
    }

    fn silence_due(&self) -> Option<Micros> {
        let joined = self.joined.filter(|joined| !joined.silent)?;
        Some(joined.heard.plus(self.config.silence_limit))
    }

    fn notice_lag(&mut self, now: Micros) {
        let Some(joined) = self.joined else { return };
        let members = self.suppression.group_size(now);
        if self.lag.look(now, members, (joined.highest, self.stats.missed), &self.missing) {
            self.outputs.push_back(ReceiverOutput::TooSlow);
        }
    }

    fn notice_silence(&mut self, now: Micros) {
        if self.silence_due().is_some_and(|due| due <= now) {
            self.joined.iter_mut().for_each(|joined| joined.silent = true);
            self.outputs.push_back(ReceiverOutput::Silent);
        }
    }
}

impl Machine for Receiver {
    type Input = ReceiverInput;
    type Output = ReceiverOutput;

    fn handle(&mut self, now: Now, input: ReceiverInput) {
        match input {
            ReceiverInput::Datagram(datagram) => self.datagram(now.monotonic, datagram),
            ReceiverInput::Repair { packet, payload } => {
                self.stats.session_repairs += 1;
                if self.missing.contains(packet) {
                    self.missing.note_repair(now.monotonic, packet);
                }
                self.repair(now.monotonic, packet, payload);
            }
            ReceiverInput::Gone(packets) => self.gone(now.monotonic, &packets),
            ReceiverInput::Key(key) => self.keys.insert(&key),
            ReceiverInput::RoundTrip(round_trip) => self.suppression.change_round_trip(round_trip),
        }
    }

    fn poll(&mut self, now: Now) -> Option<ReceiverOutput> {
        if self.outputs.is_empty() {
            self.advance_channel(now.monotonic);
            self.ask(now.monotonic);
            self.tell_losses(now.monotonic);
            self.send_requests();
            self.notice_silence(now.monotonic);
            self.notice_lag(now.monotonic);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        if !self.outputs.is_empty() {
            return Some(Micros(0));
        }
        let silent = self.joined.is_some_and(|joined| joined.silent);
        let channel = self.channel.as_ref().filter(|_| !silent).and_then(SiteChannel::deadline);
        let asks = self.missing.deadline().map(|due| due.max(self.suppression.next_request()));
        asks.into_iter().chain(self.silence_due()).chain(channel).min()
    }
}

/// The payload of an opened datagram.
fn opened(datagram: Bytes, opening: Opening) -> RawPayload {
    let mut head = datagram.slice(opening.payload);
    let tail = head.split_off(tail_at(opening.number, &head));
    RawPayload { head, tail: tail.into() }
}

/// The time in which the sender learns of a forgery and sends the hashes of packets: a long round trip, and a queue.
const DOUBT: Micros = Micros::from_millis(500);

/// The minimum time between two reports of forgeries: the sender acts on one for longer.
const ALARM_PAUSE: Micros = Micros::from_secs(10);
