//! The selection of repaired packets, of their receivers and times: hurried ones one by one, as follows, the
//! others by blocks (`blocks.rs`).
//!
//! | state of a packet | event | next |
//! |---|---|---|
//! | kept | one site asks | asked: wait `repair_hold` for a second asker |
//! | asked, never repaired to the group | a second site asks | queued for the group |
//! | repaired to one site of a large group | a second site asks | queued for the group |
//! | kept, in a large group where two usually ask | one site asks | queued for the group |
//! | asked | hold over, the site has budget | repaired to the site, quiet for that site for [`HOLD_OFF`] |
//! | asked | hold over, no budget | asked, again when the next budget period begins |
//! | asked, queued | out of the window | gone: the asker is notified |
//! | queued | the pacer lets it out | repaired to the group, quiet for all sites for [`HOLD_OFF`] |
//! | quiet, queued | a site asks | nothing: its repair is under way, and otherwise it asks again |
//!
//! A packet goes to the group once. A site that lost the repair too gets it alone: a site behind a link
//! slower than the leg would lose each repair to the group again, at the leg's full rate and at the expense
//! of all sites.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use downburst_model::{Class, Micros, RangeSet};

use crate::Request;
use crate::packet::notice::Notice;
use crate::sender::blocks::{Blocks, Symbol};
use crate::sender::parity::Parity;
use crate::sender::pending_repairs::PendingRepairs;
use crate::sender::window::Window;

/// The repair half of a sender.
#[derive(Debug)]
pub(crate) struct Repairs {
    hold: Micros,
    /// The time at which the answer is due, by packet and site.
    asked: BTreeMap<(u64, u64), Micros>,
    due: BTreeSet<(Micros, u64, u64)>,
    group: BTreeSet<(Class, u64)>,
    recent: BTreeSet<(u64, u64)>,
    recent_order: VecDeque<(Micros, u64, u64)>,
    budget: Budget,
    blocks: Blocks,
    pending_repairs: PendingRepairs,
    sharing: Sharing,
}

/// The kind of the next transmission to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ForGroup {
    Packet(Class, u64),
    Symbol(Class),
}

/// The answer to a site's request for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Repair { site: u64, packet: u64 },
    Gone { site: u64, packet: u64 },
}

/// Bounds the bytes that the sender copies into one site's session: the leg's rate, counted in periods.
#[derive(Debug)]
struct Budget {
    bytes: u64,
    used: BTreeMap<u64, u64>,
    ends: Micros,
}

/// The share of packets of a large group that a second site requests, too: the mean of about eight. Where it
/// is usual, waiting for the second asker would cost the first a copy of its own.
#[derive(Debug, Default)]
struct Sharing {
    share: u32,
    turn: u32,
}

impl Repairs {
    pub(crate) fn new(hold: Micros, rate_bps: u64, parity: Parity) -> Self {
        Self {
            hold,
            asked: BTreeMap::new(),
            due: BTreeSet::new(),
            group: BTreeSet::new(),
            recent: BTreeSet::new(),
            recent_order: VecDeque::new(),
            budget: Budget { bytes: Budget::of(rate_bps), used: BTreeMap::new(), ends: Micros(0) },
            blocks: Blocks::new(parity),
            pending_repairs: PendingRepairs::default(),
            sharing: Sharing::default(),
        }
    }

    pub(crate) fn change_rate(&mut self, rate_bps: u64) {
        self.budget.bytes = Budget::of(rate_bps);
    }

    /// Notes a site's request; returns the numbers out of the window. Numbers that were never sent are
    /// ignored, and so are those beyond [`ASK_LIMIT`]: the site asks again.
    pub(crate) fn ask(&mut self, now: Micros, site: u64, request: &Request, window: &mut Window) -> RangeSet {
        let (mut gone, mut left) = (RangeSet::new(), ASK_LIMIT);
        self.forget_recent(now);
        self.note_lag(now, &request.packets, window);
        for (first, last) in request.packets.iter() {
            if let Some(before) = window.first().checked_sub(1) {
                gone.insert(first, last.min(before));
            }
            let (first, end) = (first.max(window.first()), last.saturating_add(1).min(window.next()));
            for packet in first..end.min(first.saturating_add(left)) {
                self.ask_packet(now, (site, packet), request, window);
                left -= 1;
            }
        }
        self.blocks.announce_repairs(now, &mut self.pending_repairs);
        gone
    }

