//! Products that the hub refers to siblings: the driver fetches them, and what it passes on is proven by the hub's
//! digests.
//!
//! | input            | effect                                                                                |
//! |------------------|---------------------------------------------------------------------------------------|
//! | `Referral`       | the products become pending, as if the hub had begun to send them; `Event(Fetch)`      |
//! | `Piece`          | bytes of one of them; the last ones of a product come only if its digest is right     |
//! | `Spoilt`         | its bytes are dropped                                                                 |
//! | `Ended`          | `ReferralEnded` with the products that did not come, which are pending no more        |
use std::collections::BTreeMap;

use bytes::Bytes;
use downburst_model::{Epoch, FeedName, Lane, Now, RangeSet, Sequence, Transport};

use crate::site::SiteSession;
use crate::site::assembly::Source;
use crate::{Fetch, FetchProduct, MOST_REFERRALS, Referral, ReferralEnded, SiblingInput, SiteEvent};

/// The open referrals of a session.
#[derive(Debug, Default)]
pub(crate) struct Referrals {
    open: BTreeMap<u32, Open>,
}

#[derive(Debug)]
struct Open {
    feed: FeedName,
    epoch: Epoch,
    source: Source,
    /// The products that this site awaits.
    awaited: RangeSet,
}

impl Referrals {
    pub(in crate::site) fn clear(&mut self) {
        self.open.clear();
    }

    pub(in crate::site) fn forget(&mut self, feed: &FeedName) {
        self.open.retain(|_, open| open.feed != *feed);
    }
}

impl SiteSession {
    pub(in crate::site) fn take_referral(&mut self, now: Now, referral: Referral) {
        if self.transfers.referrals.open.len() >= MOST_REFERRALS {
            return self.violation(now, "the hub refers to too many siblings at the same time".to_owned());
        }
        let Some(first) = referral.items.first() else { return };
        let (feed, epoch) = (first.info.key.feed.clone(), first.info.key.epoch);
        let (number, source) = (referral.number, Source { leg: referral.leg, transport: Transport::Unicast });
        let Some(awaited) = self.announce_referred(now, source, &referral) else { return };
        if awaited.is_empty() {
            return self.send(ReferralEnded { number, missing: RangeSet::new(), fault: None });
        }
        let products = referral.items.iter().map(|item| &item.info);
        let products = products.filter(|info| awaited.contains(info.key.sequence.0));
        let products = products.map(|info| FetchProduct {
            sequence: info.key.sequence,
            size: info.size,
            digest: info.digest,
        });
        let products = products.collect();
        self.transfers.referrals.open.insert(number, Open { feed, epoch, source, awaited });
        let Referral { ticket, sibling, address, fingerprint, .. } = referral;
        let fetch = Fetch { number, ticket, sibling, address, fingerprint, products };
        self.event(SiteEvent::Fetch(Box::new(fetch)));
    }

    /// Takes news of a fetch. News of a referral that is over are ignored.
    pub(in crate::site) fn take_sibling(&mut self, now: Now, input: SiblingInput) {
        match input {
            SiblingInput::Port(port) => self.tell_if_up(port),
            SiblingInput::Piece { number, sequence, offset, bytes } => {
                self.sibling_piece(now, number, sequence, offset, &bytes);
            }
            SiblingInput::Spoilt { number, sequence } => {
                let Some(open) = self.transfers.referrals.open.get(&number) else { return };
                let track = self.tracks.get_mut(&open.feed).filter(|track| track.epoch == open.epoch);
                if let Some(track) = track {
                    track.spoilt(now, sequence.0, &mut self.outputs);
                }
            }
            SiblingInput::Ended { number, fault } => {
                let Some(open) = self.transfers.referrals.open.remove(&number) else { return };
                let track = self.tracks.get_mut(&open.feed);
                let track = track.filter(|track| track.started && track.epoch == open.epoch);
                let missing = track.map(|track| track.sibling_ended(&open.awaited, &mut self.outputs));
                self.send(ReferralEnded { number, missing: missing.unwrap_or_default(), fault });
            }
        }
    }

    /// Announces the products; returns those whose bytes are awaited. `None`: the feed is not served.
    fn announce_referred(&mut self, now: Now, source: Source, referral: &Referral) -> Option<RangeSet> {
        let key = &referral.items.first()?.info.key;
        let track =
            self.tracks.get_mut(&key.feed).filter(|track| track.started && track.epoch == key.epoch)?;
        let (mut awaited, out) = (RangeSet::new(), &mut self.outputs);
        for item in &referral.items {
            let number = item.info.key.sequence.0;
            track.cover(now, item.previous.0.saturating_add(1), number.saturating_sub(1), out);
            if let Some(assembly) = track.announce(now, item.info.clone(), Lane::Backfill, source, out) {
                assembly.transfers = assembly.transfers.saturating_add(1);
                assembly.repaired |= !assembly.legs.is_empty();
                awaited.insert(number, number);
            }
            if let Some(to) = item.to {
                track.cover(now, number.saturating_add(1), to.0, out);
            }
        }
        Some(awaited)
    }

    fn sibling_piece(&mut self, now: Now, number: u32, sequence: Sequence, offset: u64, bytes: &Bytes) {
        let Some(open) = self.transfers.referrals.open.get(&number) else { return };
        if !open.awaited.contains(sequence.0) {
            return;
        }
        let source = open.source;
        let track = self.tracks.get_mut(&open.feed).filter(|track| track.epoch == open.epoch);
        if let Some(track) = track {
            track.block(now, source, (sequence.0, offset), bytes, false, &mut self.outputs);
        }
    }
}
