//! The whereabouts of products: everything that the node knows of their way to each site.
//! Conclusions are drawn elsewhere.
use std::collections::BTreeMap;

use downburst_model::{
    Epoch, FeedName, IdFilter, Lane, LegId, Pattern, ProductInfo, ProductKey, Sequence, SiteName, Transport,
    WallMicros,
};
use downburst_session::{ClockOffset, Standing};
use serde::Serialize;

use super::StatedProduct;
use crate::session::{ProductView, SessionStatus, SessionView, WaitingBytes};
use crate::sites::{SiteLine, SubscriptionLine};

/// A product whose way is asked for.
#[derive(Clone, Copy, Debug)]
pub struct TracedProduct<'a> {
    /// The product.
    pub info: &'a ProductInfo,
    /// True if the log has its bytes.
    pub kept: bool,
}

/// A receipt of a site for a product.
pub trait Receipt: Serialize {
    /// The product.
    fn key(&self) -> &ProductKey;

    /// The site.
    fn site(&self) -> &str;
}

/// The knowledge of a site's session about the products of one feed.
#[derive(Debug, Default)]
pub struct SessionTrace {
    /// The site's frontier, and the number of known products that are not settled.
    frontier: Option<(Sequence, u64)>,
    joined: Option<LegId>,
    is_offered: bool,
    clock: Option<ClockOffset>,
    /// The session's own answer; `None`: it was too busy.
    view: Option<SessionView>,
    leg_backlog_bytes: Option<u64>,
    /// The time at which the first byte of each product left over the joined leg.
    leg_first_bytes: Vec<Option<WallMicros>>,
}

/// Everything known about the deliveries of products of one feed.
#[derive(Debug)]
pub struct Whereabouts<'a, R> {
    /// The sites.
    pub lines: &'a [SiteLine],
    /// The sessions of connected sites.
    pub sessions: &'a BTreeMap<SiteName, SessionTrace>,
    /// The receipts, in the order of arrival.
    pub receipts: &'a [R],
    /// The leg under which unicast is counted.
    pub unicast_leg: LegId,
}

/// The log in which the products were searched.
#[derive(Debug, Serialize)]
pub struct SearchedLog {
    /// Its feed.
    pub feed: FeedName,
    /// Its life, as decimal text.
    #[serde(serialize_with = "as_text")]
    pub epoch: Epoch,
    /// Its last number.
    pub head: Sequence,
    /// The first number whose bytes are kept.
    pub first: Sequence,
    /// The lowest number that was reached.
    pub searched_to: Sequence,
    /// True if the search ended with the log.
    pub search_complete: bool,
}

/// The extent of the search for receipts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SearchedReceipts {
    /// False if there may be more receipts.
    pub receipts_complete: bool,
    /// The approximate time of the oldest receipt.
    pub receipts_since_us: Option<WallMicros>,
}

/// The whereabouts of products, newest first.
#[derive(Debug, Serialize)]
pub struct DeliveriesAnswer<'a, R: Receipt> {
    #[serde(flatten)]
    log: SearchedLog,
    #[serde(flatten)]
    receipts: SearchedReceipts,
    products: Vec<ProductAnswer<'a, R>>,
    at_us: WallMicros,
}

#[derive(Debug, Serialize)]
struct ProductAnswer<'a, R: Receipt> {
    #[serde(flatten)]
    product: StatedProduct,
    sites: Vec<SiteAnswer<'a, R>>,
}

#[derive(Debug, Serialize)]
struct SiteAnswer<'a, R: Receipt> {
    site: &'a SiteName,
    active: bool,
    /// The number of its subscriptions to the feed.
    subscriptions: usize,
    /// Those that match the product.
    matching: Vec<MatchingAnswer<'a>>,
    session: Option<SessionAnswer<'a>>,
    receipts: Vec<&'a R>,
}

#[derive(Debug, Serialize)]
struct MatchingAnswer<'a> {
    pattern: &'a str,
    not_pattern: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct SessionAnswer<'a> {
    #[serde(flatten)]
    state: StateAnswer,
    transport: Transport,
    leg: LegId,
    joining: bool,
    leg_backlog_bytes: Option<u64>,
    first_byte_us: Option<i64>,
    settled_to: Option<Sequence>,
    pending: Option<u64>,
    clock_offset_us: Option<i64>,
    clock_bound_us: Option<u64>,
    waiting: &'a [WaitingBytes],
}

