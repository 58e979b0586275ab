//! Repair of whole blocks of packets by coded symbols: each site's lack of each block, and when the group
//! gets symbols.
//!
//! | state of a block | event | next |
//! |---|---|---|
//! | open | [`LARGEST_BLOCK`] packets | closed |
//! | open, asked for | [`BLOCK_TIME`] since its first packet, or nothing sent for [`QUIET_TIME`] | closed |
//! | closed, parity is on | immediately | as many symbols as usual are queued for the group (`parity.rs`) |
//! | closed | a site asks | asked: others get the time in which requests usually come |
//! | asked | that time is over | symbols are queued for the group, and single packets for sites that lack more |
//! | queued | the pacer let the last symbol out | quiet for the time of answers to it |
//! | quiet | a site asks again | as closed; a site counted a moment ago asked too early |
//! | any | its packets leave the window | gone |
//!
//! A site requests the packets that it lacks beside the symbols it has. After [`ROUNDS`] rounds of symbols it
//! gets the rest packet by packet: it joined in the middle of the block, or cannot keep it.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use downburst_model::{Class, Micros, RangeSet};

use crate::Request;
use crate::packet::code::{Encoder, LARGEST_BLOCK};
use crate::packet::notice::PendingRepair;
use crate::packet::notice::SMALL_GROUP;
use crate::sender::frequent_requesters::FrequentRequesters;
use crate::sender::parity::Parity;
use crate::sender::pending_repairs::PendingRepairs;
use crate::sender::queue::pop_front_if;
use crate::sender::share::{symbols_for_group, symbols_for_large_group, usual_lack};
use crate::sender::window::Window;

/// The blocks of a sender whose packets can be repaired.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: BTreeMap<u64, Block>,
    due: BTreeSet<(Micros, u64)>,
    symbols: VecDeque<Symbol>,
    members: u64,
    sent: Micros,
    /// The number that the next packet gets.
    next: u64,
    /// The delay of requests after their packet.
    lag: Micros,
    /// Blocks that were requested since the last announcement.
    touched: BTreeSet<u64>,
    frequent_requesters: FrequentRequesters,
    parity: Parity,
}

#[derive(Debug)]
struct Block {
    opened: Micros,
    /// The end, once it is closed.
    last: Option<u64>,
    class: Class,
    due: Option<Micros>,
    demands: BTreeMap<u64, Demand>,
    rounds: BTreeMap<u64, u8>,
    /// Symbols made so far, and of these by the last round.
    made: u16,
    round: u16,
    /// Symbols that it gets without any request.
    parity: u16,
    /// The packet that followed the last symbol of the last round: a site that heard it gets no more symbols
    /// of the round.
    passed_with: u64,
    quiet_until: Micros,
    /// The number of symbols announced to the group, and the time of the announcement.
    announced: u16,
    told: Micros,
}

/// The requests of a site since the last round.
#[derive(Debug, Default)]
struct Demand {
    packets: RangeSet,
    /// The number of symbols that it had heard or lost at its request; later ones may still help it.
    settled: u16,
}

/// A repair symbol on its way to the group.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) class: Class,
    /// The block's first packet and the number of its packets.
    pub(crate) first: u64,
    pub(crate) count: u16,
    pub(crate) index: u16,
    /// The number of symbols of the block made so far.
    pub(crate) made: u16,
    pub(crate) bytes: Bytes,
}

impl Blocks {
    pub(crate) fn new(parity: Parity) -> Self {
        Self {
            blocks: BTreeMap::new(),
            due: BTreeSet::new(),
            symbols: VecDeque::new(),
            members: 0,
            sent: Micros(0),
            next: 1,
            lag: FIRST_LAG,
            touched: BTreeSet::new(),
            frequent_requesters: FrequentRequesters::default(),
            parity,
        }
    }

    pub(crate) fn change_members(&mut self, members: u64) {
        self.members = members;
    }

    /// A packet was sent: it belongs to the open block. `data` is false for a head.
    pub(crate) fn sent(&mut self, now: Micros, packet: u64, class: Class, data: bool) {
        if data {
            self.sent = now;
        }
        self.next = packet.saturating_add(1);
        self.close_when_old(now, packet);
        let open = self.blocks.last_entry().filter(|entry| entry.get().last.is_none());
        let first = match open {
            Some(mut open) => {
                open.get_mut().class = open.get().class.min(class);
                *open.key()
            }
            None => {
                self.blocks.insert(packet, Block::new(now, class));
                if self.parity.is_on() {
                    self.wait(now.plus(QUIET_TIME), packet);
                }
                packet
            }
        };
        if packet - first + 1 >= LARGEST_BLOCK as u64 {
            self.close(now, first, packet);
        }
    }

