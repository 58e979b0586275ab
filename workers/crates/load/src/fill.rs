//! A log that is full before its node starts.

use std::path::PathBuf;
use std::time::SystemTime;

use downburst_log::{Appended, DuplicateRule, FeedLog, LogOptions, NewProduct, ProductLog as _, Retention};
use downburst_model::{Class, FeedName, Origin, ProductId, WallMicros};
use serde_json::json;

use crate::Outcome;
use crate::content::Content;

/// The log, and the products to append to it.
#[derive(clap::Args)]
pub(crate) struct Fill {
    /// The feed's own directory of log files.
    #[arg(long)]
    log: PathBuf,
    /// The feed.
    #[arg(long)]
    feed: String,
    /// How many products.
    #[arg(long)]
    products: u64,
    /// Size of each.
    #[arg(long)]
    bytes: usize,
    /// Sign them, as a feed of LDM's does.
    #[arg(long)]
    signed: bool,
}

impl Fill {
    /// Appends them, and closes the log as a node does that ends.
    pub(crate) fn run(&self) -> Outcome {
        let usual = LogOptions::default();
        let duplicate_rule = if self.signed { DuplicateRule::Signature } else { usual.duplicate_rule };
        let options = LogOptions {
            duplicate_rule,
            retention: Retention { hours: 24.0, bytes: RETAINED_BYTES },
            ..usual
        };
        let seed = u64::from(std::process::id());
        let (log, _) = FeedLog::open(&self.log, FeedName::parse(&self.feed)?, options, seed)?;
        let (content, mut bytes) = (Content::new(), Vec::new());
        for number in 0..self.products {
            content.write(number, self.bytes, &mut bytes);
            let appended = log.append(product(number)?, &mut bytes.as_slice(), &now)?;
            if let Appended::Duplicate { of } = appended {
                return Err(
                    format!("the log has product {number} already, as {}: fill a log once", of.0).into()
                );
            }
        }
        log.close()?;
        let stored = json!({"products": self.products, "bytes": self.products * self.bytes as u64, "head": log.head()});
        println!("{stored}");
        Ok(())
    }
}

/// The wall clock in microseconds.
pub(crate) fn now() -> WallMicros {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    WallMicros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn product(number: u64) -> Outcome<NewProduct> {
    Ok(NewProduct {
        id: ProductId::parse(&format!("SAUS70 KWBC 231200 filled {number:09}"))?,
        origin: Origin::parse("load.example")?,
        created: now(),
        class: Class::Observation,
        source: None,
        hops: None,
        ldm: None,
        properties: None,
        expected_size: None,
        expected_digest: None,
    })
}

/// Nothing is evicted from a log that is measured.
const RETAINED_BYTES: u64 = 64 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use downburst_log::LogReader;
    use downburst_model::Sequence;

    #[test]
    fn a_filled_log_holds_what_was_asked_and_is_not_filled_twice() {
        let directory = tempfile::tempdir().unwrap();
        let fill = Fill {
            log: directory.path().join("F"),
            feed: "F".to_owned(),
            products: 20,
            bytes: 100,
            signed: false,
        };
        fill.run().unwrap();
        let entries: Vec<_> =
            LogReader::open(&fill.log).unwrap().entries(Sequence(0)).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 20);
        assert!(entries.iter().all(|entry| entry.info.size == 100));
        let again = fill.run().unwrap_err().to_string();
        assert!(again.contains("fill a log once"), "{again}");
    }
}
