//! Heartbeats: products that a hub itself makes, to distinguish a quiet feed from a broken path.
//!
//! They take the same path as any product, to the last stage before consumers, and end there: code that delivers
//! products to a consumer, counts them or forwards them to another hub checks [`ProductId::is_heartbeat`] first.
use crate::{NameError, ProductId, WallMicros};

impl ProductId {
    /// The identifier of a heartbeat made at this time.
    pub fn heartbeat(at: WallMicros) -> Result<Self, NameError> {
        Self::parse(&format!("{HEARTBEAT_PREFIX}{}", at.0))
    }

    /// True for the hub's own heartbeats; no source may use such an identifier.
    pub fn is_heartbeat(&self) -> bool {
        is_heartbeat(self.as_str())
    }
}

/// True if the text is the identifier of a heartbeat.
pub fn is_heartbeat(id: &str) -> bool {
    id.starts_with(HEARTBEAT_PREFIX)
}

/// The prefix of heartbeats' identifiers. It contains no character with a meaning in a pattern.
pub const HEARTBEAT_PREFIX: &str = "downburst:heartbeat:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    #[test]
    fn heartbeats_are_known_by_their_beginning() {
        let id = ProductId::heartbeat(WallMicros(17)).unwrap();
        assert_eq!(id.as_str(), "downburst:heartbeat:17");
        assert!(id.is_heartbeat());
        for other in ["downburst:heartbeats", "x downburst:heartbeat:17", "SAUS80 KWBC"] {
            assert!(!ProductId::parse(other).unwrap().is_heartbeat(), "{other}");
        }
    }

    #[test]
    fn the_prefix_is_a_pattern_of_itself() {
        let pattern = Pattern::parse(&format!("^{HEARTBEAT_PREFIX}")).unwrap();
        assert!(pattern.matches("downburst:heartbeat:17") && !pattern.matches("downburst heartbeat 17"));
    }
}
