//! How a site speaks of storage: places for bytes that come in, requests to store what is complete, and what became
//! of them. Nothing here says what a place is: a file beside the log today, the product's own place in it tomorrow.
use std::sync::Arc;

use bytes::Bytes;
use downburst_model::{FeedName, Lane, ProductInfo, Sequence, WallMicros};
use downburst_session::{StoreResult, Train};

/// A place for the bytes of one product that is coming in; never given twice by a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceId(pub u64);

/// What is to be done at a place. A place that fails keeps its reason until the product is stored from it.
#[derive(Debug)]
pub enum PlaceOrder {
    /// Make a place for this product.
    Begin(PlaceId, ProductInfo),
    /// Put bytes there. Ranges come in any order and possibly again, and never reach beyond the product.
    Write {
        /// Where.
        place: PlaceId,
        /// In the product.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The product will not be stored from it.
    Drop(PlaceId),
}

/// A product's bytes.
#[derive(Debug)]
pub enum Contents {
    /// In memory, in order.
    Pieces(Vec<Bytes>),
    /// At a place, which the request takes over.
    Place(PlaceId),
}

/// How a product came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Site's wall clock when the last byte came.
    pub last_byte: WallMicros,
    /// Why it travelled.
    pub lane: Lane,
    /// The number of the resend that brought it.
    pub resend: Option<u64>,
}

/// Something that is complete.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a request holds few, and lives until it is stored")]
pub enum StoreItem {
    /// A product that came in pieces.
    Product {
        /// What it is.
        info: ProductInfo,
        /// How it came.
        brought: Brought,
        /// Its bytes, not yet verified.
        contents: Contents,
    },
    /// Products that came whole and together.
    Train {
        /// The products.
        train: Arc<Train>,
        /// Site's wall clock when they came.
        last_byte: WallMicros,
    },
}

/// Verify these and keep them, in this order; answered by [`Stored`] with the same number. Several requests may be
/// on their way: a wake-up of the disk's thread per product would cost more than its storage.
#[derive(Debug)]
pub struct StoreRequest {
    /// Its number, never given twice by a connection.
    pub id: u64,
    /// At least one.
    pub items: Vec<StoreItem>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Stored {
    /// Of the request.
    pub id: u64,
    /// One for each of its items, in their order.
    pub items: Vec<StoredItem>,
}

/// What became of an item.
#[derive(Debug)]
pub struct StoredItem {
    /// Of which, and how it ended.
    pub what: StoredWhat,
    /// Site's wall clock when that was certain.
    pub at: WallMicros,
    /// Its place in the site's own log; of several the last.
    pub log_sequence: Option<Sequence>,
}

/// An item and its end.
#[derive(Debug)]
pub enum StoredWhat {
    /// A product.
    Product(ProductInfo, StoreResult),
    /// One result for each product of the train.
    Train(Arc<Train>, Vec<StoreResult>),
}

impl Contents {
    /// All bytes as one; copied only if they came in several pieces. `None` if they are at a place.
    pub fn at_hand(&self) -> Option<Bytes> {
        match self {
            Self::Pieces(pieces) if pieces.len() == 1 => pieces.first().cloned(),
            Self::Pieces(pieces) => Some(pieces.concat().into()),
            Self::Place(_) => None,
        }
    }
}

impl StoreItem {
    /// The memory it keeps until it is stored.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Product { contents: Contents::Pieces(pieces), .. } => pieces.iter().map(Bytes::len).sum(),
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

/// What a product of a train takes besides its bytes.
const CAR_BYTES: usize = 256;
