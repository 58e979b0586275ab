//! Carries out a request to store products: groups them for their logs, and collects the result of each.
use std::fmt::Display;
use std::sync::Arc;

use downburst_model::{FeedName, Pieces, ProductInfo, Sequence, WallMicros};
use downburst_session::{Duplicates, StoreResult, Train};

use super::request::{Brought, Contents, PlaceId, StoreItem, StoreRequest, Stored, StoredItem, StoredWhat};

/// Storage that verifies and keeps products.
pub trait ProductStore {
    /// A product in the form for a log.
    type Admitted;
    /// The bytes of a product that arrived in ranges.
    type Place;

    /// The product in the form for its log; `None` if it is skipped.
    fn admit(&self, info: ProductInfo, brought: Brought) -> Option<Self::Admitted>;

    /// Appends products to the log of a feed together; returns the result of each.
    ///
    /// # Errors
    ///
    /// The common result of all products if there is no log.
    fn append(
        &self,
        feed: &FeedName,
        products: Vec<(Self::Admitted, Pieces)>,
    ) -> Result<Vec<ProductEnd>, StoreResult>;

    /// Admits and appends a product whose bytes are at a place.
    fn append_from(&self, info: &ProductInfo, brought: Brought, place: &mut Self::Place) -> ProductEnd;

    /// Discards a place: its product is stored, or never will be.
    fn discard(&self, place: Self::Place);

    /// The site's wall clock.
    fn wall(&self) -> WallMicros;
}

/// The result of a product, and its place in the site's own log.
pub type ProductEnd = (StoreResult, Option<Sequence>);

/// The result for a product without room at `path`. The log's own message is meant for sources of products: at a site
/// products are sent again without action.
pub fn full_disk(path: impl Display) -> StoreResult {
    StoreResult::Failed(format!(
        "the disk of {path} is full; free space there, or keep fewer products (--retention-hours, --retention-bytes)"
    ))
}

/// A request, with the bytes of its products.
#[derive(Debug)]
pub struct StoreBatch<P> {
    id: u64,
    items: Vec<Complete<P>>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch holds few, and lives until it is stored")]
enum Complete<P> {
    Product { info: ProductInfo, brought: Brought, body: Body<P> },
    Train { train: Arc<Train>, last_byte: WallMicros },
}

/// All bytes of a product.
#[derive(Debug)]
enum Body<P> {
    Memory(Pieces),
    Place(P),
}

/// A batch on its way into the logs.
struct Storing<'a, S> {
    store: &'a S,
    stored: Vec<StoredItem>,
    /// Products of one feed to be appended together.
    group: Vec<(ProductInfo, Brought, Pieces)>,
}

impl<P> StoreBatch<P> {
    /// Takes over the places named in the request.
    pub fn new(request: StoreRequest, mut take: impl FnMut(PlaceId) -> P) -> Self {
        let StoreRequest { id, items } = request;
        let complete = |item| match item {
            StoreItem::Product { info, brought, contents: Contents::Place(place) } => {
                Complete::Product { info, brought, body: Body::Place(take(place)) }
            }
            StoreItem::Product { info, brought, contents: Contents::Pieces(pieces) } => {
                Complete::Product { info, brought, body: Body::Memory(pieces) }
            }
            StoreItem::Train { train, last_byte } => Complete::Train { train, last_byte },
        };
        Self { id, items: items.into_iter().map(complete).collect() }
    }

    /// Stores all items in order. Adjacent ones of one feed are appended together.
    pub fn store<S: ProductStore<Place = P>>(self, store: &S) -> Stored {
        let mut storing = Storing { store, stored: Vec::new(), group: Vec::new() };
        self.items.into_iter().for_each(|complete| storing.take(complete));
        storing.append_group();
        Stored { id: self.id, items: storing.stored }
    }
}

