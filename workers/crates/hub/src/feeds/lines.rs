//! The agent's lines about feeds and their products.
use std::path::PathBuf;

use downburst_model::{Class, Epoch, FeedName, LegId, Sequence, WallMicros};
use downburst_session::Duplicates;
use serde::Deserialize;

/// A feed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FeedLine {
    /// Its name.
    pub feed: FeedName,
    /// Its priority.
    pub class: Class,
    /// The age up to which bytes are kept.
    pub retention_hours: f64,
    /// The number of bytes that are kept.
    pub retention_bytes: u64,
    /// The failure that acknowledged products survive.
    pub durability: DurabilityWord,
    /// The rule by which two products are duplicates.
    pub duplicate_rule: DuplicateWord,
    /// The largest product.
    pub max_product_bytes: u64,
    /// The leg under which unicast deliveries are counted while no plan names one.
    pub unicast_leg: LegId,
    /// Sequences that its log is known to have assigned, one for each of its epochs that the agent remembers.
    #[serde(default)]
    pub at_least: Vec<Given>,
    /// LDM feed types of its products, as an expression; absent: LDMs neither send nor get them.
    #[serde(default)]
    pub ldm_feed_type: Option<String>,
    /// A pattern for the identifiers of these products.
    #[serde(default)]
    pub ldm_pattern: Option<String>,
    /// Products that can't be at a site this many milliseconds after they were stored are dropped and counted;
    /// absent: an ordinary feed.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
}

impl FeedLine {
    /// The highest sequence that the log of `epoch` is known to have assigned.
    pub fn given(&self, epoch: Epoch) -> Option<Sequence> {
        let epoch = epoch.0.to_string();
        self.at_least.iter().filter(|given| given.epoch == epoch).map(|given| given.sequence).max()
    }

    /// The deadline, in microseconds from the stored stamp; `None`: an ordinary feed.
    pub fn deadline_us(&self) -> Option<u64> {
        self.deadline_ms.map(|millis| millis.saturating_mul(1_000))
    }

    /// Products that were stored before this time are not kept.
    pub fn kept_since(&self, now: WallMicros) -> WallMicros {
        // The cast saturates: absurdly many hours mean forever.
        WallMicros(now.0.saturating_sub((self.retention_hours * 3_600e6) as i64))
    }
}

/// See [`FeedLine::at_least`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Given {
    /// The epoch, as decimal text.
    pub epoch: String,
    /// The sequence.
    pub sequence: Sequence,
}

/// The failure that acknowledged products survive, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityWord {
    /// The end of the process.
    Process,
    /// The loss of power.
    Power,
}

/// The rule by which two products are duplicates, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuplicateWord {
    /// Equal bytes.
    Content,
    /// Equal bytes after the WMO starting line.
    ContentWithoutWmoStart,
    /// Equal identifiers.
    Id,
    /// Equal identifiers and bytes.
    IdAndContent,
    /// Equal signatures of LDM.
    Signature,
    /// No product is a duplicate.
    None,
}

/// Signatures stay at the hub. Sites of several hubs compare the attributes that they have.
impl From<DuplicateWord> for Duplicates {
    fn from(word: DuplicateWord) -> Self {
        match word {
            DuplicateWord::Content => Self::Content,
            DuplicateWord::ContentWithoutWmoStart => Self::ContentWithoutWmoStart,
            DuplicateWord::Id => Self::Id,
            DuplicateWord::IdAndContent | DuplicateWord::Signature => Self::IdAndContent,
            DuplicateWord::None => Self::None,
        }
    }
}

/// A complete product in a spool file.
#[derive(Debug, Deserialize)]
pub struct IngestLine {
    /// The spool file.
    pub path: PathBuf,
    /// The feed, checked against the known ones.
    pub feed: String,
    /// The product's id, checked here.
    pub product_id: String,
    /// The first ingester's stamp; the moment of ingest if absent.
    pub created_us: Option<WallMicros>,
    /// The first ingester; the hub's own name if absent.
    pub origin: Option<String>,
    /// BLAKE3-256 in hex, if the source knows it.
    pub digest: Option<String>,
    /// The statements of the source about it: a document of at most 8 KiB, which is stored with the product.
    pub properties: Option<String>,
    /// Unlink the spool file once the product is stored.
    #[serde(default)]
    pub remove: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(hours: f64) -> FeedLine {
        serde_json::from_value(serde_json::json!({
            "feed": "NGRID", "class": "grid", "retention_hours": hours, "retention_bytes": 9,
            "durability": "power", "duplicate_rule": "signature", "max_product_bytes": 9, "unicast_leg": 1,
            "at_least": [{"epoch": "5", "sequence": 7}, {"epoch": "5", "sequence": 9}, {"epoch": "6", "sequence": 1}],
        }))
        .unwrap()
    }

    #[test]
    fn each_life_of_a_log_has_its_own_numbers() {
        let given = [5, 6, 7].map(|epoch| line(1.0).given(Epoch(epoch)));
        assert_eq!(given, [Some(Sequence(9)), Some(Sequence(1)), None]);
    }

    #[test]
    fn products_are_kept_for_hours_or_forever() {
        let now = WallMicros(10_000_000_000);
        assert_eq!(line(2.0).kept_since(now), WallMicros(2_800_000_000));
        assert_eq!(line(1e300).kept_since(now).0, now.0 - i64::MAX);
    }

    #[test]
    fn sites_compare_what_they_have() {
        assert_eq!(Duplicates::from(line(1.0).duplicate_rule), Duplicates::IdAndContent);
        assert_eq!(
            Duplicates::from(DuplicateWord::ContentWithoutWmoStart),
            Duplicates::ContentWithoutWmoStart
        );
        let same = [DuplicateWord::Content, DuplicateWord::Id, DuplicateWord::None].map(Duplicates::from);
        assert_eq!(same, [Duplicates::Content, Duplicates::Id, Duplicates::None]);
    }
}
