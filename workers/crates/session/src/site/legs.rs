use bytes::Bytes;
use downburst_model::{FeedName, Lane, LegId, Micros, Now, ProductInfo, Transport};
use downburst_vcmtp::{Datagram, ReceiverInput, ReceiverOutput, Request};

use super::assembly::Source;
use super::leg::Leg;
use super::{Connection, SiteSession};
use crate::bounds;
use crate::{Forged, KeyTaken, LegJoin, LegJoined, LegLeft, Nak, NextKey, Reception, SiteEvent, SiteOutput};

impl SiteSession {
    /// Joins a leg, or reports why it can't: every `LegJoin` is eventually answered by one `LegLeft`.
    pub(super) fn join_leg(&mut self, now: Now, join: LegJoin) {
        if let Some(known) = self.legs.get(&join.leg) {
            if known.join.leg_epoch == join.leg_epoch {
                return;
            }
            self.end_leg(now, join.leg, "the leg was started anew");
        }
        let track = self.tracks.get(&join.feed).filter(|track| track.started);
        if track.is_none_or(|track| track.epoch != join.epoch) {
            let reason = "the feed was not begun here in the leg's epoch".to_owned();
            return self.send(LegLeft { leg: join.leg, known_to: None, reason, too_slow: None });
        }
        self.outputs.push_back(SiteOutput::JoinGroup(join.clone()));
        let seed = self.name_hash ^ join.leg_epoch;
        self.legs.insert(join.leg, Leg::new(now, join, seed));
        self.tell_round_trip(now);
    }

    /// Passes the round trip, as measured by the clock exchange, to the receivers; in large groups it
    /// determines how long a request waits.
    pub(super) fn tell_round_trip(&mut self, now: Now) {
        let Some(round_trip) = self.clock.round_trip() else { return };
        let legs: Vec<LegId> = self.legs.keys().copied().collect();
        for leg in legs {
            self.tell_leg(now, leg, None, ReceiverInput::RoundTrip(round_trip));
        }
    }

    pub(super) fn join_failed(&mut self, now: Now, leg: LegId, reason: &str) {
        self.end_leg(now, leg, reason);
    }

    pub(super) fn group_joined(&mut self, leg: LegId, reception: Reception) {
        if let Some(leg) = self.legs.get_mut(&leg) {
            leg.reception = Some(reception);
        }
    }

    /// Stores the reason, for the report when the leg is given up.
    pub(super) fn leg_deaf(&mut self, leg: LegId, reason: String) {
        if let Some(leg) = self.legs.get_mut(&leg) {
            leg.deaf = Some(reason);
        }
    }

    /// Passes an input to a leg's receiver. Input for another epoch of the leg is ignored.
    pub(super) fn tell_leg(&mut self, now: Now, id: LegId, leg_epoch: Option<u64>, input: ReceiverInput) {
        let leg = self.legs.get_mut(&id);
        let Some(leg) = leg.filter(|leg| leg_epoch.is_none_or(|epoch| epoch == leg.join.leg_epoch)) else {
            return;
        };
        let repaired = matches!(input, ReceiverInput::Repair { .. });
        let outputs = leg.handle(now, input);
        self.take_leg_outputs(now, id, outputs, repaired);
    }

    /// Passes datagrams that arrived together to a leg's receiver.
    pub(super) fn hear_group(&mut self, now: Now, id: LegId, batch: Vec<Datagram>) {
        if let Some(leg) = self.legs.get_mut(&id) {
            let outputs = leg.hear(now, batch);
            self.take_leg_outputs(now, id, outputs, false);
        }
    }

    /// Takes a leg's next key and confirms it; a site without this epoch of the leg does not need it.
    pub(super) fn take_leg_key(&mut self, now: Now, next: NextKey) {
        let NextKey { leg, leg_epoch, key } = next;
        if self.legs.get(&leg).is_some_and(|known| known.join.leg_epoch == leg_epoch) {
            self.send(KeyTaken { leg, leg_epoch, key_id: key.id });
            self.outputs.push_back(SiteOutput::LegKey(leg, key.clone()));
            self.tell_leg(now, leg, Some(leg_epoch), ReceiverInput::Key(key));
        }
    }

