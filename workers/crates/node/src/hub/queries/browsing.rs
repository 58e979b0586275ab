//! Searches a feed's log by time and product id.
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::{FeedName, Pattern, ProductInfo, Sequence, WallMicros};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::hub::feeds::{failure, unknown_feed};
use crate::hub::queries::deliveries::{described_by, in_a_thread};
use crate::lines::Failure;

/// See [`Action::Browse`](crate::lines::Action::Browse): selects the products.
#[derive(Debug, Deserialize)]
pub(crate) struct BrowseLine {
    feed: FeedName,
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

/// Lists the matching products, newest first, and some that do not match; counts them on request.
pub(in crate::hub) async fn browse(hub: &Arc<Hub>, line: BrowseLine) -> Result<Value, Failure> {
    let feed = hub.feeds.find(&line.feed).ok_or_else(|| unknown_feed(line.feed.as_str()))?;
    let wanted = Wanted::of(&line)?;
    let (log, epoch) = (Arc::clone(&feed.log), feed.epoch().0.to_string());
    let found = in_a_thread(move || look(&log, &line, &wanted)).await??;
    Ok(json!({
        "epoch": epoch, "shown": found.shown, "matched": found.matched, "matched_bytes": found.bytes,
        "products": found.products, "others": found.others, "sizes": found.sizes, "silences": found.silences,
        "searched_to": found.searched_to, "complete": found.complete,
    }))
}

/// The conditions on an id.
struct Wanted {
    pattern: Option<Pattern>,
    not_pattern: Option<Pattern>,
    contains: String,
    granted: Vec<(Pattern, Option<Pattern>)>,
}

impl Wanted {
    fn of(line: &BrowseLine) -> Result<Self, Failure> {
        let parsed = |text: &Option<String>| text.as_deref().map(super::parsed).transpose();
        let grant = |one: &GrantLine| Ok((super::parsed(&one.pattern)?, parsed(&one.not_pattern)?));
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

#[derive(Default)]
struct Found {
    shown: u64,
    matched: u64,
    bytes: u64,
    products: Vec<Value>,
    others: Vec<String>,
    /// The number of matching products by the smallest power of two that is at least their size in bytes.
    sizes: BTreeMap<u32, u64>,
    /// The number of pauses between them by the smallest power of two that is at least their length in milliseconds.
    silences: BTreeMap<u32, u64>,
    /// The time at which the previous match, which is younger, was stored.
    younger: Option<WallMicros>,
    searched_to: Sequence,
    complete: bool,
}

impl Found {
    fn take(&mut self, info: &ProductInfo, kept: bool, wanted: &Wanted, limit: usize) {
        if info.id.is_heartbeat() || !wanted.may_be_seen(info.id.as_str()) {
            return;
        }
        self.shown += 1;
        if wanted.takes(info.id.as_str()) {
            self.matched += 1;
            self.bytes = self.bytes.saturating_add(info.size);
            *self.sizes.entry(power_of_two(info.size)).or_default() += 1;
            if let Some(younger) = self.younger.replace(info.stored) {
                let pause_us = u64::try_from(younger.0.saturating_sub(info.stored.0)).unwrap_or(0);
                *self.silences.entry(power_of_two(pause_us / 1_000)).or_default() += 1;
            }
            if self.products.len() < limit {
                self.products.push(described_by(info, kept));
            }
        } else if self.others.len() < limit {
            self.others.push(info.id.as_str().to_owned());
        }
    }
}

fn look(log: &FeedLog, line: &BrowseLine, wanted: &Wanted) -> Result<Found, Failure> {
    let limit = line.limit.clamp(1, LIMIT_MOST);
    let after = log.find_time(WallMicros(line.since_us));
    let until = line.until_us.map(|until| Sequence(log.find_time(WallMicros(until)).0.saturating_add(1)));
    let newest = Sequence(u64::MAX);
    let before = until.unwrap_or(newest).min(line.before.unwrap_or(newest));
    let mut found = Found::default();
    let looked = log.look_back(after, before, PRODUCTS_LOOKED_AT, |info, kept| {
        found.take(info, kept, wanted, limit);
        let enough = !line.count && found.products.len() >= limit;
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let looked = looked.map_err(|error| failure(&error))?;
    Ok(Found { searched_to: looked.searched_to, complete: looked.complete, ..found })
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
    use super::*;

    #[test]
    fn what_no_limit_grants_is_not_seen() {
        let line = json!({
            "feed": "NGRID", "since_us": 0, "limit": 1,
            "limits": [{"pattern": "^YZ", "not_pattern": "TEST"}, {"pattern": "^SA", "not_pattern": null}],
        });
        let wanted = Wanted::of(&serde_json::from_value(line).unwrap()).ok().unwrap();
        let seen: Vec<bool> = ["YZ1", "YZ TEST", "SA TEST", "XX"].map(|id| wanted.may_be_seen(id)).to_vec();
        assert_eq!(seen, [true, false, true, false]);
    }

    #[test]
    fn a_value_lies_below_its_power_of_two_and_above_the_one_before() {
        let powers: Vec<u32> = [0, 1, 2, 3, 4, 5, 1_024, 1_025, u64::MAX].map(power_of_two).to_vec();
        assert_eq!(powers, [0, 0, 1, 2, 2, 3, 10, 11, 64]);
    }
}
