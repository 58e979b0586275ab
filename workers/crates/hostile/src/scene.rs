use downburst_model::{Epoch, FeedName, LegId, Sequence, SiteName};
use downburst_session::{
    CircuitOffer, CredentialKept, FeedStart, LegJoin, OpenStream, ProductBegin, Refused, ResentBegin,
    Subscriptions, Ticket,
};

/// A hostile site knows itself and the names that hubs gave to it. Lies about existing things reach further
/// than lies about others.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub site: SiteName,
    /// Its credential's secret.
    pub secret: String,
    /// A secret that it would have next, and SHA-256 of that in hex.
    pub spare: (String, String),
    /// Names of other sites.
    pub others: Vec<SiteName>,
    /// Feeds, the lives of their logs and the last number known there.
    pub feeds: Vec<(FeedName, Epoch, Sequence)>,
    /// Legs, and their lives.
    pub legs: Vec<(LegId, u64)>,
    /// Data connections that the hub wants.
    pub streams: Vec<(u32, Ticket)>,
    /// Circuits' leases.
    pub leases: Vec<u32>,
    /// Resends.
    pub resends: Vec<u64>,
    /// The hub keeps the spare credential.
    pub spare_is_kept: bool,
    /// Wall clock, microseconds.
    pub now_us: i64,
}

impl Scene {
    /// A site that knows nothing yet.
    pub fn new(site: SiteName, secret: String, spare: (String, String)) -> Self {
        Self {
            site,
            secret,
            spare,
            others: Vec::new(),
            feeds: Vec::new(),
            legs: Vec::new(),
            streams: Vec::new(),
            leases: Vec::new(),
            resends: Vec::new(),
            spare_is_kept: false,
            now_us: 0,
        }
    }

    /// Learns of a feed, or where its log ends now.
    pub fn learn(&mut self, feed: FeedName, epoch: Epoch, head: Sequence) {
        self.feeds.retain(|(known, ..)| *known != feed);
        self.feeds.push((feed, epoch, head));
    }

    /// What a hub says in a refusal.
    pub fn refused(body: &[u8]) -> Option<Refused> {
        minicbor::decode(body).ok()
    }

    /// Learns from a frame of the hub. What can't be read is passed over.
    pub fn hear(&mut self, kind: u8, body: &[u8]) {
        match kind {
            4 => {
                let heads = minicbor::decode::<Subscriptions>(body).map(|told| told.heads);
                for head in heads.unwrap_or_default() {
                    self.learn(head.feed, head.epoch, head.head);
                }
            }
            5 => {
                if let Ok(start) = minicbor::decode::<FeedStart>(body) {
                    self.learn(start.feed, start.epoch, start.after);
                }
            }
            6 => {
                if let Ok(begin) = minicbor::decode::<ProductBegin>(body) {
                    let key = begin.info.key;
                    self.learn(key.feed, key.epoch, key.sequence);
                }
            }
            9 => {
                if let Ok(join) = minicbor::decode::<LegJoin>(body) {
                    keep_some(&mut self.legs, (join.leg, join.leg_epoch));
                }
            }
            20 => {
                if let Ok(begin) = minicbor::decode::<ResentBegin>(body) {
                    keep_some(&mut self.resends, begin.resend);
                }
            }
            27 => {
                if let Ok(offer) = minicbor::decode::<CircuitOffer>(body) {
                    keep_some(&mut self.leases, offer.lease);
                }
            }
            42 => {
                if let Ok(open) = minicbor::decode::<OpenStream>(body) {
                    keep_some(&mut self.streams, (open.stream, open.ticket));
                }
            }
            50 => {
                let kept = minicbor::decode::<CredentialKept>(body);
                self.spare_is_kept |= kept.is_ok_and(|kept| kept.sha256 == self.spare.1);
            }
            _ => {}
        }
    }
}

fn keep_some<T: PartialEq>(known: &mut Vec<T>, item: T) {
    if !known.contains(&item) {
        known.push(item);
    }
    if known.len() > KEPT {
        known.remove(0);
    }
}

const KEPT: usize = 64;
