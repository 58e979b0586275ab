//! One attempt at a download.
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use downburst_fetch::{
    Credentials, Expected, Failed, Hop, Limits, Login, Server, Verifier, may_connect, next_hop,
};
use reqwest::header::{ACCEPT_ENCODING, LOCATION, RETRY_AFTER};
use reqwest::{Certificate, Client, RequestBuilder, Response, Url, redirect};

use super::resolver::Resolver;
use super::spool::Spool;
use crate::hub::feeds::feed_writer::Spooled;
use crate::lines::Failure;

/// A product to fetch.
pub(super) struct Download<'a> {
    pub(super) url: &'a str,
    pub(super) expected: Expected,
    pub(super) most_bytes: u64,
    pub(super) limits: &'a Limits,
    pub(super) credentials: Option<&'a Credentials>,
    /// The file for the bytes of a large product.
    pub(super) path: &'a Path,
}

/// The clients of all downloads, which keep connections. A hub that fetches nothing makes none: each reads the host's
/// certificates.
#[derive(Default)]
pub(super) struct Downloads {
    public: OnceLock<Result<Client, String>>,
    private: OnceLock<Result<Client, String>>,
    /// A file of certificates: authorities besides those of the host.
    authorities: Option<PathBuf>,
}

impl Download<'_> {
    /// The host of the announced address.
    pub(super) fn host(&self) -> Result<String, Failure> {
        let host = Url::parse(self.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        host.ok_or_else(|| Failure::bad_request("the address of the product can't be read"))
    }
}

impl Downloads {
    pub(super) fn new(authorities: Option<PathBuf>) -> Self {
        Self { authorities, ..Self::default() }
    }

    pub(super) async fn attempt(&self, download: &Download<'_>) -> Result<Spooled, Failed> {
        match tokio::time::timeout(download.limits.time(), self.fetch(download)).await {
            Ok(found) => found,
            Err(_) => {
                let seconds = download.limits.seconds;
                Err(Failed::ForNow(format!("the download took longer than {seconds} s"), None))
            }
        }
    }

    async fn fetch(&self, download: &Download<'_>) -> Result<Spooled, Failed> {
        let allows_private = download.limits.private;
        let client = if allows_private { &self.private } else { &self.public };
        let client = client
            .get_or_init(|| client_of(allows_private, self.authorities.as_deref()))
            .as_ref()
            .map_err(|error| Failed::ForGood(error.clone()))?;
        let response = answer(client, download).await?;
        let pause = retry_after(&response);
        if let Some(failed) = Failed::of_status(response.status().as_u16(), pause) {
            return Err(failed);
        }
        stored(response, download).await
    }
}

/// The answer behind all redirects.
async fn answer(client: &Client, download: &Download<'_>) -> Result<Response, Failed> {
    let mut url =
        Url::parse(download.url).map_err(|error| Failed::ForGood(format!("its address: {error}")))?;
    let announced = url.clone();
    let mut before: Option<Url> = None;
    for redirects in 0.. {
        check(before.as_ref(), &url, redirects, download.limits).map_err(Failed::ForGood)?;
        // Bytes that a server packs for the way are not those that were announced.
        let request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        let response = logged_in(request, &announced, &url, download)
            .send()
            .await
            .map_err(|error| Failed::ForNow(sentence(&error), None))?;
        let next = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
        let Some(next) = next else { return Ok(response) };
        let next = next.to_str().ok().and_then(|next| url.join(next).ok());
        let next = next.ok_or_else(|| Failed::ForGood("the server redirects to no address".to_owned()))?;
        before = Some(std::mem::replace(&mut url, next));
    }
    Err(Failed::ForGood("the server redirects without end".to_owned()))
}

/// The request with the login that this server is to get.
fn logged_in(request: RequestBuilder, announced: &Url, url: &Url, download: &Download<'_>) -> RequestBuilder {
    let (announced, next) = (server(announced), server(url));
    let found = download.credentials.and_then(|it| it.for_server(announced, next, download.limits.private));
    match found {
        Some(Login::Basic(user, password)) => request.basic_auth(user, Some(password)),
        Some(Login::Bearer(token)) => request.bearer_auth(token),
        None => request,
    }
}

fn server(url: &Url) -> Server<'_> {
    let port = url.port_or_known_default().unwrap_or_default();
    Server { scheme: url.scheme(), host: url.host_str().unwrap_or_default(), port }
}

fn check(before: Option<&Url>, next: &Url, redirects: usize, limits: &Limits) -> Result<(), String> {
    next_hop(before.map(hop), hop(next), redirects, limits)?;
    let host = next.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    if literal.is_ok_and(|address| !may_connect(address, limits.private)) {
        return Err(format!("{host} is in a private network, which this source may not ask"));
    }
    Ok(())
}

fn hop(url: &Url) -> Hop<'_> {
    Hop { scheme: url.scheme(), host: url.host_str().unwrap_or_default() }
}

/// Spools the bytes while they are checked.
async fn stored(mut response: Response, download: &Download<'_>) -> Result<Spooled, Failed> {
    let mut verifier = Verifier::new(download.expected.clone(), download.most_bytes);
    let mut spool = Spool::new(download.path.to_owned());
    loop {
        let chunk = response.chunk().await.map_err(|error| Failed::ForNow(sentence(&error), None))?;
        let Some(chunk) = chunk else { break };
        verifier.take(&chunk).map_err(Failed::Differs)?;
        spool.take(&chunk).await.map_err(|error| disk(&error))?;
    }
    // A file that is replaced while it is fetched is whole at the next attempt.
    verifier.finish().map_err(Failed::Differs)?;
    spool.finish().await.map_err(|error| disk(&error))
}

fn disk(error: &std::io::Error) -> Failed {
    Failed::ForNow(format!("the product can't be written to the hub's disk: {error}"), None)
}

/// The deepest cause: the outer ones name the address, which the reader knows.
fn sentence(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn client_of(allows_private: bool, authorities: Option<&Path>) -> Result<Client, String> {
    // A provider that is installed already is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .tls_certs_merge(authorities.map_or_else(|| Ok(Vec::new()), certificates)?)
        .redirect(redirect::Policy::none())
        .dns_resolver(Arc::new(Resolver { allows_private }))
        .connect_timeout(CONNECT_TIME)
        .read_timeout(IDLE_TIME)
        .no_proxy()
        .user_agent(concat!("downburst/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("this node can't fetch: {}", sentence(&error)))
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let sentence = |error: String| format!("the authorities in {} can't be read: {error}", file.display());
    let pem = std::fs::read(file).map_err(|error| sentence(error.to_string()))?;
    Certificate::from_pem_bundle(&pem).map_err(|error| sentence(self::sentence(&error)))
}

const CONNECT_TIME: Duration = Duration::from_secs(10);
const IDLE_TIME: Duration = Duration::from_secs(30);