/// The state of a product in a session, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct StateAnswer {
    standing: &'static str,
    lane: Option<Lane>,
    /// The site requested it.
    asked: bool,
    numbers_before: Option<u64>,
}

impl SessionTrace {
    /// The status of the session in a feed, and the session's own answer.
    pub fn of(feed: &FeedName, status: &SessionStatus, view: Option<SessionView>) -> Self {
        Self {
            frontier: status.frontiers.get(feed).copied(),
            joined: status.joined.get(feed).copied(),
            is_offered: status.offered.contains_key(feed),
            clock: status.clock.compared,
            view,
            ..Self::default()
        }
    }

    /// The multicast leg over which the site receives the feed.
    pub fn joined(&self) -> Option<LegId> {
        self.joined
    }

    /// The backlog of the joined leg, and the times at which the first byte of each product left over it.
    pub fn with_leg(self, backlog_bytes: u64, first_bytes: Vec<Option<WallMicros>>) -> Self {
        Self { leg_backlog_bytes: Some(backlog_bytes), leg_first_bytes: first_bytes, ..self }
    }
}

impl<'a, R: Receipt> Whereabouts<'a, R> {
    /// Describes the products with the known facts of their way to each site.
    pub fn answer(
        &self,
        products: &[TracedProduct<'_>],
        log: SearchedLog,
        receipts: SearchedReceipts,
        at: WallMicros,
    ) -> DeliveriesAnswer<'a, R> {
        let mut patterns = Compiled::default();
        let product = |(at, product): (usize, &TracedProduct<'_>)| ProductAnswer {
            product: StatedProduct::of(product.info, product.kept),
            sites: self
                .lines
                .iter()
                .filter_map(|line| self.site(at, line, product.info, &mut patterns))
                .collect(),
        };
        let products = products.iter().enumerate().map(product).collect();
        DeliveriesAnswer { log, receipts, products, at_us: at }
    }

    /// `None` for a site that has no part in the feed.
    fn site(
        &self,
        at: usize,
        line: &'a SiteLine,
        product: &ProductInfo,
        patterns: &mut Compiled,
    ) -> Option<SiteAnswer<'a, R>> {
        let key = &product.key;
        let subscriptions: Vec<&SubscriptionLine> =
            line.subscriptions.iter().filter(|wish| wish.feed == key.feed).collect();
        let is_of_it = |receipt: &&R| receipt.key() == key && receipt.site() == line.site.as_str();
        let receipts: Vec<&R> = self.receipts.iter().filter(is_of_it).collect();
        if subscriptions.is_empty() && receipts.is_empty() {
            return None;
        }
        let matching = subscriptions.iter().filter(|wish| patterns.wants(wish, product.id.as_str()));
        let matching = matching
            .map(|wish| MatchingAnswer { pattern: &wish.pattern, not_pattern: wish.not_pattern.as_deref() });
        Some(SiteAnswer {
            site: &line.site,
            active: line.active,
            subscriptions: subscriptions.len(),
            matching: matching.collect(),
            session: self.sessions.get(&line.site).map(|trace| trace.answer(at, self.unicast_leg)),
            receipts,
        })
    }
}

impl SessionTrace {
    fn answer(&self, at: usize, unicast_leg: LegId) -> SessionAnswer<'_> {
        let product = self.view.as_ref().and_then(|view| view.products.get(at));
        let by_leg = self.leg_first_bytes.get(at).copied().flatten();
        SessionAnswer {
            state: state(product),
            transport: if self.joined.is_some() { Transport::Multicast } else { Transport::Unicast },
            leg: self.joined.unwrap_or(unicast_leg),
            joining: self.joined.is_none() && self.is_offered,
            leg_backlog_bytes: self.leg_backlog_bytes,
            first_byte_us: product.and_then(|it| it.first_byte_us).or(by_leg.map(|stamp| stamp.0)),
            settled_to: self.frontier.map(|(settled_to, _)| settled_to),
            pending: self.frontier.map(|(_, pending)| pending),
            clock_offset_us: self.clock.map(|clock| clock.offset_us),
            clock_bound_us: self.clock.map(|clock| clock.bound_us),
            waiting: self.view.as_ref().map(|view| view.waiting.as_slice()).unwrap_or_default(),
        }
    }
}

