use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A set of LDM feeds, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedType(u32);

/// A syntax error in an expression of feed types.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the feed type can't be used: {reason} at character {position}")]
pub struct FeedTypeError {
    /// The reason.
    pub reason: String,
    /// Position of the error in characters, from 1.
    pub position: usize,
}

impl FeedType {
    /// No feed.
    pub const NONE: Self = Self(0);

    /// Every feed.
    pub const ANY: Self = Self(u32::MAX);

    /// The set with these bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bits of the set.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// True for the empty set.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// True if the sets have a feed in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set contains all feeds of `other`.
    pub const fn holds(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The intersection.
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The union.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The difference: the feeds that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Iterates over the feeds of the set.
    pub fn each(self) -> impl Iterator<Item = Self> {
        (0..u32::BITS).map(|bit| Self(1 << bit)).filter(move |feed| self.meets(*feed))
    }

    fn named(name: &str) -> Option<Self> {
        let number = |name: &str| name.parse().ok().filter(|bit| *bit < u32::BITS).map(|bit: u32| 1 << bit);
        let upper = name.to_ascii_uppercase();
        let known = NAMES.iter().chain(ALIASES).find(|(known, _)| *known == upper).map(|(_, bits)| *bits);
        known.or_else(|| upper.strip_prefix("FT").and_then(number)).map(Self)
    }
}

impl fmt::Display for FeedType {
    /// The names with the fewest words, largest unions first; parsing it gives the same set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("NONE");
        }
        let mut left = *self;
        let mut separator = "";
        for (name, bits) in NAMES.iter().map(|(name, bits)| (name, Self(*bits))) {
            if !bits.is_none() && left.holds(bits) {
                write!(f, "{separator}{name}")?;
                left = left.without(bits);
                separator = "|";
            }
        }
        left.each().try_for_each(|feed| {
            let written = write!(f, "{separator}FT{}", feed.0.trailing_zeros());
            separator = "|";
            written
        })
    }
}

impl fmt::Debug for FeedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for FeedType {
    type Err = FeedTypeError;

    /// Reads names joined by `|` or `+` (union) and `-` (difference), from left to right, with `~`
    /// (complement) and parentheses.
    fn from_str(text: &str) -> Result<Self, FeedTypeError> {
        let mut expression = Expression { chars: text.chars().collect(), at: 0 };
        let feeds = expression.sum(0)?;
        match expression.peek() {
            None => Ok(feeds),
            Some(_) => Err(expression.wrong("something other than an operator")),
        }
    }
}

struct Expression {
    chars: Vec<char>,
    at: usize,
}

impl Expression {
    fn sum(&mut self, depth: usize) -> Result<FeedType, FeedTypeError> {
        let mut feeds = self.term(depth)?;
        loop {
            if self.skip('|') || self.skip('+') {
                feeds = feeds.with(self.term(depth)?);
            } else if self.skip('-') {
                feeds = feeds.without(self.term(depth)?);
            } else {
                return Ok(feeds);
            }
        }
    }

    fn term(&mut self, depth: usize) -> Result<FeedType, FeedTypeError> {
        if depth > DEEPEST {
            return Err(self.wrong("too many complements and parentheses in each other"));
        }
        if self.skip('~') {
            return Ok(FeedType::ANY.without(self.term(depth.saturating_add(1))?));
        }
        if !self.skip('(') {
            return self.name();
        }
        let feeds = self.sum(depth.saturating_add(1))?;
        if self.skip(')') { Ok(feeds) } else { Err(self.wrong("a parenthesis is not closed")) }
    }

    fn name(&mut self) -> Result<FeedType, FeedTypeError> {
        self.peek();
        let begin = self.at;
        let rest = self.chars.get(begin..).unwrap_or_default();
        let name: String = rest.iter().take_while(|next| next.is_ascii_alphanumeric()).collect();
        let feeds = FeedType::named(&name);
        let reason = if name.is_empty() {
            "a name is missing".to_owned()
        } else {
            format!("no feed is called {name}")
        };
        let feeds = feeds.ok_or_else(|| self.wrong(&reason))?;
        self.at = begin.saturating_add(name.len());
        Ok(feeds)
    }

    /// The next character that is not whitespace.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|next| next.is_whitespace()) {
            self.at = self.at.saturating_add(1);
        }
        self.chars.get(self.at).copied()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at = self.at.saturating_add(usize::from(found));
        found
    }

    fn wrong(&self, reason: &str) -> FeedTypeError {
        FeedTypeError { reason: reason.to_owned(), position: self.at.saturating_add(1) }
    }
}

