use downburst_model::{Epoch, FeedName, LegId, Sequence, SiteName};
use downburst_session::{
    CircuitOffer, CredentialKept, FeedStart, LegJoin, OpenStream, ProductBegin, Refused, ResentBegin,
    Subscriptions, Ticket,
};

/// The knowledge of a hostile site: its own identity and the names received from hubs. False values about
/// existing things get further into a hub than values about unknown ones.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub site: SiteName,
    /// Its credential's secret.
    pub secret: String,
    /// The site's next secret, and the secret's SHA-256 in hex.
    pub spare: (String, String),
    /// Names of other sites.
    pub others: Vec<SiteName>,
    /// Feeds, their epochs and the last known sequence of each.
    pub feeds: Vec<(FeedName, Epoch, Sequence)>,
    /// Legs and their epochs.
    pub legs: Vec<(LegId, u64)>,
    /// Data connections that the hub requested.
    pub streams: Vec<(u32, Ticket)>,
    /// Circuits' leases.
    pub leases: Vec<u32>,
    /// Resends.
    pub resends: Vec<u64>,
    /// True if the hub keeps the spare credential.
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

    /// Records a feed, or the new head of its log.
    pub fn learn(&mut self, feed: FeedName, epoch: Epoch, head: Sequence) {
        self.feeds.retain(|(known, ..)| *known != feed);
        self.feeds.push((feed, epoch, head));
    }

    /// Decodes a hub's refusal.
    pub fn refused(body: &[u8]) -> Option<Refused> {
        minicbor::decode(body).ok()
    }

    /// Updates the scene from a frame of the hub. Frames that can't be decoded are ignored.
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
