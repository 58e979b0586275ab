use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::{Machine, Micros, Now, RangeSet};

use crate::catalogue::{Catalogue, Content};
use crate::key_ring::KeyRing;
use crate::missing::Missing;
use crate::shelf::{SYMBOL_PAUSE, Shelf};
use crate::symbol;
use crate::{ReceiverConfig, ReceiverInput, ReceiverOutput, ReceiverStats};

/// A site's half of a leg: opens datagrams, tells what was announced and which bytes came, and asks for what is missing.
///
/// | state | event | outputs, next |
/// |---|---|---|
/// | listening | the first valid packet | Joined; joined from this packet number on |
/// | joined | a packet in order | what it holds |
/// | joined | a packet ahead | what it holds; those between are missing |
/// | joined | a missing packet, from the group or by Repair | what it holds |
/// | joined | a packet that came before, or from before the join | nothing |
/// | joined | blocks before their manifest, over the bound | the packet counts as missing |
/// | joined | missing packets are due | Nak |
/// | joined | Gone, or more missing than the limit | GaveUp |
/// | joined | the group is silent for the limit | Silent, once until something is heard |
pub struct Receiver {
    config: ReceiverConfig,
    keys: KeyRing,
    joined: Option<Joined>,
    missing: Missing,
    catalogue: Catalogue,
    shelf: Shelf,
    outputs: VecDeque<ReceiverOutput>,
    stats: ReceiverStats,
}

#[derive(Clone, Copy, Debug)]
struct Joined {
    first: u64,
    highest: u64,
    heard: Micros,
    silent: bool,
}

impl Receiver {
    /// Begins to listen to a life of a leg.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            keys: KeyRing::new(config.leg, config.leg_epoch, &config.key),
            joined: None,
            missing: Missing::new(config.retry_wait),
            catalogue: Catalogue::default(),
            shelf: Shelf::default(),
            outputs: VecDeque::new(),
            stats: ReceiverStats::default(),
            config,
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    fn datagram(&mut self, now: Micros, datagram: Bytes) {
        let taken = self.keys.open(now, datagram).and_then(|(number, payload)| {
            if symbol::is_symbol(number) {
                self.symbol(now, symbol::read(number, payload)?);
            } else {
                self.packet(now, number, payload)?;
            }
            Some(())
        });
        match taken {
            Some(()) => self.stats.datagrams += 1,
            None => self.stats.refused += 1,
        }
    }

    fn packet(&mut self, now: Micros, packet: u64, payload: Bytes) -> Option<()> {
        let content = Content::read(payload.clone())?;
        let joined = self.hear(now, packet, &content);
        if packet >= joined.first {
            self.arrive(now, packet, (payload, content));
        }
        Some(())
    }

    /// A repair of its block. Its end may be all that is heard of the block's last packets.
    fn symbol(&mut self, now: Micros, symbol: symbol::Symbol) {
        let Some(joined) = &mut self.joined else { return };
        (joined.heard, joined.silent) = (now, false);
        self.stats.symbols += 1;
        if self.notice_gap(now, symbol.last) {
            self.stats.missed += 1;
            self.missing.insert(symbol.last, symbol.last, now.plus(self.config.reorder_wait));
        }
        let (first, last) = (symbol.first, symbol.last);
        if self.missing.within(first, last).is_empty() {
            return;
        }
        self.shelf.take(now, symbol);
        self.missing.postpone(first, last, now.plus(SYMBOL_PAUSE));
        self.restore(now, first);
    }

    /// Takes in what coded repairs restore of the block that holds the packet.
    fn restore(&mut self, now: Micros, packet: u64) {
        for (packet, payload) in self.shelf.restore(packet) {
            if !self.missing.contains(packet) {
                continue;
            }
            let content = payload.and_then(|payload| Some((payload.clone(), Content::read(payload)?)));
            match content {
                Some(content) => {
                    self.stats.decoded += 1;
                    self.arrive(now, packet, content);
                }
                None => self.stats.refused += 1,
            }
        }
    }