    /// Runs the due actions of the receivers, and leaves legs without reception.
    pub(super) fn advance_legs(&mut self, now: Now) {
        let due = |leg: &Leg| leg.deadline().is_some_and(|at| at <= now.monotonic);
        let ids: Vec<LegId> = self.legs.iter().filter(|(_, leg)| due(leg)).map(|(id, _)| *id).collect();
        for id in ids {
            let outputs = self.legs.get_mut(&id).map(|leg| leg.poll(now)).unwrap_or_default();
            self.take_leg_outputs(now, id, outputs, false);
            if self.legs.get(&id).is_some_and(|leg| leg.is_mute(now)) {
                let reason = self
                    .legs
                    .get(&id)
                    .map(|leg| leg.why_unheard("nothing was received from the leg's group"));
                self.end_leg(now, id, &reason.unwrap_or_default());
            }
        }
    }

    pub(super) fn end_legs(&mut self, now: Now, which: impl Fn(&FeedName) -> bool, reason: &str) {
        let ids: Vec<LegId> =
            self.legs.iter().filter(|(_, leg)| which(&leg.join.feed)).map(|(id, _)| *id).collect();
        for id in ids {
            self.end_leg(now, id, reason);
        }
    }

    pub(super) fn end_leg(&mut self, now: Now, id: LegId, reason: &str) {
        self.leave_leg(now, id, reason, None);
    }

    fn leave_leg(&mut self, now: Now, id: LegId, reason: &str, too_slow: Option<bool>) {
        let Some(leg) = self.legs.remove(&id) else {
            return;
        };
        let track = self.tracks.get_mut(&leg.join.feed).filter(|track| track.epoch == leg.join.epoch);
        let known_to = leg.accounted_to().zip(track.as_deref()).map(|(known, track)| track.known_to(known));
        self.outputs.push_back(SiteOutput::LeaveGroup(id));
        self.event(SiteEvent::LegLeft { leg: id, reason: reason.to_owned() });
        if self.connection == Connection::Up {
            let known_to = known_to.map(downburst_model::Sequence);
            self.send(LegLeft { leg: id, known_to, reason: reason.to_owned(), too_slow });
        }
        let track = self.tracks.get_mut(&leg.join.feed).filter(|track| track.epoch == leg.join.epoch);
        if let Some(track) = track {
            track.leg_ended(now, id, known_to.unwrap_or(0), &mut self.outputs);
        }
    }

    fn take_leg_outputs(&mut self, now: Now, id: LegId, outputs: Vec<ReceiverOutput>, repaired: bool) {
        for output in outputs {
            let source = Source { leg: id, transport: Transport::Multicast };
            match output {
                ReceiverOutput::Joined { after } => self.leg_joined(id, after),
                ReceiverOutput::Announce { previous, info } => {
                    self.leg_announced(now, source, previous.0, info)
                }
                ReceiverOutput::Block { sequence, offset, bytes } => {
                    self.leg_block(now, source, (sequence.0, offset), &bytes, repaired);
                }
                ReceiverOutput::Head { previous, head } => self.leg_head(now, id, previous.0, head.0),
                ReceiverOutput::Ask(bytes) => self.outputs.push_back(SiteOutput::Ask { leg: id, bytes }),
                ReceiverOutput::Channel { open } => self.event(SiteEvent::RepairChannel { leg: id, open }),
                ReceiverOutput::Nak(request) => self.ask_for_packets(id, request),
                // The group is left before the report: the capacity that it fills is free after that.
                ReceiverOutput::TooSlow => self.leave_leg(now, id, TOO_SLOW, Some(true)),
                ReceiverOutput::GaveUp(_) => self.leg_gave_up(now, id),
                ReceiverOutput::Forged => {
                    if let Some(leg_epoch) = self.legs.get(&id).map(|leg| leg.join.leg_epoch) {
                        self.send(Forged { leg: id, leg_epoch });
                    }
                }
                ReceiverOutput::Silent => {
                    let reason = self.legs.get(&id).map(|leg| leg.why_unheard("the leg fell silent"));
                    self.end_leg(now, id, &reason.unwrap_or_default());
                }
            }
        }
    }