/// The state in the form for programs: a word, the lane, whether the site requested it, and the count before it.
fn state(product: Option<&ProductView>) -> StateAnswer {
    let word = |standing| StateAnswer { standing, lane: None, asked: false, numbers_before: None };
    match product.map(|product| product.standing) {
        None => word("no-answer"),
        Some(Standing::NotServed) => word("not-served"),
        Some(Standing::Settled) => word("settled"),
        Some(Standing::Queued { asked }) => StateAnswer { asked, ..word("queued") },
        Some(Standing::Owed { lane, asked, numbers_before }) => {
            StateAnswer { lane: Some(lane), asked, numbers_before: Some(numbers_before), ..word("owed") }
        }
        Some(Standing::LeftToLeg) => word("left-to-leg"),
        Some(Standing::Said) => word("said"),
    }
}

/// Compiled patterns by their text: most sites share a few.
#[derive(Default)]
struct Compiled(BTreeMap<String, Option<Pattern>>);

impl Compiled {
    fn wants(&mut self, wish: &SubscriptionLine, id: &str) -> bool {
        self.matches(&wish.pattern, id)
            && !wish.not_pattern.as_ref().is_some_and(|text| self.matches(text, id))
            && wish.within.as_ref().is_none_or(|limits| limits.iter().any(|limit| self.grants(limit, id)))
    }

    fn grants(&mut self, limit: &IdFilter, id: &str) -> bool {
        self.matches(&limit.pattern, id)
            && !limit.not_pattern.as_ref().is_some_and(|text| self.matches(text, id))
    }

    fn matches(&mut self, text: &str, id: &str) -> bool {
        let pattern = self.0.entry(text.to_owned()).or_insert_with(|| Pattern::parse(text).ok());
        pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
    }
}

