use downburst_model::{Epoch, FeedName, LegId};
use downburst_session::{
    Attach, CircuitHeard, CircuitProbed, CircuitState, ClockRequest, CredentialOffered, CredentialShown,
    Filed, Forged, Frontier, HeartbeatOut, Hello, HostReading, KeyTaken, Late, LegJoined, LegLeft, Marked,
    Nak, PathProbed, Proof, ReferralEnded, RelayLegFailed, RelayLegOpen, RelayReport, ResentEnded,
    ResentFailed, SiblingPort, SiteClock, StreamEnded, Taken, Want, receipts_frame,
};

use crate::absurd::Absurd;
use crate::cbor;
use crate::dice::{Dice, Temper};
use crate::scene::Scene;

/// Makes the frames of one session.
#[derive(Debug)]
pub struct Liar<'a> {
    pub(crate) dice: Dice,
    pub(crate) scene: &'a Scene,
    pub(crate) focus: Focus,
    temper: Temper,
    /// Approximate remaining size of the frame.
    room_bytes: u64,
}

/// The subject of a frame, so that its fields are consistent.
#[derive(Clone, Debug)]
pub(crate) struct Focus {
    pub(crate) feed: FeedName,
    pub(crate) epoch: Epoch,
    pub(crate) head: u64,
    pub(crate) leg: LegId,
    pub(crate) leg_epoch: u64,
}

/// Makes the frame of a hello with the site's own credential.
pub fn first_frame(dice: &mut Dice, temper: Temper, scene: &Scene) -> Vec<u8> {
    // Most sites must be admitted, or the hub reads none of their further messages.
    let temper = if dice.one_in(8) { temper } else { Temper::Calm };
    let mut liar = Liar::new(dice.clone(), temper, scene);
    let own = Proof::Credential { site: scene.site.clone(), secret: scene.secret.clone() };
    let frame = framed(1, &encoded(&Hello { proof: own, ..Absurd::absurd(&mut liar) }));
    *dice = liar.dice;
    frame
}

macro_rules! kinds {
    ($($kind:literal => $name:ident,)*) => {
        /// A site's messages.
        const OF_SITES: &[(u8, &str)] = &[$(($kind, stringify!($name))),*];

        fn message(kind: u8, liar: &mut Liar<'_>) -> Vec<u8> {
            match kind {
                $($kind => encoded(&$name::absurd(liar)),)*
                _ => cbor::anything(&mut liar.dice, 3),
            }
        }
    };
}

kinds! {
    1 => Hello,
    10 => LegJoined,
    12 => LegLeft,
    13 => Nak,
    15 => Want,
    17 => ClockRequest,
    19 => Frontier,
    21 => ResentEnded,
    22 => ResentFailed,
    24 => Late,
    26 => KeyTaken,
    29 => CircuitState,
    30 => Forged,
    41 => Marked,
    43 => Attach,
    45 => StreamEnded,
    46 => Taken,
    47 => HeartbeatOut,
    49 => CredentialOffered,
    51 => CredentialShown,
    53 => Filed,
    56 => RelayLegOpen,
    57 => RelayLegFailed,
    61 => RelayReport,
    62 => CircuitHeard,
    64 => CircuitProbed,
    67 => PathProbed,
    68 => SiteClock,
    70 => HostReading,
    71 => SiblingPort,
    76 => ReferralEnded,
}

impl<'a> Liar<'a> {
    /// A generator for this scene, driven by these dice.
    pub fn new(dice: Dice, temper: Temper, scene: &'a Scene) -> Self {
        let feed = FeedName::parse("NGRID").unwrap_or_else(|_| unreachable!("a constant name"));
        let focus = Focus { feed, epoch: Epoch(1), head: 1, leg: LegId(1), leg_epoch: 1 };
        let mut liar = Self { dice, scene, focus, temper, room_bytes: 0 };
        liar.begin();
        liar
    }

    /// The next frame: nearly always a message that a site may send at any time.
    pub fn frame(&mut self) -> Vec<u8> {
        self.begin();
        let kind = match self.dice.below(200) {
            0 => self.dice.throw() as u8,
            1 => self.dice.pick(OF_SITES).map_or(0, |(kind, _)| *kind),
            2..30 => RECEIPTS,
            30..60 => FRONTIER,
            60..80 => FILED,
            _ => self.dice.pick(SAID_AT_ANY_TIME).copied().unwrap_or(FRONTIER),
        };
        self.frame_of(kind)
    }

    /// A frame of this kind; a kind that only hubs send has a body of any shape.
    pub fn frame_of(&mut self, kind: u8) -> Vec<u8> {
        let frame = match kind {
            RECEIPTS => receipts_frame(&Absurd::absurd(self)).to_vec(),
            kind => framed(kind, &message(kind, self)),
        };
        let bends = kind != RECEIPTS && self.is_wild() && self.dice.one_in(3);
        let frame = if bends { self.bent(kind, &frame) } else { frame };
        // A longer frame ends the session before it is parsed, so only a few are made.
        if frame.len() > LONGEST_BYTES && !self.dice.one_in(50) { framed(kind, &[]) } else { frame }
    }

    /// The dice, for the driver of the session.
    pub fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// Reserves this number of bytes in the frame; returns false if there is no room.
    pub(crate) fn takes(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.room_bytes;
        self.room_bytes -= if fits { bytes } else { 0 };
        fits
    }

    pub(crate) fn is_wild(&mut self) -> bool {
        self.dice.one_in(self.temper.one_in())
    }

