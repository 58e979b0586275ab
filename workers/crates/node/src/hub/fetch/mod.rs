//! Fetches products that another system has announced, and hands them to their feeds.
mod download;
mod resolver;
mod spool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use downburst_fetch::{Attempts, Failed, Fetched};
use downburst_hub::feeds::{DescribedIngest, FetchAnswer, FetchLine};
use downburst_model::FeedName;
use tokio::sync::{Semaphore, oneshot};

use crate::hub::feeds::feed_writer::{Done, Spooled, Write};
use crate::hub::feeds::{random_u64, unknown_feed};
use crate::hub::{Hub, lock};
use crate::lines::Failure;
use crate::tls::hex;
use download::{Download, Downloads};

/// The downloads of a hub's node.
pub(super) struct Fetching {
    downloads: Downloads,
    /// By host, the places for its downloads.
    hosts: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    all: Semaphore,
    spool: PathBuf,
}

impl Fetching {
    /// Removes the files of downloads that an earlier run did not finish.
    pub(super) fn new(data_dir: &Path, authorities: Option<PathBuf>) -> Self {
        let spool = data_dir.join("fetched");
        let _ = std::fs::remove_dir_all(&spool);
        let downloads = Downloads::new(authorities);
        Self { downloads, hosts: Mutex::default(), all: Semaphore::new(AT_ONCE), spool }
    }

    /// Fetches a product and hands it to its feed.
    pub(super) async fn fetch(&self, hub: &Hub, line: FetchLine) -> Result<FetchAnswer, Failure> {
        let feed = FeedName::parse(&line.feed).ok().and_then(|name| hub.feeds.find(&name));
        let feed = feed.ok_or_else(|| unknown_feed(&line.feed))?;
        let expected = line.expected()?;
        let most_bytes = line.limits.bytes.min(feed.largest_bytes());
        let path = self.spool_file()?;
        let ingest = line.ingest(path.clone());
        let DescribedIngest { id, origin, digest, properties } = ingest.described(&hub.start.origin)?;
        let (limits, credentials) = (&line.limits, line.credentials.as_ref());
        let download = Download { url: &line.url, expected, most_bytes, limits, credentials, path: &path };
        let (fetched, bytes) = self.attempts(&download).await?;
        let (done, stored) = oneshot::channel();
        feed.write(Write {
            bytes,
            id,
            origin,
            created: ingest.created_us,
            digest,
            ldm: None,
            properties,
            done: Done::Told(done),
        });
        let written =
            stored.await.map_err(|_| Failure::new("io", "the log is being closed; fetch it again"))??;
        Ok(FetchAnswer { written, sha512: hex(&fetched.sha512) })
    }

    async fn attempts(&self, download: &Download<'_>) -> Result<(Fetched, Spooled), Failure> {
        let host = download.host()?;
        let of_host = self.of_host(&host);
        let mut attempts = Attempts::new(download.limits.attempts);
        loop {
            let failed = {
                let _of_all = self.all.acquire().await;
                let _of_host = of_host.acquire().await;
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

    fn spool_file(&self) -> Result<PathBuf, Failure> {
        std::fs::create_dir_all(&self.spool).map_err(|error| Failure::not_writable(&self.spool, &error))?;
        let number = random_u64().map_err(|error| Failure::new("io", error))?;
        Ok(self.spool.join(format!("{number:016x}")))
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
const MOST_HOSTS: usize = 1_000;