fn as_text<S: serde::Serializer>(epoch: &Epoch, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&epoch.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{feed, product};

    #[derive(Debug, Serialize)]
    struct TestReceipt {
        #[serde(skip)]
        key: ProductKey,
        site: &'static str,
    }

    impl Receipt for TestReceipt {
        fn key(&self) -> &ProductKey {
            &self.key
        }

        fn site(&self) -> &str {
            self.site
        }
    }

    fn site(name: &str, wishes: Value) -> SiteLine {
        serde_json::from_value(json!({
            "site": name, "credentials": [], "subscriptions": wishes, "active": true,
        }))
        .unwrap()
    }

    fn wish(feed: &str, pattern: &str) -> Value {
        json!({"feed": feed, "pattern": pattern, "not_pattern": "TEST"})
    }

    fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    fn answer(
        lines: &[SiteLine],
        sessions: &BTreeMap<SiteName, SessionTrace>,
        receipts: &[TestReceipt],
    ) -> Value {
        let (newer, older) = (product(9, "SA 9", 90), product(8, "XX TEST", 80));
        let traced =
            [TracedProduct { info: &newer, kept: true }, TracedProduct { info: &older, kept: false }];
        let log = SearchedLog {
            feed: feed("TEST"),
            epoch: Epoch(u64::MAX),
            head: Sequence(9),
            first: Sequence(9),
            searched_to: Sequence(8),
            search_complete: true,
        };
        let searched = SearchedReceipts { receipts_complete: false, receipts_since_us: Some(WallMicros(5)) };
        let ways = Whereabouts { lines, sessions, receipts, unicast_leg: LegId(4) };
        serde_json::to_value(ways.answer(&traced, log, searched, WallMicros(100))).unwrap()
    }

    #[test]
    fn every_site_with_a_part_in_the_feed_is_described() {
        let lines = [
            site(
                "oslo",
                json!([wish("TEST", "^SA"), wish("OTHER", ".*"), wish("TEST", "^XX"), wish("TEST", "(")]),
            ),
            site("paris", json!([wish("OTHER", ".*")])),
            site("rome", json!([])),
        ];
        let receipts = [TestReceipt { key: product(8, "x", 0).key, site: "rome" }];
        let answer = answer(&lines, &BTreeMap::new(), &receipts);
        assert_eq!((&answer["epoch"], &answer["at_us"]), (&json!("18446744073709551615"), &json!(100)));
        assert_eq!((&answer["receipts_complete"], &answer["receipts_since_us"]), (&json!(false), &json!(5)));
        let oslo = json!({
            "site": "oslo", "active": true, "subscriptions": 3, "session": null, "receipts": [],
            "matching": [{"pattern": "^SA", "not_pattern": "TEST"}],
        });
        assert_eq!(answer["products"][0]["sites"], json!([oslo]));
        assert_eq!(
            (&answer["products"][0]["kept"], &answer["products"][1]["kept"]),
            (&json!(true), &json!(false))
        );
        let of_the_older = answer["products"][1]["sites"].as_array().unwrap();
        assert_eq!(of_the_older[0]["matching"], json!([]), "the id has what no subscription wants");
        assert_eq!(
            (&of_the_older[1]["site"], &of_the_older[1]["receipts"]),
            (&json!("rome"), &json!([{"site": "rome"}])),
            "a receipt tells of a subscription that is gone"
        );
    }

    #[test]
    fn a_session_that_answered_tells_where_each_product_is() {
        let products = [Standing::Owed { lane: Lane::Live, asked: true, numbers_before: 6 }, Standing::Said];
        let view = SessionView {
            products: products.map(|standing| ProductView { standing, first_byte_us: Some(95) }).into(),
            waiting: vec![WaitingBytes { feed: feed("TEST"), live: true, bytes: 3 }],
        };
        let status = SessionStatus {
            frontiers: BTreeMap::from([(feed("TEST"), (Sequence(7), 2))]),
            offered: BTreeMap::from([(feed("TEST"), LegId(6))]),
            ..SessionStatus::default()
        };
        let sessions = BTreeMap::from([(oslo(), SessionTrace::of(&feed("TEST"), &status, Some(view)))]);
        let answer = answer(&[site("oslo", json!([wish("TEST", ".*")]))], &sessions, &[]);
        assert_eq!(
            answer["products"][0]["sites"][0]["session"],
            json!({
                "standing": "owed", "lane": "live", "asked": true, "numbers_before": 6, "transport": "unicast",
                "leg": 4, "joining": true, "leg_backlog_bytes": null, "first_byte_us": 95, "settled_to": 7,
                "pending": 2, "clock_offset_us": null, "clock_bound_us": null,
                "waiting": [{"feed": "TEST", "live": true, "bytes": 3}],
            })
        );
        assert_eq!(answer["products"][1]["sites"][0]["session"]["standing"], json!("said"));
    }

    #[test]
    fn a_busy_session_on_a_leg_is_described_by_the_leg() {
        let status =
            SessionStatus { joined: BTreeMap::from([(feed("TEST"), LegId(6))]), ..SessionStatus::default() };
        let trace = SessionTrace::of(&feed("TEST"), &status, None);
        assert_eq!(trace.joined(), Some(LegId(6)));
        let trace = trace.with_leg(44, vec![None, Some(WallMicros(81))]);
        let sessions = BTreeMap::from([(oslo(), trace)]);
        let answer = answer(&[site("oslo", json!([wish("TEST", ".*")]))], &sessions, &[]);
        let session = |at: usize| answer["products"][at]["sites"][0]["session"].clone();
        assert_eq!(
            (&session(0)["standing"], &session(0)["transport"]),
            (&json!("no-answer"), &json!("multicast"))
        );
        assert_eq!((&session(0)["leg"], &session(0)["leg_backlog_bytes"]), (&json!(6), &json!(44)));
        assert_eq!((&session(0)["first_byte_us"], &session(1)["first_byte_us"]), (&json!(null), &json!(81)));
        assert_eq!((&session(0)["joining"], &session(0)["waiting"]), (&json!(false), &json!([])));
    }

    #[test]
    fn states_are_words() {
        let of = |standing| state(Some(&ProductView { standing, first_byte_us: None }));
        assert_eq!(state(None).standing, "no-answer");
        assert_eq!(
            (of(Standing::Queued { asked: true }).standing, of(Standing::Queued { asked: true }).asked),
            ("queued", true)
        );
        let words = [Standing::NotServed, Standing::Settled, Standing::LeftToLeg].map(|it| of(it).standing);
        assert_eq!(words, ["not-served", "settled", "left-to-leg"]);
    }
}
