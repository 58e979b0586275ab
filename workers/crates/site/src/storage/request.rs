//! The interface of a site's storage: places for incoming bytes, requests to store complete products, and their
//! results. The nature of a place is left open: today a file beside the log, later the product's own place in it.
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{FeedName, Lane, Pieces, ProductInfo, Sequence, WallMicros};
use downburst_session::{StoreResult, Train};

/// A place for the bytes of one incoming product; never reused by a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceId(pub u64);

/// An operation at a place. A place that fails keeps the reason until the product is stored from it.
#[derive(Debug)]
pub enum PlaceOrder {
    /// Make a place for this product.
    Begin(PlaceId, ProductInfo),
    /// Write bytes there. Ranges arrive in any order and possibly repeatedly, and never reach beyond the product.
    Write {
        /// The place.
        place: PlaceId,
        /// The offset in the product.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// Discard the place: the product will not be stored from it.
    Drop(PlaceId),
}

/// A product's bytes.
#[derive(Debug)]
pub enum Contents {
    /// In memory.
    Pieces(Pieces),
    /// At a place, which the request takes over.
    Place(PlaceId),
}

/// The circumstances of a product's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// The site's wall clock at the last byte.
    pub last_byte: WallMicros,
    /// Its lane: the reason for its transfer.
    pub lane: Lane,
    /// The number of its resend, if there was one.
    pub resend: Option<u64>,
}

/// A complete item.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a request holds few, and lives until it is stored")]
pub enum StoreItem {
    /// A product that arrived in pieces.
    Product {
        /// Its description.
        info: ProductInfo,
        /// The circumstances of its arrival.
        brought: Brought,
        /// Its bytes, not yet verified.
        contents: Contents,
    },
    /// Products that arrived whole and together.
    Train {
        /// The products.
        train: Arc<Train>,
        /// The site's wall clock at their arrival.
        last_byte: WallMicros,
    },
}

/// Verify and store these items, in this order; answered by [`Stored`] with the same number. Several requests may be
/// pending: a wake-up of the disk's thread per product would cost more than its storage.
#[derive(Debug)]
pub struct StoreRequest {
    /// Its number, never reused by a connection.
    pub id: u64,
    /// The items, at least one.
    pub items: Vec<StoreItem>,
}

/// The result of a request.
#[derive(Debug)]
pub struct Stored {
    /// The number of the request.
    pub id: u64,
    /// A result for each of its items, in their order.
    pub items: Vec<StoredItem>,
}

/// The result of an item.
#[derive(Debug)]
pub struct StoredItem {
    /// The item and its result.
    pub what: StoredWhat,
    /// The site's wall clock when the result was certain.
    pub at: WallMicros,
    /// Its place in the site's own log; for several products the last one.
    pub log_sequence: Option<Sequence>,
}

/// An item and its result.
#[derive(Debug)]
pub enum StoredWhat {
    /// A product.
    Product(ProductInfo, StoreResult),
    /// One result for each product of the train.
    Train(Arc<Train>, Vec<StoreResult>),
}

impl StoreItem {
    /// The memory it occupies until it is stored.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Product { contents: Contents::Pieces(pieces), .. } => pieces.len(),
            Self::Product { .. } => 0,
            Self::Train { train, .. } => train.cars.iter().map(|car| car.bytes.len() + CAR_BYTES).sum(),
        }
    }
}

impl StoredWhat {
    /// The feed.
    pub fn feed(&self) -> &FeedName {
        match self {
            Self::Product(info, _) => &info.key.feed,
            Self::Train(train, _) => &train.feed,
        }
    }
}

/// Overhead in memory of a product of a train.
const CAR_BYTES: usize = 256;