impl<S: ProductStore> Storing<'_, S> {
    fn take(&mut self, complete: Complete<S::Place>) {
        match complete {
            Complete::Product { info, brought, body: Body::Memory(bytes) } => {
                self.take_bytes(info, brought, bytes);
            }
            Complete::Product { info, brought, body: Body::Place(place) } => {
                self.append_group();
                self.append_from(info, brought, place);
            }
            Complete::Train { train, last_byte } => {
                self.append_group();
                self.append_train(train, last_byte);
            }
        }
    }

    fn take_bytes(&mut self, info: ProductInfo, brought: Brought, bytes: Pieces) {
        if self.group.last().is_some_and(|(last, ..)| last.key.feed != info.key.feed) {
            self.append_group();
        }
        self.group.push((info, brought, bytes));
    }

    fn append_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let Some((first, ..)) = group.first() else { return };
        let feed = first.key.feed.clone();
        let (infos, products): (Vec<ProductInfo>, Vec<_>) = group
            .into_iter()
            .map(|(info, brought, bytes)| {
                let product = self.store.admit(info.clone(), brought).map(|product| (product, bytes));
                (info, product)
            })
            .unzip();
        let ends = self.append_admitted(&feed, products);
        for (info, (result, log_sequence)) in infos.into_iter().zip(ends) {
            self.put(StoredWhat::Product(info, result), log_sequence);
        }
    }

    fn append_from(&mut self, info: ProductInfo, brought: Brought, mut place: S::Place) {
        let (result, log_sequence) = self.store.append_from(&info, brought, &mut place);
        self.put(StoredWhat::Product(info, result), log_sequence);
        self.store.discard(place);
    }

    /// Appends all products of a train together.
    fn append_train(&mut self, train: Arc<Train>, last_byte: WallMicros) {
        let brought = Brought { last_byte, lane: train.lane, resend: None };
        let products = train.cars.iter().map(|car| {
            let product = self.store.admit(train.info(car), brought)?;
            Some((product, car.bytes.clone().into()))
        });
        let ends = self.append_admitted(&train.feed, products.collect());
        let (results, sequences): (Vec<StoreResult>, Vec<Option<Sequence>>) = ends.into_iter().unzip();
        self.put(StoredWhat::Train(train, results), sequences.into_iter().flatten().max());
    }

    /// Appends the admitted products together; returns the result of each, `Held` for skipped ones.
    fn append_admitted(
        &self,
        feed: &FeedName,
        products: Vec<Option<(S::Admitted, Pieces)>>,
    ) -> Vec<ProductEnd> {
        let admitted: Vec<bool> = products.iter().map(Option::is_some).collect();
        let mut appended = match self.store.append(feed, products.into_iter().flatten().collect()) {
            Ok(appended) => appended.into_iter(),
            Err(result) => return vec![(result, None); admitted.len()],
        };
        let ends = admitted.into_iter().map(|admitted| {
            let appended = admitted.then(|| appended.next()).flatten();
            appended.unwrap_or((StoreResult::Held, None))
        });
        ends.collect()
    }

    fn put(&mut self, what: StoredWhat, log_sequence: Option<Sequence>) {
        self.stored.push(StoredItem { what, at: self.store.wall(), log_sequence });
    }
}

/// The rule for duplicates in the site's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnDuplicates {
    /// With one hub only its own numbers count: the hub decided on duplicates, until its log begins a second epoch.
    OfOneHub,
    /// A site of several hubs drops products that one hub sends after another.
    OfSeveralHubs,
}

impl OwnDuplicates {
    /// The initial rule.
    pub fn at_first(self) -> Duplicates {
        match self {
            Self::OfOneHub => Duplicates::None,
            Self::OfSeveralHubs => Duplicates::IdAndContent,
        }
    }

    /// The rule after the hub's log began a new epoch, if it changes.
    pub fn guarded(self) -> Option<Duplicates> {
        (self == Self::OfOneHub).then_some(Duplicates::IdAndContent)
    }

