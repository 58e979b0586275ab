use bytes::BytesMut;
use downburst_model::{Machine, Micros, Now, RangeSet};
use downburst_vcmtp::{Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput};

use crate::spans::Spans;
use crate::{LegJoin, Reception};

/// A multicast leg this site listens to.
pub(crate) struct Leg {
    pub(crate) join: LegJoin,
    /// When packets were last given up; what lacks bytes since is asked from the session.
    pub(crate) gave_up_at: Option<Micros>,
    /// How the host receives the group.
    pub(crate) reception: Option<Reception>,
    /// Why the host thinks that nothing comes from the group.
    pub(crate) deaf: Option<String>,
    receiver: Receiver,
    began: Micros,
    /// Numbers the leg accounted for: everything up to its coverage, products, and what it carries nothing for.
    announced: RangeSet,
    /// The highest number the leg spoke of.
    highest: u64,
    joined: bool,
}

impl Leg {
    /// `seed` is another at each site.
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
            joined: false,
        }
    }

    /// Gives the receiver an input; answers what it found out.
    pub(crate) fn handle(&mut self, now: Now, input: ReceiverInput) -> Vec<ReceiverOutput> {
        self.receiver.handle(now, input);
        self.poll(now)
    }

    /// Gives the receiver datagrams that came together; answers what it found out.
    pub(crate) fn hear(&mut self, now: Now, batch: Vec<BytesMut>) -> Vec<ReceiverOutput> {
        batch.into_iter().for_each(|datagram| self.receiver.handle(now, ReceiverInput::Datagram(datagram)));
        self.poll(now)
    }

    /// What the receiver found out by the passing of time.
    pub(crate) fn poll(&mut self, now: Now) -> Vec<ReceiverOutput> {
        std::iter::from_fn(|| self.receiver.poll(now)).collect()
    }

    /// The first packet came.
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

    /// Numbers the leg passed over: their part of the manifest is lost, so far.
    pub(crate) fn holes(&self) -> RangeSet {
        self.announced.gaps(0, self.highest).collect()
    }

    /// The end of what the leg accounted for without a hole; `None` before the first packet.
    pub(crate) fn accounted_to(&self) -> Option<u64> {
        self.joined.then(|| self.announced.frontier())
    }

    /// True if nothing was heard in the time a leg has to be heard.
    pub(crate) fn is_mute(&self, now: Now) -> bool {
        !self.joined && now.monotonic >= self.began.plus(JOIN_LIMIT)
    }

    /// The known facts of a leg that is not heard: datagrams that did not open are worth more than the host's
    /// guess.
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

    /// True for a while after packets were given up.
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

/// How long a leg may stay unheard: twenty heads of an idle one.
const JOIN_LIMIT: Micros = Micros::from_secs(5);

/// How long after a loss the holes in the manifest are asked from the session.
const LOSS_MEMORY: Micros = Micros::from_secs(60);
