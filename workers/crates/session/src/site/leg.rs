use downburst_model::{Machine, Micros, Now, RangeSet};
use downburst_vcmtp::{Datagram, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput};

use crate::spans::Spans;
use crate::{LegJoin, Reception};

/// A multicast leg that this site receives.
pub(crate) struct Leg {
    pub(crate) join: LegJoin,
    /// The time at which packets were last given up; products that lack bytes since then are requested over the
    /// session.
    pub(crate) gave_up_at: Option<Micros>,
    /// The reception of the group at the host.
    pub(crate) reception: Option<Reception>,
    /// The host's explanation for a silent group.
    pub(crate) deaf: Option<String>,
    receiver: Receiver,
    began: Micros,
    /// Numbers that the leg accounted for: everything up to its coverage, its products, and numbers without a
    /// product on the leg.
    announced: RangeSet,
    /// The highest number that the leg mentioned.
    highest: u64,
    /// The same at an earlier time.
    highest_at: (Micros, u64),
    /// The highest number below which no hole will be filled any more.
    searched_to: u64,
    joined: bool,
}

impl Leg {
    /// `seed` differs between sites.
    pub(crate) fn new(now: Now, join: LegJoin, seed: u64) -> Self {
        let first = join.key_in_use.as_ref().unwrap_or(&join.key).clone();
        let config = ReceiverConfig::new(join.leg, join.leg_epoch, first, seed);
        let mut receiver = Receiver::new(ReceiverConfig {
            sender_key: join.sender_key,
            proof_secret: join.proof_secret.as_deref().cloned(),
            channel: join.channel.clone(),
            ..config
        });
        receiver.handle(now, ReceiverInput::Key(join.key.clone()));
        Self {
            receiver,
            join,
            gave_up_at: None,
            reception: None,
            deaf: None,
            began: now.monotonic,
            announced: RangeSet::new(),
            highest: 0,
            highest_at: (now.monotonic, 0),
            searched_to: 0,
            joined: false,
        }
    }

    /// Passes an input to the receiver; returns its outputs.
    pub(crate) fn handle(&mut self, now: Now, input: ReceiverInput) -> Vec<ReceiverOutput> {
        self.receiver.handle(now, input);
        self.poll(now)
    }

    /// Passes datagrams that arrived together to the receiver; returns its outputs.
    pub(crate) fn hear(&mut self, now: Now, batch: Vec<Datagram>) -> Vec<ReceiverOutput> {
        batch.into_iter().for_each(|datagram| self.receiver.handle(now, ReceiverInput::Datagram(datagram)));
        self.poll(now)
    }

    /// The receiver's outputs that are due by now.
    pub(crate) fn poll(&mut self, now: Now) -> Vec<ReceiverOutput> {
        std::iter::from_fn(|| self.receiver.poll(now)).collect()
    }

    /// The first packet arrived.
    pub(crate) fn joined(&mut self, after: u64) {
        self.joined = true;
        self.announced.insert(0, after);
        self.highest = self.highest.max(after);
    }

    /// The leg accounts for `previous+1..=to`.
    pub(crate) fn account(&mut self, previous: u64, to: u64) {
        self.announced.insert(previous.saturating_add(1), to);
        self.highest = self.highest.max(previous).max(to);
    }

    /// Numbers that the leg skipped: their part of the manifest is lost, so far, or the sender left them out.
    pub(crate) fn holes(&self) -> RangeSet {
        self.announced.gaps(0, self.highest).collect()
    }

    /// The holes that the leg won't fill. After a loss these are all. Without one, packets of urgent products overtake
    /// those of others, which still come; a sender leaves products out only behind the feed's `deadline`.
    pub(crate) fn lasting_holes(&mut self, now: Now, deadline: Option<Micros>) -> RangeSet {
        if self.lost_lately(now) {
            return self.holes();
        }
        let (at, highest) = self.highest_at;
        if deadline.is_none_or(|deadline| now.monotonic.since(at) < deadline) || !self.receiver.is_complete()
        {
            return RangeSet::new();
        }
        self.searched_to = highest;
        self.highest_at = (now.monotonic, self.highest);
        self.announced.gaps(0, highest).collect()
    }

    /// True if each hole so far was one of the [`lasting_holes`](Self::lasting_holes).
    pub(crate) fn is_searched(&self) -> bool {
        self.searched_to >= self.highest
    }

    /// The end of the leg's account without a hole; `None` before the first packet.
    pub(crate) fn accounted_to(&self) -> Option<u64> {
        self.joined.then(|| self.announced.frontier())
    }

    /// True if nothing was received within the time limit for a new leg.
    pub(crate) fn is_mute(&self, now: Now) -> bool {
        !self.joined && now.monotonic >= self.began.plus(JOIN_LIMIT)
    }

    /// The reason for a leg without reception: datagrams that could not be opened are better evidence than the
    /// host's guess.
    pub(crate) fn why_unheard(&self, what: &str) -> String {
        let refused = self.receiver.stats().refused;
        match &self.deaf {
            _ if !self.joined && refused > 0 => format!(
                "{what}: {refused} datagrams came, and none was of this leg; another sender uses the group"
            ),
            Some(reason) => format!("{what}: {reason}"),
            None => what.to_owned(),
        }
    }

    /// True for some time after packets were given up.
    pub(crate) fn lost_lately(&self, now: Now) -> bool {
        self.gave_up_at.is_some_and(|at| now.monotonic.since(at) < LOSS_MEMORY)
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let join_limit = (!self.joined).then(|| self.began.plus(JOIN_LIMIT));
        self.receiver.deadline().into_iter().chain(join_limit).min()
    }
}

impl std::fmt::Debug for Leg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leg").field("join", &self.join).finish_non_exhaustive()
    }
}

/// The time limit for the first packet of a leg: twenty heads of an idle leg.
const JOIN_LIMIT: Micros = Micros::from_secs(5);

/// The time after a loss during which holes in the manifest are requested over the session.
const LOSS_MEMORY: Micros = Micros::from_secs(60);
