//! Both roles on loopback, with real logs and TLS.
use std::time::Duration;

use bytes::Bytes;
use downburst_log::Retention;
use downburst_model::{
    Class, Digest, Epoch, FeedName, Lane, Origin, ProductId, ProductInfo, ProductKey, RangeSet, Sequence,
    SiteName, WallMicros,
};
use downburst_session::{Fetch, FetchProduct, SiblingFault, SiblingGrant, SiblingTerms, StoreResult, Ticket};
use downburst_site::{Brought, ProductStore as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::site::store::Place;

const OWNER: Owner = 1;
const SIZE: usize = 50_000;
const TERMS: SiblingTerms =
    SiblingTerms { on: true, upload_bytes_per_second: 100_000_000, upload_bytes_per_day: 1_000_000_000 };

fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn bytes_of(number: u64) -> Bytes {
    (0..SIZE as u64).map(|at| (at * number) as u8).collect::<Vec<u8>>().into()
}

fn described(number: u64) -> FetchProduct {
    let digest = Digest(*blake3::hash(&bytes_of(number)).as_bytes());
    FetchProduct { sequence: Sequence(number), size: SIZE as u64, digest }
}

/// A site that holds the products 3 to 5, and one that asks it.
struct Pair {
    shared: SharedSiblings,
    taker: Keys,
    _directory: tempfile::TempDir,
}

impl Pair {
    fn new(spoils: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        downburst_log::disk::make_directory(&directory.path().join("state")).unwrap();
        let clock = Clock::start(0);
        let retention = Retention { hours: 1.0, bytes: 1_000_000_000 };
        let logs = Arc::new(Logs::new(&directory.path().join("log"), retention, false));
        let place = Place { destination: Arc::clone(&logs) as _, clock, via: None };
        for number in 3..=5 {
            let info = ProductInfo {
                key: ProductKey { feed: feed(), epoch: Epoch(7), sequence: Sequence(number) },
                id: ProductId::parse("x").unwrap(),
                origin: Origin::parse("h").unwrap(),
                created: WallMicros(1),
                stored: WallMicros(1),
                size: SIZE as u64,
                digest: described(number).digest,
                class: Class::Grid,
                hops: None,
                ldm: None,
                properties: None,
            };
            let brought = Brought { last_byte: WallMicros(1), lane: Lane::Live, resend: None };
            let product = place.admit(info, brought).unwrap();
            let ends = place.append(&feed(), vec![(product, bytes_of(number).into())]).unwrap();
            assert_eq!(ends[0].0, StoreResult::Stored);
        }
        let settings = SiblingsUse { listen: "127.0.0.1:0".parse().unwrap(), spoils };
        let shared = SharedSiblings::open(settings, directory.path(), logs, clock).unwrap();
        shared.0.change(|desk| desk.set_terms(OWNER, TERMS));
        Self { shared, taker: Keys::generate().unwrap(), _directory: directory }
    }

    fn grant(&self, ticket: u8, numbers: (u64, u64)) {
        let sequences: RangeSet = [numbers].into_iter().collect();
        let (sibling, fingerprint) = (SiteName::parse("oslo").unwrap(), self.taker.fingerprint());
        let (ticket, feed, epoch) = (Ticket([ticket; 16]), feed(), Epoch(7));
        let grant = SiblingGrant { ticket, sibling, fingerprint, feed, epoch, sequences };
        let now = self.shared.0.clock.monotonic();
        self.shared.0.change(|desk| desk.grant(now, OWNER, grant));
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.shared.0.port)
    }

    /// Fetches products with a ticket; returns the bytes that came, and the fault.
    async fn fetch(&self, ticket: u8, numbers: (u64, u64)) -> (Vec<Bytes>, Option<SiblingFault>) {
        self.fetch_as(&self.taker, ticket, numbers).await
    }

    async fn fetch_as(
        &self,
        keys: &Keys,
        ticket: u8,
        (first, last): (u64, u64),
    ) -> (Vec<Bytes>, Option<SiblingFault>) {
        let fingerprint = self.shared.0.keys.fingerprint();
        let fetch = Fetch {
            number: 9,
            ticket: Ticket([ticket; 16]),
            sibling: SiteName::parse("bergen").unwrap(),
            address: self.address(),
            fingerprint,
            products: (first..=last).map(described).collect(),
        };
        let (say, mut said) = mpsc::channel(PIECES);
        tokio::spawn(fetching::fetch(fetch, keys.connector(&fingerprint), say));
        let mut came = std::collections::BTreeMap::<Sequence, Vec<u8>>::new();
        loop {
            match said.recv().await.unwrap() {
                SiblingInput::Piece { sequence, bytes, .. } => {
                    came.entry(sequence).or_default().extend_from_slice(&bytes);
                }
                SiblingInput::Spoilt { sequence, .. } => drop(came.remove(&sequence)),
                SiblingInput::Ended { fault, .. } => {
                    return (came.into_values().map(Bytes::from).collect(), fault);
                }
                SiblingInput::Port(_) => {}
            }
        }
    }
}