    /// The same message with values that its type may not allow.
    fn bent(&mut self, kind: u8, frame: &[u8]) -> Vec<u8> {
        framed(kind, &cbor::bent(frame.get(HEADER_BYTES..).unwrap_or_default(), &mut self.dice))
    }

    /// Begins a frame with a new size and subject; few frames may become as long as the protocol allows.
    fn begin(&mut self) {
        let rooms = [1 << 10, 4 << 10, 4 << 10, 16 << 10, 80 << 10];
        self.room_bytes = self.dice.pick(&rooms).copied().unwrap_or_default();
        if self.dice.one_in(100) {
            self.room_bytes = 1_030_000;
        }
        if let Some((feed, epoch, head)) = self.dice.pick(&self.scene.feeds) {
            (self.focus.feed, self.focus.epoch, self.focus.head) = (feed.clone(), *epoch, head.0);
        }
        if let Some((leg, leg_epoch)) = self.dice.pick(&self.scene.legs) {
            (self.focus.leg, self.focus.leg_epoch) = (*leg, *leg_epoch);
        }
    }
}

pub(crate) fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [[kind].as_slice(), &length.to_be_bytes(), body].concat()
}

pub(crate) fn encoded(message: &impl minicbor::Encode<()>) -> Vec<u8> {
    minicbor::to_vec(message).unwrap_or_default()
}

const RECEIPTS: u8 = 35;
const FRONTIER: u8 = 19;
const FILED: u8 = 53;

/// All message kinds of a site except those that begin a connection.
const SAID_AT_ANY_TIME: &[u8] = &[
    10, 12, 13, 15, 17, 19, 21, 22, 24, 26, 29, 30, 41, 45, 46, 47, 49, 51, 53, 56, 57, 61, 62, 64, 67, 68,
    70, 71, 76,
];

const HEADER_BYTES: usize = 5;
const LONGEST_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use downburst_model::{Sequence, SiteName};
    use downburst_session::KINDS;

    use super::*;

    /// Kinds that only hubs send; a site that sends one breaks the protocol, whatever its content.
    const OF_HUBS: &[&str] = &[
        "Welcome",
        "Refused",
        "Subscriptions",
        "FeedStart",
        "ProductBegin",
        "Covered",
        "Expired",
        "LegJoin",
        "LegLeave",
        "PacketsGone",
        "ClockReply",
        "ResentBegin",
        "Handling",
        "NextKey",
        "CircuitOffer",
        "CircuitEnd",
        "CircuitProbe",
        "PathProbe",
        "CircuitSet",
        "Mark",
        "OpenStream",
        "Attached",
        "CredentialWanted",
        "CredentialKept",
        "Nodes",
        "RelayLeg",
        "RelayLegEnd",
        "Ways",
        "SiblingTerms",
        "SiblingGrant",
        "SiblingWithdrawn",
        "Referral",
        "slice",
        "repair",
        "train",
        "datagrams",
    ];

    fn scene() -> Scene {
        let site = SiteName::parse("bad.example").unwrap();
        let mut scene = Scene::new(site, "secret".to_owned(), ("spare".to_owned(), "ab".repeat(32)));
        scene.learn(FeedName::parse("NGRID").unwrap(), Epoch(7), Sequence(30));
        scene.legs.push((LegId(3), 9));
        scene.now_us = 1_790_000_000_000_000;
        scene
    }

    #[test]
    fn every_kind_of_frame_that_the_session_knows_is_made() {
        let of_sites: BTreeSet<(u8, &str)> =
            OF_SITES.iter().copied().chain([(RECEIPTS, "receipts")]).collect();
        let of_hubs: BTreeSet<&str> = OF_HUBS.iter().copied().collect();
        for (kind, name) in KINDS {
            assert!(
                of_sites.contains(&(*kind, name)) != of_hubs.contains(name),
                "a frame {name} of kind {kind} is new: give it a place in kinds!, or in OF_HUBS"
            );
        }
        assert_eq!(KINDS.len(), of_sites.len() + of_hubs.len(), "a kind is made that no session knows");
        let first = BTreeSet::from([1, 43]);
        let any_time: BTreeSet<u8> = SAID_AT_ANY_TIME.iter().copied().chain([RECEIPTS]).collect();
        let all: BTreeSet<u8> = of_sites.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(&any_time | &first, all);
    }

    #[test]
    fn equal_dice_make_equal_frames_and_other_dice_others() {
        let scene = scene();
        let said = |seed| {
            let mut liar = Liar::new(Dice::new(seed, 4), Temper::Odd, &scene);
            (0..50).map(|_| liar.frame()).collect::<Vec<_>>()
        };
        assert_eq!(said(1), said(1));
        assert_ne!(said(1), said(2));
    }

    #[test]
    fn what_is_not_bent_decodes_and_the_edges_are_met() {
        let scene = scene();
        let mut highest = BTreeSet::new();
        for number in 0..2_000 {
            let mut liar = Liar::new(Dice::new(5, number), Temper::Wild, &scene);
            let frontier = Frontier::absurd(&mut liar);
            assert_eq!(minicbor::decode::<Frontier>(&encoded(&frontier)).unwrap(), frontier);
            let hello = Hello::absurd(&mut liar);
            assert_eq!(minicbor::decode::<Hello>(&encoded(&hello)).unwrap(), hello);
            highest.insert(frontier.settled_to.0);
        }
        assert!(highest.contains(&u64::MAX) && highest.contains(&(1 << 63)), "{highest:?}");
    }
}
