//! The price of a stream against one copy for each site.
use downburst_model::FeedName;

/// The price of a range for several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    /// Bytes of the range.
    pub(super) bytes: u64,
    /// Bytes of the range that the sites lack together.
    pub(super) lacked_bytes: u64,
    /// The sites.
    pub(super) sites: usize,
    /// The rate of the leg.
    pub(super) rate_bps: u64,
}

impl Price {
    /// The sentence of a stream that begins.
    pub(super) fn begun(&self, feed: &FeedName) -> String {
        let Self { bytes, lacked_bytes, sites, rate_bps } = *self;
        format!(
            "{sites} sites lack the same {} of feed {feed}: by one stream to all it takes about {} at {}, by a copy \
             for each site {} and about {} at the same rate",
            size(bytes),
            duration(bytes, rate_bps),
            rate(rate_bps),
            size(lacked_bytes),
            duration(lacked_bytes, rate_bps),
        )
    }
}

/// The sentence of a stream that ended.
pub(super) fn ended(
    feed: &FeedName,
    (sites, sent_bytes, saved_bytes): (usize, u64, u64),
    millis: u64,
) -> String {
    if sites == 0 {
        return format!(
            "the stream of feed {feed} reached none of its sites; they get their products by unicast"
        );
    }
    format!(
        "{sites} sites caught up on feed {feed} by one stream of {} in {:.1} s, {} less than a copy for each",
        size(sent_bytes),
        millis as f64 / 1_000.0,
        size(saved_bytes),
    )
}

fn size(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        return format!("{:.1} GB", bytes as f64 / 1e9);
    }
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn rate(bps: u64) -> String {
    format!("{:.1} Mb/s", bps as f64 / 1e6)
}

fn duration(bytes: u64, rate_bps: u64) -> String {
    let seconds = bytes as f64 * 8.0 / rate_bps.max(1) as f64;
    if seconds >= 120.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_have_both_prices_and_their_units() {
        let feed = FeedName::parse("NGRID").unwrap();
        let price = Price { bytes: 30_000_000, lacked_bytes: 120_000_000, sites: 4, rate_bps: 20_000_000 };
        assert_eq!(
            price.begun(&feed),
            "4 sites lack the same 30.0 MB of feed NGRID: by one stream to all it takes about 12.0 s at 20.0 Mb/s, by \
             a copy for each site 120.0 MB and about 48.0 s at the same rate"
        );
        let sentence = ended(&feed, (4, 1_500_000_000, 90_000_000), 12_340);
        assert_eq!(
            sentence,
            "4 sites caught up on feed NGRID by one stream of 1.5 GB in 12.3 s, 90.0 MB less than a copy for each"
        );
        assert!(ended(&feed, (0, 9, 0), 1).contains("reached none"));
        assert_eq!(
            (duration(15_000_000_000, 1_000_000_000), duration(1, 0)),
            ("2 min".to_owned(), "8.0 s".to_owned())
        );
    }
}
