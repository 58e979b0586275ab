/// The version of the session that this release speaks.
pub const VERSION: u16 = 1;

/// The versions that this release speaks, best first.
pub const VERSIONS: [u16; 1] = [VERSION];
