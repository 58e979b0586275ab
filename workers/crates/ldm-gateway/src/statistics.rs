//! rtstats: latencies of products at this hub, sent to a collector of LDM statistics as lines of eleven fields.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use downburst_ldm6::{
    FeedType, Ident, LdmOrigin, ProductClass, ProductInfo, ProductSpec, Pusher, PusherConfig, PusherInput,
    PusherOutput, Signature, Timestamp, Want,
};
use downburst_model::{Machine as _, WallMicros, moment};
use md5::{Digest as _, Md5};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use super::config::RtstatsLine;
use super::hub::Hub;
use super::{address, lock};

/// The counts, and the collector that receives them.
#[derive(Default)]
pub(super) struct Statistics {
    is_on: AtomicBool,
    bins: Mutex<BTreeMap<Key, Bin>>,
    told: Mutex<Option<(RtstatsLine, watch::Sender<bool>)>>,
}

/// Products of one feed type, origin and hour of creation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    feed: FeedType,
    origin: String,
    hour: i64,
}

#[derive(Debug, Default)]
struct Bin {
    created: WallMicros,
    stored: WallMicros,
    products: u64,
    bytes: u64,
    sum_s: f64,
    max_s: f64,
    slowest: WallMicros,
    is_news: bool,
}

impl Statistics {
    /// Sends reports to this collector from now on; `None` ends them.
    pub(super) fn tell(self: &Arc<Self>, hub: &Arc<dyn Hub>, wanted: Option<RtstatsLine>) {
        let mut told = lock(&self.told);
        if told.as_ref().map(|(line, _)| line) == wanted.as_ref() {
            return;
        }
        self.is_on.store(wanted.is_some(), Ordering::Relaxed);
        if let Some((_, stop)) = told.take() {
            stop.send_replace(true);
        }
        *told = wanted.map(|line| {
            let (stop, stopped) = watch::channel(false);
            tokio::spawn(report(Arc::clone(self), Arc::clone(hub), line.clone(), stopped));
            (line, stop)
        });
    }

    /// Counts a stored product.
    pub(super) fn count(&self, feed: FeedType, info: &downburst_model::ProductInfo) {
        if !self.is_on.load(Ordering::Relaxed) || feed.is_none() {
            return;
        }
        // Products with a creation time in the future would displace those of today.
        if info.created.0.saturating_sub(info.stored.0) > HOUR_US {
            return;
        }
        let hour = info.created.0.div_euclid(HOUR_US);
        let key = Key { feed, origin: info.origin.as_str().to_owned(), hour };
        let mut bins = lock(&self.bins);
        if bins.len() >= MOST_BINS && !bins.contains_key(&key) {
            make_room(&mut bins, feed);
        }
        bins.entry(key).or_default().add(info);
    }

    /// Lines for the bins that changed since the last call, each with its identifier.
    fn news(&self, host: &str) -> Vec<(String, String)> {
        let mut bins = lock(&self.bins);
        let told = |(key, bin): (&Key, &mut Bin)| {
            std::mem::take(&mut bin.is_news).then(|| (key.ident(host), bin.line(key, host)))
        };
        bins.iter_mut().filter_map(told).collect()
    }
}

/// Drops the oldest bin: of the feed type that needs the room if it exceeds its share, so that a sender with invented
/// origins displaces its own bins; of all types otherwise.
fn make_room(bins: &mut BTreeMap<Key, Bin>, feed: FeedType) {
    let begin = Key { feed, origin: String::new(), hour: i64::MIN };
    let own = || bins.range(&begin..).map(|(key, _)| key).take_while(|key| key.feed == feed);
    let oldest = if own().nth(SHARE_OF_BINS).is_some() {
        own().min_by_key(|key| key.hour).cloned()
    } else {
        bins.keys().min_by_key(|key| key.hour).cloned()
    };
    oldest.and_then(|oldest| bins.remove(&oldest));
}

impl Key {
    fn ident(&self, host: &str) -> String {
        format!("rtstats-{VERSION}/{host}/{}/{}", self.feed, self.origin)
    }
}

