/// The version of the session that every release speaks.
pub const VERSION: u16 = 1;

/// Small products travel in trains, receipts in groups.
pub const VERSION_TRAINS: u16 = 2;

/// Heartbeats take the way of products, and the site says when they came out at its end.
pub const VERSION_HEARTBEATS: u16 = 3;

/// The versions this release speaks, best first.
pub const VERSIONS: [u16; 3] = [VERSION_HEARTBEATS, VERSION_TRAINS, VERSION];