    /// A packet was sent for the first time; `data` is false for a head.
    pub(crate) fn sent(&mut self, now: Micros, packet: u64, class: Class, data: bool) {
        self.blocks.sent(now, packet, class, data);
    }

    pub(crate) fn change_members(&mut self, members: u64) {
        self.blocks.change_members(members);
        self.pending_repairs.change_members(members);
    }

    /// Decides about a block that is due; false if none is.
    pub(crate) fn decide(&mut self, now: Micros, window: &Window) -> bool {
        self.blocks.expire(window.first());
        let Some(alone) = self.blocks.advance(now, window) else { return false };
        for (site, packets) in alone {
            for packet in packets.iter().flat_map(|(first, last)| first..=last) {
                if !self.recent.contains(&(packet, site)) && !self.asked.contains_key(&(packet, site)) {
                    self.wait(packet, site, now);
                }
            }
        }
        true
    }

    /// The next answer to a single site that is due.
    pub(crate) fn answer(&mut self, now: Micros, window: &Window) -> Option<Answer> {
        loop {
            let &(due, packet, site) = self.due.first().filter(|(due, ..)| *due <= now)?;
            self.forget(packet, site, due);
            let Some(kept) = window.packet(packet) else { return Some(Answer::Gone { site, packet }) };
            if !self.budget.spend(now, site, kept.payload.encoded_bytes() as u64) {
                self.wait(packet, site, self.budget.ends);
                continue;
            }
            self.recent.insert((packet, site));
            self.recent_order.push_back((now.plus(HOLD_OFF), packet, site));
            return Some(Answer::Repair { site, packet });
        }
    }

    /// The most urgent of the transmissions that wait for the group.
    pub(crate) fn group(&self) -> Option<(Class, ForGroup)> {
        let packet = self.group.first().map(|(class, packet)| (*class, ForGroup::Packet(*class, *packet)));
        let symbol = self.blocks.next_symbol().map(|symbol| (symbol.class, ForGroup::Symbol(symbol.class)));
        packet.into_iter().chain(symbol).min()
    }

    /// The symbol goes to the group now.
    pub(crate) fn take_symbol(&mut self, now: Micros) -> Option<Symbol> {
        self.blocks.take_symbol(now)
    }

    /// The time of the next notice to a large group.
    pub(crate) fn notice_due(&self) -> Option<Micros> {
        self.pending_repairs.deadline()
    }

    pub(crate) fn take_notice(&mut self, now: Micros) -> Option<(u64, Notice)> {
        self.pending_repairs.take(now)
    }

    /// The packet goes to the group now, or no longer can.
    pub(crate) fn take_group(&mut self, now: Micros, class: Class, packet: u64, window: &mut Window) {
        self.group.remove(&(class, packet));
        if let Some(kept) = window.packet_mut(packet) {
            kept.queued = false;
            kept.quiet_until = Some(now.plus(HOLD_OFF));
        }
    }

