/// The version of the session protocol in this release.
pub const VERSION: u16 = 1;

/// The versions that this release supports, best first.
pub const VERSIONS: [u16; 1] = [VERSION];