    /// Notes that a site lacks a packet; false if the packet no longer belongs to any block.
    pub(crate) fn ask(&mut self, now: Micros, site: u64, packet: u64, request: &Request) -> bool {
        let patience = now.plus(self.patience());
        let Some((&first, block)) = self.blocks.range_mut(..=packet).next_back() else { return false };
        let settled = block.settled(now, first, request);
        if self.members > SMALL_GROUP {
            self.touched.insert(first);
        }
        if settled < block.made && block.rounds.contains_key(&site) {
            return true;
        }
        let demand = block.demands.entry(site).or_default();
        if settled > demand.settled {
            // Its requests from before these symbols are outdated.
            *demand = Demand { packets: RangeSet::new(), settled };
        }
        if settled == demand.settled {
            demand.packets.insert(packet, packet);
        }
        if block.due.is_none() {
            let due = match block.last {
                Some(_) => patience,
                None => block.opened.plus(BLOCK_TIME).min(self.sent.max(now).plus(QUIET_TIME)),
            };
            block.due = Some(due);
            self.due.insert((due, first));
        }
        true
    }

    /// Announces to a large group the symbols to come for the blocks just requested, if that is more than it
    /// knows.
    pub(crate) fn announce_repairs(&mut self, now: Micros, pending_repairs: &mut PendingRepairs) {
        for first in std::mem::take(&mut self.touched) {
            let Some(block) = self.blocks.get(&first) else { continue };
            let made =
                block.made.saturating_add(u16::try_from(self.wanted(block, first)).unwrap_or(u16::MAX));
            let again = made == block.announced && block.told.plus(TELL_AGAIN) <= now;
            if made <= block.made || (made <= block.announced && !again) {
                continue;
            }
            let (lag, room) = (self.patience(), QUIET_TIME);
            let Some(block) = self.blocks.get_mut(&first) else { continue };
            (block.announced, block.told) = (made, now);
            let due =
                block.last.map_or(block.opened.plus(BLOCK_TIME).plus(lag), |_| block.due.unwrap_or(now));
            let count =
                block.last.and_then(|last| u16::try_from(last.checked_sub(first)?.checked_add(1)?).ok());
            pending_repairs.announce(PendingRepair {
                first,
                count,
                made: Some(made),
                within: due.since(now).plus(room),
            });
        }
    }

    /// The delay of a request after its packet was sent. Three of four come within `lag`, so a site that is
    /// always late does not make the others wait.
    pub(crate) fn note_lag(&mut self, lag: Micros) {
        let step = self.lag.0 / 16 + 1;
        let moved = if lag > self.lag { self.lag.0 + step * 3 / 4 } else { self.lag.0 - step / 4 };
        self.lag = Micros(moved.clamp(SHORTEST_LAG.0, LONGEST_LAG.0));
    }

