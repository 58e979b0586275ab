//! Single products on their way to a site: sizes, and the time that each took.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{SiteName, Transport};
use downburst_session::{ClockOffset, Outcome};

use super::lines::{SessionTraffic, Transfer};
use crate::session::NotedReceipt;

/// The last products of each site since its last report, and some before.
#[derive(Debug, Default)]
pub struct Transfers(BTreeMap<SiteName, Recent>);

#[derive(Debug, Default)]
struct Recent {
    products: VecDeque<Product>,
    /// Products up to this time are not known any more.
    forgotten_until_us: i64,
}

/// One product on its way, by the reference clock.
#[derive(Clone, Copy, Debug)]
struct Product {
    bytes: u64,
    first_us: i64,
    last_us: i64,
    /// Bytes of products that were on their way at the same time.
    beside_bytes: u64,
    /// Long enough to tell a rate, and not reported yet.
    telling: bool,
}

impl Transfers {
    /// Takes a message with receipts of a site.
    pub fn arrived(&mut self, site: &SiteName, clock: ClockOffset, items: &[NotedReceipt]) {
        let products: Vec<Product> = items.iter().filter_map(|noted| Product::of(noted, clock)).collect();
        if !products.is_empty() {
            let recent = self.0.entry(site.clone()).or_default();
            products.into_iter().for_each(|product| recent.add(product));
        }
    }

    /// Gives each session a sample of its transfers. What belongs to none of these sessions is dropped.
    pub fn report(&mut self, sessions: &mut [SessionTraffic]) {
        let mut before = std::mem::take(&mut self.0);
        for session in sessions {
            if let Some(mut recent) = before.remove(&session.site) {
                session.transfers = recent.report();
                self.0.insert(session.site.clone(), recent);
            }
        }
    }
}

impl Recent {
    fn add(&mut self, mut product: Product) {
        for other in &mut self.products {
            if other.first_us < product.last_us && product.first_us < other.last_us {
                other.beside_bytes = other.beside_bytes.saturating_add(product.bytes);
                product.beside_bytes = product.beside_bytes.saturating_add(other.bytes);
            }
        }
        product.telling &= product.first_us >= self.forgotten_until_us;
        self.products.push_back(product);
        if self.products.len() > PRODUCTS_KEPT
            && let Some(oldest) = self.products.pop_front()
        {
            self.forgotten_until_us = self.forgotten_until_us.max(oldest.last_us);
        }
    }

    fn report(&mut self) -> Vec<Transfer> {
        let new = self.products.iter_mut().filter(|product| product.telling);
        let once = new.map(|product| {
            product.telling = false;
            &*product
        });
        let alone = once.filter(|product| product.beside_bytes <= product.bytes / BESIDE_PART);
        let transfer = |it: &Product| Transfer { bytes: it.bytes, took_us: it.last_us.abs_diff(it.first_us) };
        alone.map(transfer).take(SAMPLES).collect()
    }
}

impl Product {
    /// `None`: it did not go by unicast, or its times are not known.
    fn of(noted: &NotedReceipt, clock: ClockOffset) -> Option<Self> {
        let receipt = &noted.receipt;
        if receipt.transport != Transport::Unicast || receipt.outcome != Outcome::Stored {
            return None;
        }
        let first_us = noted.first_byte?.0;
        let last_us = receipt.last_byte.0.saturating_sub(clock.offset_us);
        let took_us = u64::try_from(last_us.checked_sub(first_us)?).ok()?;
        let telling = receipt.size >= TELLING_BYTES
            && took_us >= clock.round_trip_us.max(clock.bound_us).saturating_mul(TELLING_ROUND_TRIPS)
            && !receipt.repaired;
        Some(Self {
            bytes: receipt.size,
            first_us,
            last_us,
            beside_bytes: 0,
            telling: telling && took_us > 0,
        })
    }
}

/// A hundred segments: a few packets are no rate.
const TELLING_BYTES: u64 = 144_800;

/// After so many, the start of the congestion control and the error of the clocks matter little.
const TELLING_ROUND_TRIPS: u64 = 20;

/// A twentieth: heartbeats and small products beside a transfer do not change its rate.
const BESIDE_PART: u64 = 20;

/// Of each site; three kilobytes.
const PRODUCTS_KEPT: usize = 64;

/// Transfers of a session in a report.
const SAMPLES: usize = 4;

#[cfg(test)]
mod tests {
    use downburst_model::{Class, Epoch, FeedName, Lane, LegId, ProductKey, Sequence, WallMicros};
    use downburst_session::Receipt;
    use proptest::prelude::*;

    use super::*;
    use crate::figures::all_sessions;
    use crate::registry::testlink::TestLink;
    use crate::registry::{Newcomer, SessionRegistry};
    use crate::session::SessionStatus;

    const CLOCK: ClockOffset = ClockOffset { offset_us: 500, bound_us: 5_000, round_trip_us: 10_000 };