    /// The rule if the hub has this one, if it changes. A site of several hubs follows their rule. If they have
    /// none, id and content decide: the hubs' numbers differ, and nothing else reveals a repeat.
    pub fn following(self, hub: Duplicates) -> Option<Duplicates> {
        let rule = if hub == Duplicates::None { Duplicates::IdAndContent } else { hub };
        (self == Self::OfSeveralHubs).then_some(rule)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use downburst_model::{Class, Digest, Epoch, Lane, Origin, ProductId, ProductKey};

    use bytes::Bytes;

    use super::*;

    /// Logs with a record of their calls; feed `GONE` has no log, and id `passed` is skipped.
    #[derive(Default)]
    struct Logs {
        calls: RefCell<Vec<String>>,
        head: RefCell<u64>,
    }

    impl Logs {
        fn append_one(&self) -> ProductEnd {
            *self.head.borrow_mut() += 1;
            (StoreResult::Stored, Some(Sequence(*self.head.borrow())))
        }
    }

    impl ProductStore for Logs {
        type Admitted = u64;
        type Place = &'static str;

        fn admit(&self, info: ProductInfo, _: Brought) -> Option<u64> {
            (info.id.as_str() != "passed").then_some(info.key.sequence.0)
        }

        fn append(
            &self,
            feed: &FeedName,
            products: Vec<(u64, Pieces)>,
        ) -> Result<Vec<ProductEnd>, StoreResult> {
            let numbers: Vec<u64> = products.iter().map(|(number, _)| *number).collect();
            self.calls.borrow_mut().push(format!("{} {numbers:?}", feed.as_str()));
            if feed.as_str() == "GONE" {
                return Err(StoreResult::Failed("the feed was removed".to_owned()));
            }
            Ok(numbers.iter().map(|_| self.append_one()).collect())
        }

        fn append_from(&self, info: &ProductInfo, brought: Brought, place: &mut &'static str) -> ProductEnd {
            let Some(product) = self.admit(info.clone(), brought) else { return (StoreResult::Held, None) };
            self.calls.borrow_mut().push(format!("{product} from {place}"));
            self.append_one()
        }

        fn discard(&self, place: &'static str) {
            self.calls.borrow_mut().push(format!("discard {place}"));
        }

        fn wall(&self) -> WallMicros {
            WallMicros(9)
        }
    }

    fn info(feed: &str, number: u64, id: &str) -> ProductInfo {
        let feed = FeedName::parse(feed).unwrap();
        ProductInfo {
            key: ProductKey { feed, epoch: Epoch(1), sequence: Sequence(number) },
            id: ProductId::parse(id).unwrap(),
            origin: Origin::parse("h").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size: 3,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        }
    }

    fn item(feed: &str, number: u64, id: &str, contents: Contents) -> StoreItem {
        let brought = Brought { last_byte: WallMicros(3), lane: Lane::Live, resend: None };
        StoreItem::Product { info: info(feed, number, id), brought, contents }
    }

    fn pieces() -> Contents {
        Contents::Pieces(Bytes::from_static(b"abc").into())
    }

    /// The calls made to store these items, and their results.
    fn stored(items: Vec<StoreItem>) -> (Vec<String>, Vec<(StoreResult, Option<u64>)>) {
        let logs = Logs::default();
        let stored = StoreBatch::new(StoreRequest { id: 4, items }, |_| "spool").store(&logs);
        assert_eq!(stored.id, 4);
        let end = |item: StoredItem| match item.what {
            StoredWhat::Product(_, result) => (result, item.log_sequence.map(|it| it.0)),
            StoredWhat::Train(..) => panic!("no train"),
        };
        (logs.calls.into_inner(), stored.items.into_iter().map(end).collect())
    }

    #[test]
    fn neighbours_of_one_feed_are_appended_together_and_in_order() {
        let (calls, ends) = stored(vec![
            item("A", 1, "x", pieces()),
            item("A", 2, "x", pieces()),
            item("B", 3, "x", pieces()),
            item("A", 4, "x", pieces()),
            item("A", 5, "x", Contents::Place(PlaceId(1))),
            item("A", 6, "x", pieces()),
        ]);
        assert_eq!(calls, ["A [1, 2]", "B [3]", "A [4]", "5 from spool", "discard spool", "A [6]"]);
        let places: Vec<_> = (1..=6).map(|at| (StoreResult::Stored, Some(at))).collect();
        assert_eq!(ends, places);
    }

    #[test]
    fn what_is_passed_over_counts_as_held_and_its_place_goes() {
        let (calls, ends) = stored(vec![
            item("A", 1, "passed", pieces()),
            item("A", 2, "x", pieces()),
            item("A", 3, "passed", Contents::Place(PlaceId(1))),
        ]);
        assert_eq!(calls, ["A [2]", "discard spool"]);
        assert_eq!(
            ends,
            [(StoreResult::Held, None), (StoreResult::Stored, Some(1)), (StoreResult::Held, None)]
        );
    }

    #[test]
    fn without_a_log_all_products_of_a_group_fail_alike() {
        let (_, ends) = stored(vec![item("GONE", 1, "x", pieces()), item("GONE", 2, "passed", pieces())]);
        let failed = || (StoreResult::Failed("the feed was removed".to_owned()), None);
        assert_eq!(ends, [failed(), failed()]);
    }

    #[test]
    fn a_site_of_one_hub_has_no_rule_until_the_hubs_log_begins_anew_and_one_of_several_follows_theirs() {
        let (one, several) = (OwnDuplicates::OfOneHub, OwnDuplicates::OfSeveralHubs);
        assert_eq!([one, several].map(OwnDuplicates::at_first), [Duplicates::None, Duplicates::IdAndContent]);
        assert_eq!([one, several].map(OwnDuplicates::guarded), [Some(Duplicates::IdAndContent), None]);
        assert_eq!(one.following(Duplicates::Id), None);
        let followed = [Duplicates::None, Duplicates::Id, Duplicates::ContentWithoutWmoStart];
        let followed = followed.map(|rule| several.following(rule));
        let rules = [Duplicates::IdAndContent, Duplicates::Id, Duplicates::ContentWithoutWmoStart];
        assert_eq!(followed, rules.map(Some));
    }
}