impl Bin {
    fn add(&mut self, info: &downburst_model::ProductInfo) {
        let late_s = (info.stored.0 - info.created.0) as f64 / 1e6;
        if self.products == 0 || late_s > self.max_s {
            (self.max_s, self.slowest) = (late_s, info.created);
        }
        if self.products == 0 || info.created >= self.created {
            (self.created, self.stored) = (info.created, info.stored);
        }
        self.products += 1;
        self.bytes += info.size;
        self.sum_s += late_s;
        self.is_news = true;
    }

    /// The line in the columns that collectors expect.
    fn line(&self, key: &Key, host: &str) -> String {
        let second = |at: WallMicros| moment::creation_time(at).chars().take(14).collect::<String>();
        let newest_s = (self.stored.0 - self.created.0) as f64 / 1e6;
        let mean_s = self.sum_s / self.products.max(1) as f64;
        let slowest: String = second(self.slowest).chars().skip(10).collect();
        let mut line = format!(
            "{} {} {host:>32} {:>7}",
            second(self.created),
            second(self.stored),
            key.feed.to_string()
        );
        let _ = writeln!(
            line,
            " {:>32} {:>12} {:>12} {} {mean_s:>10.2} {:>4.0}@{slowest} {VERSION:>20}",
            key.origin,
            self.products,
            self.bytes,
            digits(newest_s),
            self.max_s
        );
        line
    }
}

/// A number with up to eight significant digits, at most six of them decimals, and no trailing zeros.
fn digits(value: f64) -> String {
    let before = value.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{value:.*}", 8_usize.saturating_sub(before).min(6));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

async fn report(
    statistics: Arc<Statistics>,
    hub: Arc<dyn Hub>,
    line: RtstatsLine,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        // A random delay keeps hosts that were started together from reporting simultaneously.
        let spread = getrandom::u32().map_or(0.0, |number| f64::from(number) / f64::from(u32::MAX));
        let wait_s = f64::from(line.every_seconds) * (1.0 + spread / 2.0);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs_f64(wait_s)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let news = statistics.news(hub.origin());
        if news.is_empty() {
            continue;
        }
        let (count, collector) = (news.len(), &line.collector);
        match tokio::time::timeout(PUSH_WITHIN, push(&*hub, collector, news)).await {
            Ok(Ok(())) => tracing::info!(collector, count, "rtstats lines were pushed"),
            Ok(Err(reason)) => {
                tracing::warn!(collector, count, reason, "HIYA: rtstats lines were not pushed")
            }
            Err(_) => tracing::warn!(collector, count, "HIYA: the collector was too slow for rtstats lines"),
        }
    }
}

async fn push(hub: &dyn Hub, collector: &str, lines: Vec<(String, String)>) -> Result<(), String> {
    let mut stream = address::connect(collector).await.map_err(|error| error.to_string())?;
    let specs = vec![ProductSpec::new(exp(), "^rtstats").map_err(|error| error.to_string())?];
    let class = ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs };
    let config = PusherConfig { class, first_xid: 1 };
    let mut machine = Pusher::new(hub.clock().now(), config).map_err(|error| error.to_string())?;
    let mut lines = lines.into_iter();
    let mut text = Bytes::new();
    let mut buffer = vec![0; 4_096];
    loop {
        while let Some(output) = machine.poll(hub.clock().now()) {
            let now = hub.clock().now();
            match output {
                PusherOutput::Send(bytes) => {
                    stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
                }
                PusherOutput::Want(Want::Product) => match lines.next() {
                    Some((ident, line)) => {
                        text = Bytes::from(line);
                        machine.handle(now, PusherInput::Product(described(hub, ident, &text)));
                    }
                    None => machine.handle(now, PusherInput::Finish),
                },
                PusherOutput::Want(Want::Bytes(_)) => {
                    machine.handle(now, PusherInput::Bytes(std::mem::take(&mut text)));
                }
                PusherOutput::Taken(_) => {}
                PusherOutput::Ended(downburst_ldm6::Ending::Done) => return Ok(()),
                PusherOutput::Ended(why) => return Err(why.to_string()),
            }
        }
        let length = stream.read(&mut buffer).await.map_err(|error| error.to_string())?;
        let came = buffer.get(..length).unwrap_or_default();
        let input = match length {
            0 => PusherInput::Disconnected,
            _ => PusherInput::Received(Bytes::copy_from_slice(came)),
        };
        machine.handle(hub.clock().now(), input);
    }
}

