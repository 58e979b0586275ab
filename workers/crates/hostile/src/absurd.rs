//! Values: mostly plausible for an honest site, and sometimes unexpected.
use downburst_model::{
    Class, Epoch, FeedName, Lane, LegId, ProductKey, RangeSet, Sequence, SiteName, Transport, WallMicros,
};
use downburst_session::{Outcome, PriorityStanding, Ticket};

use crate::frames::Liar;

/// A decodable value, chosen by the dice.
pub(crate) trait Absurd: Sized {
    fn absurd(liar: &mut Liar<'_>) -> Self;
}

/// Implements `Absurd` for every field of a struct. A field that is added later fails to compile until listed here.
macro_rules! absurd {
    ($($name:ident { $($field:ident $(= $how:expr)?),* $(,)? })*) => {$(
        impl $crate::absurd::Absurd for $name {
            fn absurd(liar: &mut $crate::frames::Liar<'_>) -> Self {
                Self { $($field: $crate::absurd::field!(liar $(, $how)?)),* }
            }
        }
    )*};
}

macro_rules! field {
    ($liar:ident) => {
        $crate::absurd::Absurd::absurd($liar)
    };
    ($liar:ident, $how:expr) => {
        $how($liar)
    };
}

pub(crate) use {absurd, field};

impl Absurd for u64 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let near = liar.focus.head;
        match liar.is_wild() {
            true => edge(liar),
            // At the known head or slightly behind it.
            false => near.saturating_sub(liar.dice.below(12)),
        }
    }
}

/// A limit of a common number type, or a value next to one.
fn edge(liar: &mut Liar<'_>) -> u64 {
    let bits = liar.dice.pick(&[0_u32, 7, 8, 15, 16, 31, 32, 52, 53, 54, 62, 63, 64]).copied().unwrap_or(64);
    let power = 1_u64.checked_shl(bits).unwrap_or(0);
    match liar.dice.below(6) {
        0 => power,
        1 => power.wrapping_sub(1),
        2 => power.wrapping_add(1),
        3 => u64::MAX - liar.dice.below(3),
        4 => liar.focus.head.saturating_add(1 << liar.dice.below(40)),
        _ => liar.dice.throw(),
    }
}

impl Absurd for u32 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        u64::absurd(liar) as Self
    }
}

impl Absurd for u16 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        u64::absurd(liar) as Self
    }
}

impl Absurd for u8 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        liar.dice.throw() as Self
    }
}

impl Absurd for i64 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        match liar.is_wild() {
            true => edge(liar) as Self,
            false => liar.dice.below(4_000) as Self - 2_000,
        }
    }
}

impl Absurd for i32 {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        i64::absurd(liar) as Self
    }
}

impl Absurd for bool {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        liar.dice.one_in(2)
    }
}

impl<T: Absurd> Absurd for Option<T> {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        (!liar.dice.one_in(3)).then(|| T::absurd(liar))
    }
}

impl<T: Absurd> Absurd for Vec<T> {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let most = match liar.dice.below(40) {
            0..16 => 2,
            16..36 => 5,
            36..39 => 70,
            _ => 5_000,
        };
        let count = liar.dice.below(most);
        (0..count).map_while(|_| liar.takes(ITEM_BYTES).then(|| T::absurd(liar))).collect()
    }
}

impl Absurd for String {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        if !liar.is_wild() {
            return format!("a word {}", liar.dice.below(9));
        }
        let short = [
            "",
            "\0",
            "\u{1b}[31m\u{7}\r\nX-Injected: 1",
            "\u{202e}txt.exe\u{2066}",
            "\u{d7ff}\u{e000}\u{fffd}\u{10ffff}",
            "\"}\n{\"event\":\"session\"}",
            "'; DROP TABLE sites; --",
            "../../../../etc/passwd",
            "%s%n{0}${jndi:x}",
            "<script>alert(1)</script>",
            "=cmd|' /C calc'!A0",
            "\u{feff}\u{2028}\u{2029}",
        ];
        match liar.dice.below(10) {
            0 if liar.takes(64 << 10) => "\u{1F4A9}".repeat(16 << 10),
            1 if liar.takes(64 << 10) => "\u{1}".repeat(64 << 10),
            2 => "a".repeat(usize::try_from(liar.dice.below(300)).unwrap_or(0)),
            3 if liar.takes(1_000_000) => "n".repeat(1_000_000),
            _ => liar.dice.pick(&short).copied().unwrap_or_default().to_owned(),
        }
    }
}