    /// Does the due work; returns the packets that single sites get, or `None` if nothing was due.
    pub(crate) fn advance(&mut self, now: Micros, window: &Window) -> Option<Vec<(u64, RangeSet)>> {
        let &(due, first) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, first));
        let block = self.blocks.get_mut(&first)?;
        block.due = None;
        if block.last.is_none() {
            self.close_or_wait(now, first, window.next());
            return Some(Vec::new());
        }
        if self.symbols.len() >= QUEUED_SYMBOLS {
            self.wait(now.plus(BUSY_WAIT), first);
            return Some(Vec::new());
        }
        Some(self.decide(first, window))
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The symbol that leaves next.
    pub(crate) fn next_symbol(&self) -> Option<&Symbol> {
        self.symbols.front()
    }

    pub(crate) fn take_symbol(&mut self, now: Micros) -> Option<Symbol> {
        let symbol = self.symbols.pop_front()?;
        if let Some(block) = self.blocks.get_mut(&symbol.first).filter(|_| symbol.index + 1 == symbol.made) {
            block.quiet_until = now.plus(self.lag);
            block.passed_with = self.next;
        }
        Some(symbol)
    }

    /// Forgets blocks that begin before `oldest`.
    pub(crate) fn expire(&mut self, oldest: u64) {
        while let Some(entry) = self.blocks.first_entry().filter(|entry| *entry.key() < oldest) {
            if let Some(due) = entry.get().due {
                self.due.remove(&(due, *entry.key()));
            }
            entry.remove();
        }
        while pop_front_if(&mut self.symbols, |symbol| symbol.first < oldest).is_some() {}
    }

    /// Closes the open block before this packet, if the block has waited long enough.
    fn close_when_old(&mut self, now: Micros, packet: u64) {
        let old = |block: &Block| block.last.is_none() && now >= block.opened.plus(BLOCK_TIME);
        if let Some((&first, _)) = self.blocks.last_key_value().filter(|(_, block)| old(block)) {
            self.close(now, first, packet.saturating_sub(1));
        }
    }

    /// Closes an open block that is due; waits again if data was sent in the meantime.
    fn close_or_wait(&mut self, now: Micros, first: u64, next: u64) {
        let opened = self.blocks.get(&first).map_or(now, |block| block.opened);
        let due = opened.plus(BLOCK_TIME).min(self.sent.plus(QUIET_TIME));
        if due > now { self.wait(due, first) } else { self.close(now, first, next.saturating_sub(1)) }
    }

    fn close(&mut self, now: Micros, first: u64, last: u64) {
        let Some(block) = self.blocks.get_mut(&first) else { return };
        block.last = Some(last);
        let asked = !block.demands.is_empty();
        if let Some(due) = block.due.take() {
            self.due.remove(&(due, first));
        }
        if self.parity.is_on() {
            self.add_parity(now, first);
        } else if asked {
            self.wait(now.plus(self.patience()), first);
        }
    }

    /// The block's parity symbols are due immediately, and also answer the requests so far.
    fn add_parity(&mut self, now: Micros, first: u64) {
        while let Some(judged) = self.parity.judged(now) {
            if let Some(block) = self.blocks.get(&judged) {
                self.parity.learn(block.packets(judged), (!block.rounds.is_empty()).then_some(block.made));
            }
        }
        self.parity.judge_at(now.plus(self.patience()).plus(self.patience()), first);
        let Some(block) = self.blocks.get_mut(&first) else { return };
        block.parity = u16::try_from(self.parity.of(block.packets(first))).unwrap_or(u16::MAX);
        let due = if block.parity > 0 {
            Some(now)
        } else {
            (!block.demands.is_empty()).then(|| now.plus(self.patience()))
        };
        due.into_iter().for_each(|due| self.wait(due, first));
    }

    fn wait(&mut self, due: Micros, first: u64) {
        if let Some(block) = self.blocks.get_mut(&first) {
            block.due = Some(due);
            self.due.insert((due, first));
        }
    }

    /// The time to wait for requests.
    fn patience(&self) -> Micros {
        if self.members > SMALL_GROUP { self.lag.max(CROWD_LAG) } else { self.lag }
    }

    /// The number of further symbols of a block for the group, by the requests so far. Sites that kept silent
    /// because of an announcement lack no more than that.
    fn wanted(&self, block: &Block, first: u64) -> u64 {
        let own = u64::from(block.parity.saturating_sub(block.made));
        let lacks = block.lacks().filter(|(_, lack)| *lack > 0);
        if self.members <= SMALL_GROUP {
            let lacks: Vec<u64> = lacks.map(|(_, lack)| lack).collect();
            return symbols_for_group(block.packets(first), self.members, &lacks).max(own);
        }
        let lacks: Vec<(u64, u64)> = lacks.collect();
        let usual = |site| !self.frequent_requesters.is_frequent(site);
        let announced = u64::from(block.announced.saturating_sub(block.made));
        symbols_for_large_group(block.packets(first), self.members, &lacks, usual).max(announced).max(own)
    }

    fn decide(&mut self, first: u64, window: &Window) -> Vec<(u64, RangeSet)> {
        let wanted = self.blocks.get(&first).map_or(0, |block| self.wanted(block, first));
        if let Some(block) = self.blocks.get(&first).filter(|block| block.made == 0) {
            self.frequent_requesters
                .note(block.lacks().filter(|(_, lack)| *lack > usual_lack(block.packets(first))));
        }
        let Some(block) = self.blocks.get_mut(&first) else { return Vec::new() };
        let count = block.packets(first);
        let demands = std::mem::take(&mut block.demands);
        let made = block.make_symbols(first, count, wanted, window);
        let mut alone = Vec::new();
        for (site, demand) in &demands {
            let helped = if block.is_patient(*site) { made.len() as u64 } else { 0 };
            let rest = block.lack(demand).saturating_sub(helped);
            if rest > 0 {
                alone.push((*site, last_of(&demand.packets, rest)));
            }
        }
        block.begin_round(demands.into_keys(), made.len());
        self.symbols.extend(made);
        alone
    }
}

impl Block {
    fn new(now: Micros, class: Class) -> Self {
        Self {
            opened: now,
            last: None,
            class,
            due: None,
            demands: BTreeMap::new(),
            rounds: BTreeMap::new(),
            made: 0,
            round: 0,
            parity: 0,
            passed_with: 0,
            quiet_until: Micros(0),
            announced: 0,
            told: Micros(0),
        }
    }