/// Nesting limit for complements and parentheses; users write two levels.
const DEEPEST: usize = 32;

/// Names in output: unions first, larger ones before their subsets.
const NAMES: &[(&str, u32)] = &[
    ("ANY", u32::MAX),
    ("NPORT", 0x07c0_0000),
    ("UNIDATA", 0x2f),
    ("WMO", 0xf),
    ("DDPLUS", 0x3),
    ("FSL", 0x7c0),
    ("NMC", 0x3800),
    ("PPS", 1),
    ("DDS", 1 << 1),
    ("HDS", 1 << 2),
    ("IDS", 1 << 3),
    ("SPARE", 1 << 4),
    ("UNIWISC", 1 << 5),
    ("PCWS", 1 << 6),
    ("FSL2", 1 << 7),
    ("FSL3", 1 << 8),
    ("FSL4", 1 << 9),
    ("FSL5", 1 << 10),
    ("GPSSRC", 1 << 11),
    ("CONDUIT", 1 << 12),
    ("FNEXRAD", 1 << 13),
    ("LIGHTNING", 1 << 14),
    ("WSI", 1 << 15),
    ("SATELLITE", 1 << 16),
    ("FAA604", 1 << 17),
    ("GPS", 1 << 18),
    ("FNMOC", 1 << 19),
    ("GEM", 1 << 20),
    ("NIMAGE", 1 << 21),
    ("NTEXT", 1 << 22),
    ("NGRID", 1 << 23),
    ("NPOINT", 1 << 24),
    ("NGRAPH", 1 << 25),
    ("NOTHER", 1 << 26),
    ("NEXRAD3", 1 << 27),
    ("NEXRAD2", 1 << 28),
    ("NXRDSRC", 1 << 29),
    ("EXP", 1 << 30),
    ("NONE", 0),
];

/// Further names accepted in input.
const ALIASES: &[(&str, u32)] = &[
    ("DOMESTIC", 1 << 1),
    ("HRS", 1 << 2),
    ("INTNL", 1 << 3),
    ("NPS", 1 << 4),
    ("MCIDAS", 1 << 5),
    ("ACARS", 1 << 6),
    ("PROFILER", 1 << 7),
    ("AFOS", 1 << 11),
    ("NMC1", 1 << 11),
    ("NMC2", 1 << 12),
    ("NCEPH", 1 << 12),
    ("NMC3", 1 << 13),
    ("NLDN", 1 << 14),
    ("DIFAX", 1 << 16),
    ("FAA", 1 << 17),
    ("604", 1 << 17),
    ("SEISMIC", 1 << 19),
    ("NOGAPS", 1 << 19),
    ("CMC", 1 << 20),
    ("IMAGE", 1 << 21),
    ("TEXT", 1 << 22),
    ("GRID", 1 << 23),
    ("POINT", 1 << 24),
    ("NBUFR", 1 << 24),
    ("BUFR", 1 << 24),
    ("GRAPH", 1 << 25),
    ("OTHER", 1 << 26),
    ("NNEXRAD", 1 << 27),
    ("NEXRAD", 1 << 27),
    ("CRAFT", 1 << 28),
    ("NEXRD2", 1 << 28),
    ("PROFS", 0x7c0),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An expression, its bits, and their printed form.
    type Good = (String, u32, Option<String>);

    #[derive(serde::Deserialize)]
    struct Golden {
        good: Vec<Good>,
        /// An expression, the position of its error, and a part of the reason.
        bad: Vec<(String, usize, String)>,
    }

    fn golden() -> Golden {
        serde_json::from_str(include_str!("../../../../tests/golden/ldm6/feed-types.json")).unwrap()
    }

    #[test]
    fn names_aliases_and_expressions_mean_what_they_mean_to_ldm() {
        for (text, bits, printed) in golden().good {
            let feeds: FeedType = text.parse().unwrap();
            assert_eq!(feeds.bits(), bits, "{text}");
            assert!(printed.is_none_or(|printed| feeds.to_string() == printed), "{text} is printed {feeds}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, position, part) in golden().bad {
            let error = text.parse::<FeedType>().unwrap_err();
            assert_eq!(error.position, position, "{text}: {error}");
            assert!(error.reason.contains(&part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_the_same_set(bits: u32) {
            let feeds = FeedType::from_bits(bits);
            prop_assert_eq!(feeds.to_string().parse(), Ok(feeds));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[A-Za-z0-9~()|+ -]{0,60}|.{0,20}") {
            let _ = text.parse::<FeedType>();
        }
    }
}