impl Absurd for RangeSet {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        if liar.is_wild() && liar.dice.one_in(3) {
            let many = liar.dice.pick(&[400_u64, 5_000, 65_536]).copied().unwrap_or(400);
            let many = if liar.takes(many * RANGE_BYTES) { many } else { 1 };
            let step = 2 + liar.dice.below(1_000);
            return (0..many).map(|number| (number * step, number * step)).collect();
        }
        let count = liar.dice.below(4);
        (0..count)
            .map(|_| {
                let (one, other) = (u64::absurd(liar), u64::absurd(liar));
                (one.min(other), one.max(other))
            })
            .collect()
    }
}

impl Absurd for FeedName {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        if !liar.is_wild() {
            return liar.focus.feed.clone();
        }
        let known = liar.scene.feeds.iter().map(|(feed, ..)| feed.as_str().to_owned());
        let odd = ["x", "=cmd", "*", "IDS|DDPLUS", "~", "NULL", "%2e%2e"].map(str::to_owned);
        let named: Vec<String> = known.chain(odd).chain(["z".repeat(64)]).collect();
        let name = liar.dice.pick(&named).and_then(|name| Self::parse(name).ok());
        name.unwrap_or_else(|| liar.focus.feed.clone())
    }
}

impl Absurd for SiteName {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let known = [liar.scene.others.as_slice(), std::slice::from_ref(&liar.scene.site)].concat();
        liar.dice.pick(&known).cloned().unwrap_or_else(|| liar.scene.site.clone())
    }
}

impl Absurd for Epoch {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        if liar.is_wild() { Self(edge(liar)) } else { liar.focus.epoch }
    }
}

impl Absurd for Sequence {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        Self(u64::absurd(liar))
    }
}

impl Absurd for LegId {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        if liar.is_wild() { Self(u32::absurd(liar)) } else { liar.focus.leg }
    }
}

impl Absurd for WallMicros {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        const DAY_US: i64 = 86_400_000_000;
        let now = liar.scene.now_us;
        if !liar.is_wild() {
            return Self(now.saturating_sub(liar.dice.below(3_000_000) as i64));
        }
        Self(match liar.dice.below(8) {
            0 => i64::MIN + liar.dice.below(3) as i64,
            1 => i64::MAX - liar.dice.below(3) as i64,
            2 => now.saturating_add(liar.dice.below(4_000) as i64 * DAY_US),
            3 => now.saturating_sub(liar.dice.below(20_000) as i64 * DAY_US),
            4 => now.saturating_add(liar.dice.below(7_200_000_000) as i64),
            // The limits of Python's dates.
            5 => 253_402_300_800_000_000 - liar.dice.below(3) as i64,
            6 => -62_135_596_800_000_000 + liar.dice.below(3) as i64 - 1,
            _ => edge(liar) as i64,
        })
    }
}

impl Absurd for Ticket {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let known = liar.dice.pick(&liar.scene.streams).map(|(_, ticket)| ticket.clone());
        known.filter(|_| !liar.is_wild()).unwrap_or(Self([liar.dice.throw() as u8; 16]))
    }
}

absurd! {
    ProductKey { feed, epoch, sequence }
}

/// Picks one of the variants; an exhaustive `match` checks the list against the type.
macro_rules! variants {
    ($($name:ident { $($variant:ident),* $(,)? })*) => {$(
        impl Absurd for $name {
            fn absurd(liar: &mut Liar<'_>) -> Self {
                let all = [$(Self::$variant),*];
                // The first variant is the one in most honest messages.
                let first = liar.dice.one_in(2);
                let picked = if first { all.first() } else { liar.dice.pick(&all) };
                match picked.copied().unwrap_or($name::first()) {
                    $(it @ Self::$variant => it,)*
                }
            }
        }
        impl First for $name {
            fn first() -> Self {
                [$(Self::$variant),*][0]
            }
        }
    )*};
}

/// Room reserved for an item of a list.
const ITEM_BYTES: u64 = 24;
const RANGE_BYTES: u64 = 10;

trait First {
    fn first() -> Self;
}

variants! {
    Outcome { Stored, Rejected, Expired, Held, LateAtHub, LateAtSite }
    PriorityStanding { Normal, RealTime, Lost, Refused }
    Lane { Live, Backfill, Resend }
    Class { Warning, Observation, Grid, Bulk }
    Transport { Unicast, Multicast, StaticCircuit, DynamicCircuit }
}