    /// The time at which the next answer to a single site or decision about a block is due.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.due.first().map(|(due, ..)| *due).into_iter().chain(self.blocks.deadline()).min()
    }

    /// Measures the delay of requests by the oldest packet that is requested for the first time.
    fn note_lag(&mut self, now: Micros, packets: &RangeSet, window: &Window) {
        let oldest = packets.iter().find_map(|(first, last)| {
            let packet = first.max(window.first());
            window.packet(packet).filter(|kept| packet <= last && kept.asker.is_none())
        });
        if let Some(kept) = oldest {
            self.blocks.note_lag(now.since(kept.sent));
        }
    }

    fn ask_packet(
        &mut self,
        now: Micros,
        (site, packet): (u64, u64),
        request: &Request,
        window: &mut Window,
    ) {
        let Some(kept) = window.packet_mut(packet) else { return };
        let first_asker = kept.asker.replace(kept.asker.unwrap_or(site));
        if !kept.hurried && self.blocks.ask(now, site, packet, request) {
            return;
        }
        let quiet = kept.queued || kept.quiet_until.is_some_and(|until| now < until);
        if quiet || self.recent.contains(&(packet, site)) {
            return;
        }
        let other = self.other_asker(packet, site);
        let shared = match first_asker {
            _ if !self.pending_repairs.is_large_group() => other.is_some(),
            None => self.sharing.first(),
            Some(first) => first != site && self.sharing.second(),
        };
        if shared && kept.quiet_until.is_none() {
            kept.queued = true;
            self.group.insert((kept.class, packet));
            self.pending_repairs.announce_packet(packet);
            other.into_iter().for_each(|(other, due)| self.forget(packet, other, due));
        } else if !self.asked.contains_key(&(packet, site)) {
            self.wait(packet, site, now.plus(self.hold));
        }
    }

    /// Another site that waits for an answer.
    fn other_asker(&self, packet: u64, site: u64) -> Option<(u64, Micros)> {
        let mut askers = self.asked.range((packet, 0)..=(packet, u64::MAX));
        askers.next().map(|((_, site), due)| (*site, *due)).filter(|(other, _)| *other != site)
    }

    fn wait(&mut self, packet: u64, site: u64, due: Micros) {
        self.asked.insert((packet, site), due);
        self.due.insert((due, packet, site));
    }

    fn forget(&mut self, packet: u64, site: u64, due: Micros) {
        self.asked.remove(&(packet, site));
        self.due.remove(&(due, packet, site));
    }

    fn forget_recent(&mut self, now: Micros) {
        while let Some(&(until, packet, site)) = self.recent_order.front() {
            if now < until {
                break;
            }
            self.recent_order.pop_front();
            self.recent.remove(&(packet, site));
        }
    }
}

impl Sharing {
    /// The first request for a packet: true if it goes to the group without delay. Some do not, so that the
    /// share of common losses stays known.
    fn first(&mut self) -> bool {
        self.turn = (self.turn + 1) % TRIALS;
        if self.share >= OFTEN && self.turn != 0 {
            return true;
        }
        self.share -= self.share / 8;
        false
    }

    /// A second site requests a packet that the first got or waits for.
    fn second(&mut self) -> bool {
        self.share = (self.share + ALWAYS / 8).min(ALWAYS);
        true
    }
}

impl Budget {
    fn of(rate_bps: u64) -> u64 {
        (rate_bps / 8 * BUDGET_PERIOD.0 / 1_000_000).max(SMALLEST_BUDGET_BYTES)
    }

    fn spend(&mut self, now: Micros, site: u64, bytes: u64) -> bool {
        if now >= self.ends {
            self.used.clear();
            self.ends = now.plus(BUDGET_PERIOD);
        }
        let used = self.used.entry(site).or_default();
        let fits = *used < self.bytes;
        *used = if fits { used.saturating_add(bytes) } else { *used };
        fits
    }
}

/// A packet repaired within this time is on its way to a site that asks for it again.
pub(crate) const HOLD_OFF: Micros = Micros::from_millis(20);

/// The number of packets examined per request; a receiver has no more requests open.
pub(crate) const ASK_LIMIT: u64 = 8_192;

/// The share of one, which is counted in this number of parts.
const ALWAYS: u32 = 1_024;

/// Above this share, a copy for the group costs less than single ones.
const OFTEN: u32 = ALWAYS / 2;

/// One of this number of first requests is held as if nothing was known.
const TRIALS: u32 = 8;

/// As long as a leg's own burst: repairs leave as datagrams, and a switch has to hold them.
const BUDGET_PERIOD: Micros = Micros::from_millis(10);

const SMALLEST_BUDGET_BYTES: u64 = 26 << 10;