#[tokio::test]
async fn granted_products_come_whole_and_once_for_a_ticket() {
    let pair = Pair::new(false);
    pair.grant(1, (3, 5));
    assert_eq!(pair.fetch(1, (3, 5)).await, ((3..=5).map(bytes_of).collect(), None));
    assert_eq!(pair.fetch(1, (3, 5)).await, (vec![], Some(SiblingFault::Refused)));
}

#[tokio::test]
async fn a_sibling_that_comes_before_its_grant_is_served() {
    let pair = Pair::new(false);
    let soon = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        pair.grant(1, (4, 4));
    };
    let (found, ()) = tokio::join!(pair.fetch(1, (4, 4)), soon);
    assert_eq!(found, (vec![bytes_of(4)], None));
}

#[tokio::test]
async fn what_is_not_there_is_lacking_and_the_rest_comes() {
    let pair = Pair::new(false);
    pair.grant(1, (4, 6));
    let (came, fault) = pair.fetch(1, (4, 6)).await;
    assert_eq!((came, fault), (vec![bytes_of(4), bytes_of(5)], Some(SiblingFault::Lacking)));
}

#[tokio::test]
async fn another_certificate_gets_nothing_for_a_ticket() {
    let pair = Pair::new(false);
    pair.grant(1, (3, 5));
    let other = Keys::generate().unwrap();
    assert_eq!(pair.fetch_as(&other, 1, (3, 5)).await, (vec![], Some(SiblingFault::Refused)));
    assert_eq!(
        pair.fetch(1, (3, 3)).await.1,
        Some(SiblingFault::Rubbish),
        "products that were not asked for"
    );
}

#[tokio::test]
async fn a_sibling_with_another_certificate_than_the_hub_named_is_not_asked() {
    let pair = Pair::new(false);
    let connector = pair.taker.connector(&pair.taker.fingerprint()).unwrap();
    let socket = tokio::net::TcpStream::connect(pair.address()).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from(keys::NAME).unwrap();
    assert!(connector.connect(name, socket).await.is_err());
}

#[tokio::test]
async fn a_spoilt_byte_is_found_and_nothing_of_its_product_passes() {
    let pair = Pair::new(true);
    pair.grant(1, (3, 5));
    assert_eq!(pair.fetch(1, (3, 5)).await, (vec![], Some(SiblingFault::Rubbish)));
}

#[tokio::test]
async fn a_withdrawn_transfer_ends_while_it_runs() {
    let pair = Pair::new(false);
    let slow = SiblingTerms { upload_bytes_per_second: 20_000, ..TERMS };
    pair.shared.0.change(|desk| desk.set_terms(OWNER, slow));
    pair.grant(1, (3, 5));
    let soon = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        pair.shared.0.change(|desk| desk.withdraw(&[Ticket([1; 16])]));
    };
    let both =
        tokio::time::timeout(Duration::from_secs(3), async { tokio::join!(pair.fetch(1, (3, 5)), soon) });
    let ((came, fault), ()) = both.await.expect("it ended");
    assert!(came.iter().all(|bytes| bytes.len() < SIZE), "it had no time for a product");
    assert!(matches!(fault, Some(SiblingFault::Refused | SiblingFault::Unreachable)), "{fault:?}");
}

#[tokio::test]
async fn strangers_get_nothing_and_hold_no_place() {
    let pair = Pair::new(false);
    pair.grant(1, (3, 5));
    // More than have a place: some say nothing, some no TLS, and some show no certificate.
    let mut idle = Vec::new();
    for number in 0..160 {
        let mut socket = tokio::net::TcpStream::connect(pair.address()).await.unwrap();
        if number % 2 == 0 {
            socket.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        }
        idle.push(socket);
    }
    let authority = crate::tls::site_config(&"00".repeat(32)).unwrap();
    let name = rustls::pki_types::ServerName::try_from(keys::NAME).unwrap();
    let socket = tokio::net::TcpStream::connect(pair.address()).await.unwrap();
    let connecting = tokio_rustls::TlsConnector::from(authority).connect(name, socket);
    assert!(tokio::time::timeout(Duration::from_secs(20), connecting).await.unwrap().is_err());
    let found = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let (came, fault) = pair.fetch(1, (3, 5)).await;
            if fault.is_none() {
                return came;
            }
        }
    });
    assert_eq!(found.await.expect("a place").len(), 3);
    let mut answer = Vec::new();
    if let Some(socket) = idle.first_mut() {
        let _ = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await;
    }
    assert!(!answer.windows(8).any(|some| some == &bytes_of(3)[..8]), "not a byte of a product");
}