    fn ask_for_packets(&mut self, id: LegId, request: Request) {
        let Some(leg_epoch) = self.legs.get(&id).map(|leg| leg.join.leg_epoch) else { return };
        if request.packets.is_empty() && request.losses.is_none() {
            return;
        }
        let Request { packets, heard, symbols, unanswered, losses } = request;
        let unanswered = unanswered.then_some(true);
        self.send(Nak { leg: id, leg_epoch, packets, heard, symbols, unanswered, losses });
    }

    fn leg_joined(&mut self, id: LegId, after: downburst_model::Sequence) {
        let Some(leg) = self.legs.get_mut(&id) else {
            return;
        };
        leg.joined(after.0);
        let (feed, leg_epoch, reception) = (leg.join.feed.clone(), leg.join.leg_epoch, leg.reception.clone());
        self.event(SiteEvent::LegJoined { leg: id, feed });
        self.send(LegJoined { leg: id, leg_epoch, after, reception });
    }

    fn leg_announced(&mut self, now: Now, source: Source, previous: u64, info: ProductInfo) {
        let Some(leg) = self.legs.get_mut(&source.leg) else {
            return;
        };
        let Some(track) = self.tracks.get_mut(&leg.join.feed) else {
            return;
        };
        let number = info.key.sequence.0;
        if info.key.feed != leg.join.feed || info.key.epoch != leg.join.epoch || previous >= number {
            return;
        }
        // Any holder of the leg's key may have made it, so it does not end the session: the number stays a hole
        // and is requested from the hub.
        if bounds::check_product(&info).is_err() {
            leg.gave_up_at = Some(now.monotonic);
            return;
        }
        // Above the limit the number stays a hole of the leg, and is requested once there is room.
        if track.pending_count() >= PENDING_PRODUCTS {
            leg.gave_up_at = Some(now.monotonic);
            return;
        }
        leg.account(previous, number);
        track.cover(now, previous.saturating_add(1), number.saturating_sub(1), &mut self.outputs);
        if !self.patterns.want(&info.key.feed, info.id.as_str()) {
            track.pass(now, number, info.id);
        } else if let Some(assembly) = track.announce(now, info, Lane::Live, source, &mut self.outputs) {
            assembly.legs.insert(source.leg);
            self.watch_deadlines(now);
        }
        self.watch(now, source.leg);
    }

    fn leg_block(&mut self, now: Now, source: Source, at: (u64, u64), bytes: &Bytes, repaired: bool) {
        let feed = self.legs.get(&source.leg).map(|leg| &leg.join.feed);
        if let Some(track) = feed.and_then(|feed| self.tracks.get_mut(feed)) {
            track.block(now, source, at, bytes, repaired, &mut self.outputs);
        }
    }

    fn leg_head(&mut self, now: Now, id: LegId, previous: u64, head: u64) {
        let Some(leg) = self.legs.get_mut(&id) else {
            return;
        };
        leg.account(previous, head);
        if let Some(track) = self.tracks.get_mut(&leg.join.feed) {
            track.cover(now, previous.saturating_add(1), head, &mut self.outputs);
        }
        self.watch(now, id);
    }

    /// Holes in the manifest are requested without delay; products that lack bytes get time for completion by
    /// packets that were not lost.
    fn leg_gave_up(&mut self, now: Now, id: LegId) {
        let Some(leg) = self.legs.get_mut(&id) else {
            return;
        };
        leg.gave_up_at = Some(now.monotonic);
        let holes = leg.holes();
        if let Some(track) = self.tracks.get_mut(&leg.join.feed) {
            track.ask_unknown(now, holes);
        }
        self.watch(now, id);
    }

    fn watch(&mut self, now: Now, id: LegId) {
        let lost = self.legs.get(&id).is_some_and(|leg| leg.lost_lately(now));
        self.scan_within(now, if lost { HOLE_GRACE } else { QUIET_SCAN });
    }
}

/// A hash of the site's name (FNV-1a), which makes random choices differ between sites.
pub(super) fn name_hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

const TOO_SLOW: &str = "the group brings more than comes through to this site, and repair does not keep up";

/// The grace time of a hole in the manifest after packets were given up: late packets may still fill it.
const HOLE_GRACE: Micros = Micros::from_millis(200);

/// The time until a search for stalled products if nothing was lost.
const QUIET_SCAN: Micros = Micros::from_secs(5);

/// The maximum number of announced, incomplete products of a feed.
const PENDING_PRODUCTS: usize = 16_384;
