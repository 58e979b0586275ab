//! Searches a feed's log by time and product id.
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use downburst_model::{Epoch, FeedName, Pattern, ProductInfo, Sequence, WallMicros};
use serde::{Deserialize, Serialize};

use super::{DescribedProduct, parsed_pattern};
use crate::jobs::Failure;

/// Selects the products of a time range that match.
#[derive(Debug, Deserialize)]
pub struct BrowseLine {
    /// The feed.
    pub feed: FeedName,
    pattern: Option<String>,
    not_pattern: Option<String>,
    /// A literal part of the id.
    contains: Option<String>,
    /// Stored at the hub at this time or later, and before `until_us`.
    since_us: i64,
    until_us: Option<i64>,
    /// Only products before this sequence: the next page.
    before: Option<Sequence>,
    limit: usize,
    /// Continues after the last listed product, to count all.
    #[serde(default)]
    count: bool,
    /// The grants of the caller: products that none of them covers are neither listed nor counted. Empty: no limits.
    #[serde(default)]
    limits: Vec<GrantLine>,
}

/// Ids that match `pattern` and not `not_pattern`.
#[derive(Debug, Deserialize)]
struct GrantLine {
    pattern: String,
    not_pattern: Option<String>,
}

/// A search: it is shown the products of [`range`](Self::range), newest first.
#[derive(Debug)]
pub struct Browse {
    line: BrowseLine,
    wanted: Wanted,
    limit: usize,
    found: Found,
    /// The time at which the previous match, which is younger, was stored.
    younger: Option<WallMicros>,
}

/// The part of a log that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookRange {
    /// Begins behind this.
    pub after: Sequence,
    /// Ends before this.
    pub before: Sequence,
    /// The most products to look at.
    pub most: u64,
}

/// The matching products, newest first, and some that do not match.
#[derive(Debug, Serialize)]
pub struct BrowseAnswer {
    epoch: String,
    #[serde(flatten)]
    found: Found,
    searched_to: Sequence,
    complete: bool,
}

impl Browse {
    /// Begins a search.
    ///
    /// # Errors
    ///
    /// A pattern can't be read.
    pub fn of(line: BrowseLine) -> Result<Self, Failure> {
        let (wanted, limit) = (Wanted::of(&line)?, line.limit.clamp(1, LIMIT_MOST));
        Ok(Self { line, wanted, limit, found: Found::default(), younger: None })
    }

    /// The part of the log to look at. `find_time` finds the last number stored before a time.
    pub fn range(&self, find_time: impl Fn(WallMicros) -> Sequence) -> LookRange {
        let after = find_time(WallMicros(self.line.since_us));
        let until = self.line.until_us.map(|until| find_time(WallMicros(until)).0.saturating_add(1));
        let newest = Sequence(u64::MAX);
        let before = until.map_or(newest, Sequence).min(self.line.before.unwrap_or(newest));
        LookRange { after, before, most: PRODUCTS_LOOKED_AT }
    }

    /// Takes the next older product; `Break` ends the search.
    pub fn look(&mut self, info: &ProductInfo, kept: bool) -> ControlFlow<()> {
        if !info.id.is_heartbeat() && self.wanted.may_be_seen(info.id.as_str()) {
            self.found.shown += 1;
            self.take(info, kept);
        }
        let enough = !self.line.count && self.found.products.len() >= self.limit;
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The answer, once the search has reached a number.
    pub fn answer(self, epoch: Epoch, searched_to: Sequence, complete: bool) -> BrowseAnswer {
        BrowseAnswer { epoch: epoch.0.to_string(), found: self.found, searched_to, complete }
    }

    fn take(&mut self, info: &ProductInfo, kept: bool) {
        let found = &mut self.found;
        if !self.wanted.takes(info.id.as_str()) {
            if found.others.len() < self.limit {
                found.others.push(info.id.as_str().to_owned());
            }
            return;
        }
        found.count(info);
        if let Some(younger) = self.younger.replace(info.stored) {
            found.count_silence(younger, info.stored);
        }
        if found.products.len() < self.limit {
            found.products.push(DescribedProduct::of(info, kept));
        }
    }
}

/// The conditions on an id.
#[derive(Debug)]
struct Wanted {
    pattern: Option<Pattern>,
    not_pattern: Option<Pattern>,
    contains: String,
    granted: Vec<(Pattern, Option<Pattern>)>,
}

impl Wanted {
    fn of(line: &BrowseLine) -> Result<Self, Failure> {
        let parsed = |text: &Option<String>| text.as_deref().map(parsed_pattern).transpose();
        let grant = |one: &GrantLine| Ok((parsed_pattern(&one.pattern)?, parsed(&one.not_pattern)?));
        Ok(Self {
            granted: line.limits.iter().map(grant).collect::<Result<_, Failure>>()?,
            pattern: parsed(&line.pattern)?,
            not_pattern: parsed(&line.not_pattern)?,
            contains: line.contains.clone().unwrap_or_default(),
        })
    }

    fn may_be_seen(&self, id: &str) -> bool {
        let grants = |(pattern, not): &(Pattern, Option<Pattern>)| {
            pattern.matches(id) && !not.as_ref().is_some_and(|not| not.matches(id))
        };
        self.granted.is_empty() || self.granted.iter().any(grants)
    }

