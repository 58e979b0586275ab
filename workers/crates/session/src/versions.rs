use crate::patterns::Trains;

/// The version of the session that every release speaks.
pub const VERSION: u16 = 1;

/// Small products travel in trains, receipts in groups.
pub const VERSION_TRAINS: u16 = 2;

/// Heartbeats take the way of products, and the site says when they came out at its end.
pub const VERSION_HEARTBEATS: u16 = 3;

/// A site changes its credential while its session goes on.
pub const VERSION_CREDENTIALS: u16 = 4;

/// A hub may be several nodes, and tells a site which of them serves which of its feeds.
pub const VERSION_NODES: u16 = 5;

/// What an LDM said of a product travels in trains as well.
pub const VERSION_LDM_STAMPS: u16 = 6;

/// The versions this release speaks, best first.
pub const VERSIONS: [u16; 6] =
    [VERSION_LDM_STAMPS, VERSION_NODES, VERSION_CREDENTIALS, VERSION_HEARTBEATS, VERSION_TRAINS, VERSION];

/// How a site of this version takes small products.
pub(crate) fn trains(version: u16) -> Trains {
    match version {
        VERSION_LDM_STAMPS.. => Trains::Stamped,
        VERSION_TRAINS.. => Trains::Plain,
        _ => Trains::None,
    }
}