fn described(hub: &dyn Hub, mut ident: String, text: &Bytes) -> ProductInfo {
    ident.truncate(255);
    let origin: String = hub.origin().chars().filter(char::is_ascii).take(64).collect();
    ProductInfo {
        arrival: hub.clock().wall().into(),
        signature: Signature(Md5::digest(text).into()),
        origin: LdmOrigin::new(origin).unwrap_or_default(),
        feed: exp(),
        sequence: 0,
        ident: Ident::new(ident).unwrap_or_default(),
        size: u32::try_from(text.len()).unwrap_or_default(),
    }
}

/// The feed type of rtstats lines.
fn exp() -> FeedType {
    "EXP".parse().unwrap_or(FeedType::NONE)
}

const VERSION: &str = concat!("downburst-", env!("CARGO_PKG_VERSION"));
const HOUR_US: i64 = 3_600_000_000;

/// Bins (feed types times origins times hours); the oldest hours are dropped first.
const MOST_BINS: usize = 10_000;
const SHARE_OF_BINS: usize = 2_000;
const PUSH_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_of_recorded_ones() {
        let key = Key {
            feed: "NEXRAD2".parse().unwrap(),
            origin: "rpga1-kfws.nexrad.noaa.gov_v_140.172.24.16".to_owned(),
            hour: 0,
        };
        let at = |text: &str| moment::parse(text).unwrap();
        let bin = Bin {
            created: at("2016-09-29T12:52:47.500Z"),
            stored: WallMicros(at("2016-09-29T12:52:47.500Z").0 + 596_241),
            products: 187,
            bytes: 22_151_151,
            sum_s: 187.0 * 1.16,
            max_s: 11.2,
            slowest: at("2016-09-29T12:00:22Z"),
            is_news: true,
        };
        let recorded = "20160929125247 20160929125248              ingest1.local.irads NEXRAD2 \
            rpga1-kfws.nexrad.noaa.gov_v_140.172.24.16          187     22151151 0.596241       1.16   11@0022";
        let line = bin.line(&key, "ingest1.local.irads");
        assert_eq!(line, format!("{recorded} {VERSION:>20}\n"));
        assert_eq!(line.split_whitespace().count(), 11);
    }

    #[test]
    fn a_feed_type_with_made_up_origins_pushes_out_its_own() {
        let key = |feed: &str, origin: usize, hour: i64| Key {
            feed: feed.parse().unwrap(),
            origin: format!("host{origin}"),
            hour,
        };
        let mut bins: BTreeMap<Key, Bin> = BTreeMap::new();
        bins.insert(key("IDS", 0, 1), Bin::default());
        bins.extend((0..3_000).map(|origin| (key("NGRID", origin, 5), Bin::default())));
        make_room(&mut bins, "NGRID".parse().unwrap());
        assert_eq!((bins.len(), bins.contains_key(&key("IDS", 0, 1))), (3_000, true));
        make_room(&mut bins, "HDS".parse().unwrap());
        assert_eq!((bins.len(), bins.contains_key(&key("IDS", 0, 1))), (2_999, false), "the oldest hour");
    }

    #[test]
    fn numbers_have_eight_digits_that_count() {
        for (value, text) in
            [(1.05564, "1.05564"), (0.31152, "0.31152"), (12_345.678_91, "12345.679"), (2.0, "2")]
        {
            assert_eq!(digits(value), text);
        }
        assert_eq!(digits(-0.25), "-0.25", "clocks differ");
    }
}