    fn takes(&self, id: &str) -> bool {
        id.contains(&self.contains)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(id))
            && !self.not_pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
    }
}

#[derive(Debug, Default, Serialize)]
struct Found {
    shown: u64,
    matched: u64,
    matched_bytes: u64,
    products: Vec<DescribedProduct>,
    others: Vec<String>,
    /// The number of matching products by the smallest power of two that is at least their size in bytes.
    sizes: BTreeMap<u32, u64>,
    /// The number of pauses between them by the smallest power of two that is at least their length in milliseconds.
    silences: BTreeMap<u32, u64>,
}

impl Found {
    fn count(&mut self, info: &ProductInfo) {
        self.matched += 1;
        self.matched_bytes = self.matched_bytes.saturating_add(info.size);
        *self.sizes.entry(power_of_two(info.size)).or_default() += 1;
    }

    fn count_silence(&mut self, younger: WallMicros, older: WallMicros) {
        let pause_us = u64::try_from(younger.0.saturating_sub(older.0)).unwrap_or(0);
        *self.silences.entry(power_of_two(pause_us / 1_000)).or_default() += 1;
    }
}

/// The exponent of the smallest power of two that is at least the value.
fn power_of_two(value: u64) -> u32 {
    u64::BITS - value.saturating_sub(1).leading_zeros()
}

const LIMIT_MOST: usize = 200;
/// Some seconds of disk time; the busiest feeds have a tenth of that in an hour.
const PRODUCTS_LOOKED_AT: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::product;

    fn browse(fields: &[(&str, Value)]) -> Browse {
        let mut line = json!({"feed": "NGRID", "since_us": 0, "limit": 2});
        for (name, value) in fields {
            line[*name] = value.clone();
        }
        Browse::of(serde_json::from_value(line).unwrap()).unwrap()
    }

    fn answer(browse: Browse) -> Value {
        serde_json::to_value(browse.answer(Epoch(u64::MAX), Sequence(3), true)).unwrap()
    }

    #[test]
    fn what_no_limit_grants_is_not_seen() {
        let limits = json!([
            {"pattern": "^YZ", "not_pattern": "TEST"}, {"pattern": "^SA", "not_pattern": null},
        ]);
        let wanted = browse(&[("limits", limits)]).wanted;
        let seen: Vec<bool> = ["YZ1", "YZ TEST", "SA TEST", "XX"].map(|id| wanted.may_be_seen(id)).to_vec();
        assert_eq!(seen, [true, false, true, false]);
    }

    #[test]
    fn a_value_lies_below_its_power_of_two_and_above_the_one_before() {
        let powers: Vec<u32> = [0, 1, 2, 3, 4, 5, 1_024, 1_025, u64::MAX].map(power_of_two).to_vec();
        assert_eq!(powers, [0, 0, 1, 2, 2, 3, 10, 11, 64]);
    }

    #[test]
    fn a_search_ends_with_enough_products_unless_all_are_counted() {
        let mut search = browse(&[("pattern", json!("^SA"))]);
        assert!(search.look(&product(9, "SA 9", 5_000_000), true).is_continue());
        assert!(search.look(&product(8, "XX 8", 4_000_000), true).is_continue());
        assert!(search.look(&product(7, "SA 7", 3_000_000), false).is_break());
        let found = answer(search);
        assert_eq!(
            (&found["shown"], &found["matched"], &found["matched_bytes"]),
            (&json!(3), &json!(2), &json!(16))
        );
        assert_eq!(found["others"], json!(["XX 8"]));
        assert_eq!(found["epoch"], json!("18446744073709551615"));
        assert_eq!(found["silences"], json!({"11": 1}), "two seconds");
        let kept: Vec<&Value> = found["products"].as_array().unwrap().iter().map(|it| &it["kept"]).collect();
        assert_eq!(kept, [&json!(true), &json!(false)]);
        let mut counting = browse(&[("count", json!(true))]);
        assert!((1..9).all(|at| counting.look(&product(9 - at, "SA", 0), true).is_continue()));
        let found = answer(counting);
        assert_eq!((&found["matched"], found["products"].as_array().unwrap().len()), (&json!(8), 2));
    }

    #[test]
    fn heartbeats_are_not_shown() {
        let mut search = browse(&[]);
        assert!(search.look(&product(9, "downburst:heartbeat:9", 0), true).is_continue());
        assert_eq!(answer(search)["shown"], json!(0));
    }

    #[test]
    fn a_range_ends_at_the_time_or_at_the_page_before() {
        let find_time = |time: WallMicros| Sequence(time.0 as u64 / 10);
        let range = |fields: &[(&str, Value)]| {
            let LookRange { after, before, .. } = browse(fields).range(find_time);
            (after.0, before.0)
        };
        assert_eq!(range(&[]), (0, u64::MAX));
        let until = ("until_us", json!(90));
        assert_eq!(range(&[("since_us", json!(50)), until.clone()]), (5, 10));
        assert_eq!(range(&[until, ("before", json!(7))]), (0, 7));
    }
}