    /// Notes a sign of life; the first one is the join.
    fn hear(&mut self, now: Micros, packet: u64, content: &Content) -> Joined {
        if let Some(joined) = &mut self.joined {
            (joined.heard, joined.silent) = (now, false);
            return *joined;
        }
        self.catalogue.join(content.announced());
        self.outputs.push_back(ReceiverOutput::Joined { after: content.announced() });
        *self.joined.insert(Joined {
            first: packet,
            highest: packet.saturating_sub(1),
            heard: now,
            silent: false,
        })
    }

    fn arrive(&mut self, now: Micros, packet: u64, (payload, content): (Bytes, Content)) {
        let ahead = self.notice_gap(now, packet);
        if !ahead && !self.missing.contains(packet) {
            self.stats.repeated += 1;
        } else if self.catalogue.has_room(packet, &content, self.missing.first()) {
            let asked = self.missing.remove(packet) == Some(true);
            self.stats.repaired += u64::from(asked);
            self.shelf.keep(packet, payload);
            self.accept(packet, content);
        } else if ahead {
            self.missing.insert(packet, packet, now.plus(self.config.reorder_wait));
        }
        let excess = self.missing.shrink(self.config.missing_limit);
        self.give_up(excess);
        self.restore(now, packet);
        let highest = self.joined.map_or(packet, |joined| joined.highest);
        self.shelf.release(highest, self.missing.first());
    }

    /// True if the packet is above the highest; then those between are missing.
    fn notice_gap(&mut self, now: Micros, packet: u64) -> bool {
        let Some(joined) = self.joined.as_mut().filter(|joined| packet > joined.highest) else {
            return false;
        };
        let first = joined.highest + 1;
        joined.highest = packet;
        self.stats.missed = self.stats.missed.saturating_add(packet - first);
        self.missing.insert_below(packet, first, now.plus(self.config.reorder_wait));
        true
    }

    fn accept(&mut self, packet: u64, content: Content) {
        let outputs = &mut self.outputs;
        self.catalogue.accept(packet, content, self.missing.first(), &mut |output| outputs.push_back(output));
    }

    fn repair(&mut self, now: Micros, packet: u64, payload: Bytes) {
        if !self.missing.contains(packet) {
            self.stats.repeated += 1;
            return;
        }
        let Some(content) = Content::read(payload.clone()) else {
            self.stats.refused += 1;
            return;
        };
        self.missing.note_repair(now, packet);
        self.arrive(now, packet, (payload, content));
    }

    fn gone(&mut self, packets: &RangeSet) {
        let mut given_up = RangeSet::new();
        for (first, last) in packets.iter() {
            for (first, last) in self.missing.cut(first, last).iter() {
                given_up.insert(first, last);
            }
        }
        self.give_up(given_up);
    }

    fn give_up(&mut self, packets: RangeSet) {
        if packets.is_empty() {
            return;
        }
        self.stats.given_up = self.stats.given_up.saturating_add(packets.count());
        self.catalogue.drop_orphans(self.missing.first());
        self.outputs.push_back(ReceiverOutput::GaveUp(packets));
    }

    fn silence_due(&self) -> Option<Micros> {
        let joined = self.joined.filter(|joined| !joined.silent)?;
        Some(joined.heard.plus(self.config.silence_limit))
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
            ReceiverInput::Repair { packet, payload } => self.repair(now.monotonic, packet, payload),
            ReceiverInput::Gone(packets) => self.gone(&packets),
            ReceiverInput::Key(key) => self.keys.insert(&key),
        }
    }

    fn poll(&mut self, now: Now) -> Option<ReceiverOutput> {
        if self.outputs.is_empty() {
            let wanted = self.missing.ask(now.monotonic);
            let missing = |first, last| self.missing.within(first, last);
            let wanted = self.shelf.worth_asking(now.monotonic, wanted, missing);
            if !wanted.is_empty() {
                self.outputs.push_back(ReceiverOutput::Nak(wanted));
            }
            self.notice_silence(now.monotonic);
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        if !self.outputs.is_empty() {
            return Some(Micros(0));
        }
        self.missing.deadline().into_iter().chain(self.silence_due()).min()
    }
}
