//! Topics of WIS2: `CHANNEL/a/wis2/CENTRE/data/POLICY/…` (wmo-im/wis2-topic-hierarchy).

/// The levels of the topic by which a product came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) centre: String,
    /// Recommended data, which never become core data.
    pub(crate) is_recommended: bool,
}

impl Topic {
    /// Reads a topic of data or metadata.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let levels: Vec<&str> = text.split('/').collect();
        let [channel, "a", "wis2", centre, rest @ ..] = &levels[..] else { return None };
        if !matches!(*channel, "origin" | "cache") || !levels.iter().all(|level| is_level(level)) {
            return None;
        }
        let is_recommended = match rest {
            ["metadata"] => false,
            ["data", policy @ ("core" | "recommended"), _, ..] => *policy == "recommended",
            _ => return None,
        };
        Some(Self { centre: (*centre).to_owned(), is_recommended })
    }
}

pub(crate) fn is_level(level: &str) -> bool {
    let mut bytes = level.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

const LONGEST: usize = 500;