    /// The number of the block's symbols that the requesting site had heard or lost, as far as the request
    /// reports it; otherwise by time.
    fn settled(&self, now: Micros, first: u64, request: &Request) -> u16 {
        let passed = match request.heard {
            Some(heard) => heard >= self.passed_with,
            None => now >= self.quiet_until,
        };
        let before = self.made.saturating_sub(self.round);
        if passed { self.made } else { request.symbols_of(first).max(before).min(self.made) }
    }

    /// The number of its packets; for an open block, the largest number that it may have.
    fn packets(&self, first: u64) -> u64 {
        self.last.map_or(LARGEST_BLOCK as u64, |last| last.saturating_sub(first).saturating_add(1))
    }

    fn is_patient(&self, site: u64) -> bool {
        self.rounds.get(&site).copied().unwrap_or(0) < ROUNDS
    }

    fn lack(&self, demand: &Demand) -> u64 {
        let coming = self.made.saturating_sub(demand.settled);
        demand.packets.count().saturating_sub(u64::from(coming))
    }

    /// The lacks of those sites that still get symbols.
    fn lacks(&self) -> impl Iterator<Item = (u64, u64)> {
        let patient = self.demands.iter().filter(|(site, _)| self.is_patient(**site));
        patient.map(|(site, demand)| (*site, self.lack(demand)))
    }

    /// Empty if packets of the block have left the window.
    fn make_symbols(&self, first: u64, count: u64, wanted: u64, window: &Window) -> Vec<Symbol> {
        let room = LARGEST_BLOCK as u64 - u64::from(self.made);
        let (Ok(wanted), Ok(count)) = (u16::try_from(wanted.min(room)), u16::try_from(count)) else {
            return Vec::new();
        };
        let payloads = (first..first + u64::from(count)).map_while(|packet| window.packet(packet));
        if wanted == 0 || payloads.clone().count() < usize::from(count) {
            return Vec::new();
        }
        let Some(encoder) = Encoder::new(payloads.map(|kept| &kept.payload)) else { return Vec::new() };
        let made = self.made + wanted;
        let symbol = |(index, bytes)| Symbol { class: self.class, first, count, index, made, bytes };
        encoder.symbols(self.made, wanted).map(symbol).collect()
    }

    fn begin_round(&mut self, sites: impl Iterator<Item = u64>, made: usize) {
        self.round = u16::try_from(made).unwrap_or(u16::MAX);
        self.made = self.made.saturating_add(self.round);
        if made > 0 {
            // Until the last of the symbols has been sent.
            self.quiet_until = Micros(u64::MAX);
            self.passed_with = u64::MAX;
        }
        sites.for_each(|site| {
            let rounds = self.rounds.entry(site).or_default();
            *rounds = rounds.saturating_add(1);
        });
    }
}

/// The last `count` numbers of the set.
fn last_of(packets: &RangeSet, count: u64) -> RangeSet {
    let mut rest = packets.clone();
    let too_many = packets.count().saturating_sub(count);
    for (first, last) in packets.iter() {
        let dropped = packets.count() - rest.count();
        if dropped >= too_many {
            break;
        }
        rest.remove(first, last.min(first.saturating_add(too_many - dropped - 1)));
    }
    rest
}

/// The longest time that a block stays open while sites request packets of it: data that waits longer goes by
/// the session anyway.
const BLOCK_TIME: Micros = Micros::from_millis(200);

/// A leg that has sent nothing for this time is idle, and its last block is closed.
const QUIET_TIME: Micros = Micros::from_millis(20);

/// Rounds of symbols for a site.
const ROUNDS: u8 = 4;

/// The delay of requests before any was measured: the receivers' wait for reordering, and a round trip.
const FIRST_LAG: Micros = Micros::from_millis(20);
const SHORTEST_LAG: Micros = Micros::from_millis(2);
const LONGEST_LAG: Micros = Micros::from_millis(300);

/// In a large group the first request comes a fifth of the drawn time after the loss, and the second some
/// milliseconds later.
const CROWD_LAG: Micros = Micros::from_millis(50);

/// The most symbols that wait for the pacer (3 MB, and those of one more block).
const QUEUED_SYMBOLS: usize = 2_048;

/// A site that requests announced symbols has missed the announcement.
const TELL_AGAIN: Micros = Micros::from_millis(20);

/// The delay before a block is examined again when too many symbols wait.
const BUSY_WAIT: Micros = Micros::from_millis(5);
