use std::time::Duration;

use serde::Deserialize;

/// The bounds of a download.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Limits {
    /// The most bytes of a product.
    pub bytes: u64,
    /// The longest time of one attempt, seconds.
    pub seconds: u64,
    /// The most redirects that are followed.
    pub redirects: u32,
    /// The hosts that may be asked, beside that of the announcement; empty: any.
    pub hosts: Vec<String>,
    /// Hosts in private networks may be asked.
    pub private: bool,
    /// The most attempts.
    pub attempts: u32,
}

impl Limits {
    /// The longest time of one attempt.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// # Errors
    /// A bound is beyond the node's own; the begin of a sentence.
    pub fn check(&self) -> Result<(), String> {
        let bounds = [
            ("bytes", self.bytes, MOST_BYTES),
            ("seconds", self.seconds, MOST_SECONDS),
            ("redirects", self.redirects.into(), MOST_REDIRECTS),
            ("attempts", self.attempts.into(), MOST_ATTEMPTS),
            ("hosts", self.hosts.len() as u64, MOST_HOSTS),
        ];
        match bounds.into_iter().find(|(_, value, most)| value > most) {
            Some((name, value, most)) => Err(format!("`{name}` of a download is {value}, beyond {most}")),
            None => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 4 << 30, seconds: 300, redirects: 5, hosts: Vec::new(), private: false, attempts: 5 }
    }
}

const MOST_BYTES: u64 = 1 << 50;
const MOST_SECONDS: u64 = 86_400;
const MOST_REDIRECTS: u64 = 20;
const MOST_ATTEMPTS: u64 = 20;
const MOST_HOSTS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_a_line_leaves_out_have_their_usual_values() {
        let limits: Limits = serde_json::from_str(r#"{"bytes": 7}"#).unwrap();
        assert_eq!(limits, Limits { bytes: 7, ..Limits::default() });
        assert_eq!(limits.check(), Ok(()));
        assert_eq!(limits.time(), Duration::from_secs(300));
    }

    #[test]
    fn limits_beyond_the_nodes_own_are_named() {
        let beyond = Limits { redirects: 21, ..Limits::default() };
        assert_eq!(beyond.check(), Err("`redirects` of a download is 21, beyond 20".to_owned()));
        assert!(Limits { hosts: vec![String::new(); 1_001], ..Limits::default() }.check().is_err());
    }
}
