//! Open requests to the agent about tokens and replacement credentials.
use std::collections::BTreeMap;

use downburst_session::{RefusalCode, Refused};

/// The open requests, each with the sender of its answer.
#[derive(Debug)]
pub struct AgentAsks<S> {
    last: u64,
    open: BTreeMap<u64, S>,
}

impl<S> AgentAsks<S> {
    /// Opens a request; returns its number. Requests whose answer is no longer awaited are forgotten.
    ///
    /// # Errors
    ///
    /// The refusal, if too many are open.
    pub fn open(&mut self, sender: S, is_awaited: impl Fn(&S) -> bool) -> Result<u64, Refused> {
        self.open.retain(|_, sender| is_awaited(sender));
        if self.open.len() >= ASKS_LIMIT {
            let sentence = "too many tokens are being checked; connect again in a moment".to_owned();
            return Err(Refused { code: RefusalCode::Unavailable, sentence });
        }
        self.last += 1;
        self.open.insert(self.last, sender);
        Ok(self.last)
    }

    /// Closes a request that was answered; returns the sender of its answer.
    pub fn close(&mut self, ask: u64) -> Option<S> {
        self.open.remove(&ask)
    }
}

impl<S> Default for AgentAsks<S> {
    fn default() -> Self {
        Self { last: 0, open: BTreeMap::new() }
    }
}

/// Anybody can present a token; the agent has other work.
const ASKS_LIMIT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_once() {
        let mut asks = AgentAsks::default();
        assert_eq!(asks.open("first", |_| true).ok(), Some(1));
        assert_eq!(asks.open("second", |_| true).ok(), Some(2));
        assert_eq!([asks.close(1), asks.close(1), asks.close(7)], [Some("first"), None, None]);
        assert_eq!(asks.open("third", |_| true).ok(), Some(3), "no number is used again");
        assert_eq!(asks.close(2), Some("second"));
    }

    #[test]
    fn a_flood_of_tokens_is_refused_until_somebody_leaves() {
        let mut asks = AgentAsks::default();
        assert!((0..ASKS_LIMIT).all(|number| asks.open(number, |_| true).is_ok()));
        let refused = asks.open(0, |_| true).err().map(|refused| refused.code);
        assert_eq!(refused, Some(RefusalCode::Unavailable));
        assert!(asks.open(0, |number| *number != 5).is_ok(), "one connection ended meanwhile");
        assert_eq!(asks.open.len(), ASKS_LIMIT);
    }
}
