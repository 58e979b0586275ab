/// The version of the session that every release speaks.
pub const VERSION: u16 = 1;

/// Small products travel in trains, receipts in groups.
pub const VERSION_TRAINS: u16 = 2;

/// The versions this release speaks, best first.
pub const VERSIONS: [u16; 2] = [VERSION_TRAINS, VERSION];
