//! Fetches products that another system has announced, and hands them to their feeds.
mod download;
mod resolver;
mod spool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use downburst_fetch::{Attempts, Failed, Limits};
use downburst_hub::feeds::{DescribedIngest, FetchAnswer, FetchEnd, FetchLine, WantedLine, Written};
use downburst_model::FeedName;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::hub::feeds::feed_writer::{Done, Spooled, Write};
use crate::hub::feeds::{Feed, random_u64, unknown_feed};
use crate::hub::{Hub, lock};
use crate::lines::{Failure, check_wanted};
use download::{Download, Downloads};

/// The downloads of a hub's node.
pub(super) struct Fetching {
    downloads: Downloads,
    /// By host, the places for its downloads.
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    all: Semaphore,
    spool: PathBuf,
    /// The number of names given to files in it.
    spooled: AtomicU64,
}

/// Fetches the products of a job side by side, and answers it in as many lines as it takes: none waits for a slow host
/// of another one, and those that end together share a line.
pub(super) async fn fetch(hub: Arc<Hub>, id: u64, line: FetchLine) {
    let lines = hub.lines.clone();
    let feed = FeedName::parse(&line.feed).ok().and_then(|name| hub.feeds.find(&name));
    let Some(feed) = feed else { return lines.answer(id, Err(unknown_feed(&line.feed))) };
    let limits = Arc::new(line.limits);
    let mut downloads = JoinSet::new();
    for (place, wanted) in line.products.into_iter().enumerate() {
        let (hub, feed, limits) = (Arc::clone(&hub), Arc::clone(&feed), Arc::clone(&limits));
        downloads.spawn(async move {
            let ended = hub.sources.fetching.fetch(&hub, &feed, &limits, &wanted).await;
            FetchEnd::of(place, ended)
        });
    }
    while let Some(first) = downloads.join_next().await {
        if !downloads.is_empty() {
            tokio::time::sleep(TOGETHER).await;
        }
        let others = std::iter::from_fn(|| downloads.try_join_next());
        // One that panicked has no end: the agent asks for it again.
        let ends = std::iter::once(first).chain(others).flatten().collect();
        lines.part(id, &FetchAnswer { more: !downloads.is_empty(), ends });
    }
}

impl Fetching {
    /// Removes the files of downloads that an earlier run did not finish.
    pub(super) fn new(data_dir: &Path, authorities: Option<PathBuf>) -> Self {
        let spool = data_dir.join("fetched");
        let _ = std::fs::remove_dir_all(&spool);
        let downloads = Downloads::new(authorities);
        let (hosts, all) = (Mutex::default(), Semaphore::new(AT_ONCE));
        Self { downloads, hosts, all, spool, spooled: AtomicU64::new(0) }
    }

    /// Fetches a product and hands it to its feed.
    async fn fetch(
        &self,
        hub: &Hub,
        feed: &Feed,
        limits: &Limits,
        wanted: &WantedLine,
    ) -> Result<Written, Failure> {
        check_wanted(wanted).map_err(Failure::bad_request)?;
        let DescribedIngest { id, origin, digest, properties } = wanted.described(&hub.start.origin)?;
        let path = self.spool_file();
        let download = Download {
            url: &wanted.url,
            expected: wanted.expected()?,
            most_bytes: limits.bytes.min(feed.largest_bytes()),
            limits,
            credentials: wanted.credentials.as_ref(),
            path: &path,
        };
        let bytes = self.attempts(&download).await?;
        let (created, ldm) = (wanted.created_us, None);
        let (done, stored) = oneshot::channel();
        feed.write(Write { bytes, id, origin, created, digest, ldm, properties, done: Done::Told(done) });
        stored.await.map_err(|_| Failure::new("io", "the log is being closed; fetch it again"))?
    }

    async fn attempts(&self, download: &Download<'_>) -> Result<Spooled, Failure> {
        let host = download.host()?;
        let of_host = self.of_host(&host);
        let mut attempts = Attempts::new(download.limits.attempts);
        loop {
            let failed = {
                // A slow host's downloads wait here, where they take no place of others.
                let _of_host = of_host.acquire().await;
                let _of_all = self.all.acquire().await;
                match self.downloads.attempt(download).await {
                    Ok(fetched) => return Ok(fetched),
                    Err(failed) => failed,
                }
            };
            match attempts.next(&failed, share()?) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(refusal(&failed)),
            }
        }
    }

    fn of_host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= MOST_HOSTS {
            hosts.retain(|_, places| Arc::strong_count(places) > 1);
        }
        Arc::clone(hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_OF_HOST))))
    }

    /// A name for a product that is too large for memory. Nothing is left in the directory of an earlier run.
    fn spool_file(&self) -> PathBuf {
        self.spool.join(self.spooled.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

fn refusal(failed: &Failed) -> Failure {
    let code = if matches!(failed, Failed::Differs(_)) { "digest-mismatch" } else { "not-fetched" };
    Failure::new(code, failed.sentence().to_owned())
}

/// A random number from 0 to 1.
fn share() -> Result<f64, Failure> {
    let number = random_u64().map_err(|error| Failure::new("io", error))?;
    Ok((number >> 11) as f64 / (1_u64 << 53) as f64)
}

/// The guide to WIS2 asks Global Caches to allow for at least five connections of a client.
const AT_ONCE_OF_HOST: usize = 5;
const AT_ONCE: usize = 64;
/// Ends wait this long for others: only the place of the download and the page wait for them.
const TOGETHER: Duration = Duration::from_millis(5);
const MOST_HOSTS: usize = 1_000;