    fn site() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    /// A product of this size that was on its way from `first` to `last`, in milliseconds.
    fn noted(size: u64, first: i64, last: i64) -> NotedReceipt {
        let feed = FeedName::parse("NGRID").unwrap();
        let receipt = Receipt {
            key: ProductKey { feed, epoch: Epoch(9), sequence: Sequence(4) },
            outcome: Outcome::Stored,
            lane: Lane::Live,
            leg: LegId(1),
            transport: Transport::Unicast,
            class: Class::Grid,
            size,
            created: WallMicros(0),
            hub_stored: WallMicros(0),
            last_byte: WallMicros(last * 1_000 + CLOCK.offset_us),
            site_stored: WallMicros(last * 1_000 + CLOCK.offset_us),
            repaired: false,
            action_done: None,
        };
        NotedReceipt { receipt, first_byte: Some(WallMicros(first * 1_000)), has_deadline: false }
    }

    fn session() -> SessionTraffic {
        let mut registry = SessionRegistry::default();
        let mut status = SessionStatus::new(downburst_model::Micros(0));
        status.apply(crate::session::StatusChange::Began);
        let link = TestLink::new(status);
        let newcomer = Newcomer { credential_sha256: String::new(), stand_by: false, link };
        registry.register(&site(), newcomer, downburst_model::Micros(0)).unwrap();
        all_sessions(&registry, &|_| None, downburst_model::Micros(0)).remove(0)
    }

    fn reported(transfers: &mut Transfers) -> Vec<(u64, u64)> {
        let mut sessions = [session()];
        transfers.report(&mut sessions);
        sessions[0].transfers.iter().map(|it| (it.bytes, it.took_us)).collect()
    }

    fn of(items: &[NotedReceipt]) -> Vec<(u64, u64)> {
        let mut transfers = Transfers::default();
        transfers.arrived(&site(), CLOCK, items);
        reported(&mut transfers)
    }

    #[test]
    fn a_product_alone_on_its_way_is_reported_once_by_the_hubs_clock() {
        let mut transfers = Transfers::default();
        transfers.arrived(&site(), CLOCK, &[noted(1_000_000, 0, 400), noted(2_000_000, 400, 1_000)]);
        assert_eq!(reported(&mut transfers), [(1_000_000, 400_000), (2_000_000, 600_000)]);
        assert_eq!(reported(&mut transfers), []);
        transfers.arrived(&site(), CLOCK, &[noted(1_000_000, 900, 1_300)]);
        assert_eq!(reported(&mut transfers), [], "it overlaps one of the report before");
    }

    #[test]
    fn products_beside_each_other_tell_no_rate_but_small_ones_do_not_matter() {
        assert_eq!(of(&[noted(1_000_000, 0, 400), noted(1_000_000, 300, 900)]), []);
        assert_eq!(of(&[noted(900, 100, 150), noted(1_000_000, 0, 400)]), [(1_000_000, 400_000)]);
        let small: Vec<_> = (0..60).map(|_| noted(900, 100, 150)).collect();
        assert_eq!(of(&[small, vec![noted(1_000_000, 0, 400)]].concat()), []);
        let many: Vec<_> = (0..70).map(|_| noted(9, 100, 150)).collect();
        assert_eq!(of(&[many, vec![noted(1_000_000, 0, 400)]].concat()), [], "some are forgotten");
    }

    #[test]
    fn small_short_repaired_and_other_products_tell_no_rate() {
        assert_eq!(of(&[noted(TELLING_BYTES - 1, 0, 400)]), []);
        assert_eq!(of(&[noted(1_000_000, 0, 199)]), [], "twenty round trips are 200 ms");
        assert_eq!(of(&[noted(1_000_000, 400, 0)]), [], "it can't arrive before it left");
        let changed = |change: fn(&mut NotedReceipt)| {
            let mut item = noted(1_000_000, 0, 400);
            change(&mut item);
            of(&[item])
        };
        assert_eq!(changed(|it| it.receipt.repaired = true), []);
        assert_eq!(changed(|it| it.receipt.transport = Transport::Multicast), []);
        assert_eq!(changed(|it| it.receipt.outcome = Outcome::Rejected), []);
        assert_eq!(changed(|it| it.first_byte = None), []);
        assert_eq!(changed(|_| ()).len(), 1);
    }

    #[test]
    fn a_report_is_a_bounded_sample_and_sites_without_a_session_are_dropped() {
        let many: Vec<_> = (0..50).map(|number| noted(1_000_000, number * 400, number * 400 + 300)).collect();
        assert_eq!(of(&many).len(), SAMPLES);
        let mut transfers = Transfers::default();
        transfers.arrived(&SiteName::parse("gone").unwrap(), CLOCK, &many);
        assert_eq!((reported(&mut transfers), transfers.0.len()), (vec![], 0));
    }

    proptest! {
        #[test]
        fn no_receipts_make_it_panic(
            items in prop::collection::vec((any::<u64>(), any::<i64>(), any::<i64>(), any::<i64>()), 0..150),
        ) {
            let mut transfers = Transfers::default();
            for (size, first, last, offset_us) in items {
                let mut item = noted(size, 0, 0);
                (item.first_byte, item.receipt.last_byte) = (Some(WallMicros(first)), WallMicros(last));
                transfers.arrived(&site(), ClockOffset { offset_us, ..CLOCK }, &[item]);
            }
            let found = reported(&mut transfers);
            prop_assert!(found.len() <= SAMPLES && found.iter().all(|(_, took_us)| *took_us > 0));
        }
    }
}
