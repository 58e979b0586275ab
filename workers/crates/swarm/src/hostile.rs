//! Hostile sites, for tests: they are enrolled, and their frames decode but make no sense. The sessions of a site
//! are consecutive; the sites run concurrently.
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use downburst_hostile::{Dice, Ending, Liar, Opening, Scene, Story, first_frame};
use downburst_model::{Epoch, FeedName, Sequence};
use downburst_node::tls;
use downburst_session::{RefusalCode, Refused};
use rustls::pki_types::ServerName;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::identity::Identity;
use crate::statistics::wall_us;

/// A run of hostile sessions.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) hub: String,
    pub(crate) seed: u64,
    /// Numbers of the seed's sessions to play.
    pub(crate) numbers: Range<u64>,
    pub(crate) feeds: Vec<KnownFeed>,
}

/// A feed that hostile sites know although the hub does not name it to them.
#[derive(Clone, Debug)]
pub(crate) struct KnownFeed(FeedName, Epoch, Sequence);

/// Results of the sessions so far.
#[derive(Debug, Default)]
struct Counts {
    next: AtomicU64,
    sessions: AtomicU64,
    /// Sessions in which the hub welcomed the site.
    let_in: AtomicU64,
    /// Sessions that the hub ended because of their messages.
    violations: AtomicU64,
    /// Failed attempts to connect.
    failed: AtomicU64,
    frames: AtomicU64,
    bytes: AtomicU64,
    /// The hub's refusals by their sentences, without the numbers in them.
    refusals: Mutex<BTreeMap<String, u64>>,
}

#[derive(Debug, Serialize)]
struct Line {
    at_us: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    summary: bool,
    seed: u64,
    sessions: u64,
    sessions_per_s: f64,
    let_in: u64,
    violations: u64,
    failed: u64,
    frames: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refusals: BTreeMap<String, u64>,
}

impl Attack {
    /// Plays all sessions; prints a line per interval `every`, and a summary.
    pub(crate) async fn run(self, identities: Vec<Identity>, every: Duration) -> Result<(), String> {
        let counts = Arc::new(Counts { next: AtomicU64::new(self.numbers.start), ..Counts::default() });
        let (attack, began) = (Arc::new(self), Instant::now());
        let mut sites = tokio::task::JoinSet::new();
        for identity in &identities {
            let site = Hostile::new(Arc::clone(&attack), identity, Arc::clone(&counts))?;
            sites.spawn(site.run());
        }
        let mut lines = tokio::time::interval(every);
        loop {
            tokio::select! {
                _ = lines.tick() => crate::say(&counts.line(&attack, began, false)),
                ended = sites.join_next() => match ended {
                    Some(Err(error)) => return Err(format!("a hostile site failed: {error}")),
                    Some(Ok(())) => {}
                    None => break,
                }
            }
        }
        crate::say(&counts.line(&attack, began, true));
        Ok(())
    }
}

impl FromStr for KnownFeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.rsplitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let (head, epoch) = (number(), number());
        let feed = parts.next().and_then(|name| FeedName::parse(name).ok());
        match (feed, epoch, head) {
            (Some(feed), Some(epoch), Some(head)) => Ok(Self(feed, Epoch(epoch), Sequence(head))),
            _ => Err(format!("{text:?} is no NAME:EPOCH:HEAD")),
        }
    }
}

impl Counts {
    fn add(count: &AtomicU64, more: usize) {
        count.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn refused(&self, refused: &Refused) {
        let without_numbers: String =
            refused.sentence.chars().filter(|c| !c.is_ascii_digit()).take(90).collect();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < REFUSALS_KEPT || refusals.contains_key(&without_numbers) {
            *refusals.entry(without_numbers).or_default() += 1;
        }
    }

    fn line(&self, attack: &Attack, began: Instant, summary: bool) -> Line {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        Line {
            at_us: wall_us(),
            summary,
            seed: attack.seed,
            sessions: of(&self.sessions),
            sessions_per_s: of(&self.sessions) as f64 / began.elapsed().as_secs_f64().max(0.001),
            let_in: of(&self.let_in),
            violations: of(&self.violations),
            failed: of(&self.failed),
            frames: of(&self.frames),
            bytes: of(&self.bytes),
            refusals: if summary { refusals.clone() } else { BTreeMap::new() },
        }
    }
}

/// One hostile site.
struct Hostile {
    attack: Arc<Attack>,
    counts: Arc<Counts>,
    ca_sha256: String,
    scene: Scene,
}

/// The hub's answer to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Welcome,
    Refused(RefusalCode),
    Nothing,
}

impl Hostile {
    fn new(attack: Arc<Attack>, identity: &Identity, counts: Arc<Counts>) -> Result<Self, String> {
        let (site, secret) = identity
            .enrolled()
            .ok_or("a hostile site must be enrolled first: give a file that --enrolled-file wrote")?;
        let spare = format!("{secret} anew");
        let spare_sha256 = tls::sha256_hex(spare.as_bytes());
        let mut scene = Scene::new(site, secret, (spare, spare_sha256));
        for KnownFeed(feed, epoch, head) in attack.feeds.clone() {
            scene.learn(feed, epoch, head);
        }
        Ok(Self { attack, counts, ca_sha256: identity.ca_sha256.clone(), scene })
    }

    async fn run(mut self) {
        loop {
            let number = self.counts.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.attack.numbers.end {
                return;
            }
            self.play(number).await;
            Counts::add(&self.counts.sessions, 1);
        }
    }

    /// Plays one session. Retries while the hub is busy, as the site's previous session may not have ended there yet.
    async fn play(&mut self, number: u64) {
        for _ in 0..ATTEMPTS {
            let Ok(stream) = self.dial().await else {
                Counts::add(&self.counts.failed, 1);
                tokio::time::sleep(BETWEEN_ATTEMPTS).await;
                continue;
            };
            let mut line = Connection { stream, inbound: BytesMut::new(), heard: Heard::Nothing };
            self.scene.now_us = wall_us();
            self.talk(Story::new(self.attack.seed, number), &mut line).await;
            match line.heard {
                Heard::Refused(RefusalCode::Busy | RefusalCode::Unavailable) => {
                    tokio::time::sleep(BETWEEN_ATTEMPTS).await;
                }
                Heard::Refused(RefusalCode::Credential) if self.scene.spare_is_kept => {
                    let (spare, _) = self.scene.spare.clone();
                    self.scene.secret = std::mem::replace(&mut self.scene.spare.0, spare);
                    return;
                }
                _ => return,
            }
        }
    }

    async fn dial(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = downburst_node::site::connect(&self.attack.hub).await.map_err(|(error, _)| error)?;
        let config = tls::site_config(&self.ca_sha256).map_err(io::Error::other)?;
        let name = ServerName::try_from(tls::HUB_NAME).map_err(io::Error::other)?;
        timeout(PATIENCE, TlsConnector::from(config).connect(name, stream)).await?
    }

    async fn talk(&mut self, mut story: Story, line: &mut Connection) {
        for frame in self.opening(&mut story) {
            self.say(line, &frame).await;
        }
        if story.opening == Opening::Hello {
            line.hear(&mut self.scene, &self.counts, PATIENCE, true).await;
            if line.heard != Heard::Welcome {
                return;
            }
            Counts::add(&self.counts.let_in, 1);
        }
        for number in 1..=story.frames {
            let frame = self.frame(&mut story);
            let goes_on = self.say(line, &frame).await && (!story.doubles || self.say(line, &frame).await);
            if !goes_on {
                break;
            }
            if story.reads_each > 0 && number % story.reads_each == 0 {
                line.hear(&mut self.scene, &self.counts, A_MOMENT, false).await;
            }
        }
        self.end(&mut story, line).await;
    }

    fn opening(&self, story: &mut Story) -> Vec<Vec<u8>> {
        let (temper, mut dice) = (story.temper, story.dice.clone());
        let hello = |dice: &mut Dice| first_frame(dice, temper, &self.scene);
        let other = |dice: &mut Dice, kind| {
            let mut liar = Liar::new(dice.clone(), temper, &self.scene);
            let frame = liar.frame_of(kind);
            *dice = liar.dice().clone();
            frame
        };
        let frames = match story.opening {
            Opening::Hello => vec![hello(&mut dice)],
            Opening::Stranger => vec![other(&mut dice, HELLO)],
            Opening::Early => vec![self.frame(story), hello(&mut dice)],
            Opening::Twice => vec![hello(&mut dice), hello(&mut dice)],
            Opening::Attach => vec![other(&mut dice, ATTACH)],
        };
        story.dice = dice;
        frames
    }

    fn frame(&self, story: &mut Story) -> Vec<u8> {
        let mut liar = Liar::new(story.dice.clone(), story.temper, &self.scene);
        let frame = liar.frame();
        story.dice = liar.dice().clone();
        frame
    }

    async fn say(&self, line: &mut Connection, frame: &[u8]) -> bool {
        Counts::add(&self.counts.frames, 1);
        Counts::add(&self.counts.bytes, frame.len());
        matches!(timeout(PATIENCE, line.stream.write_all(frame)).await, Ok(Ok(())))
    }

    async fn end(&mut self, story: &mut Story, line: &mut Connection) {
        if story.ending == Ending::Cut {
            let frame = self.frame(story);
            let half = frame.get(..frame.len() / 2).unwrap_or_default();
            self.say(line, half).await;
        }
        let _ = timeout(PATIENCE, line.stream.flush()).await;
        if story.lingers_ms > 0 {
            let long = Duration::from_millis(story.lingers_ms);
            line.hear(&mut self.scene, &self.counts, long, false).await;
        }
        if story.ending == Ending::Orderly {
            let _ = timeout(PATIENCE, line.stream.shutdown()).await;
            line.hear(&mut self.scene, &self.counts, PATIENCE, false).await;
        }
        if line.heard == Heard::Refused(RefusalCode::Protocol) {
            Counts::add(&self.counts.violations, 1);
        }
    }
}

struct Connection {
    stream: TlsStream<TcpStream>,
    inbound: BytesMut,
    heard: Heard,
}

impl Connection {
    /// Reads until the hub hangs up or `long` has passed; with `greets`, at most until the subscriptions arrive.
    async fn hear(&mut self, scene: &mut Scene, counts: &Counts, long: Duration, greets: bool) {
        let until = tokio::time::Instant::now() + long;
        loop {
            while let Some((kind, body)) = self.next_frame() {
                scene.hear(kind, &body);
                self.note(kind, &body, counts);
                if greets && kind == SUBSCRIPTIONS {
                    return;
                }
            }
            self.inbound.reserve(READ_BYTES);
            match tokio::time::timeout_at(until, self.stream.read_buf(&mut self.inbound)).await {
                Ok(Ok(count)) if count > 0 => {}
                _ => return,
            }
        }
    }

    fn note(&mut self, kind: u8, body: &[u8], counts: &Counts) {
        match kind {
            WELCOME => self.heard = Heard::Welcome,
            REFUSED => {
                if let Some(refused) = Scene::refused(body) {
                    counts.refused(&refused);
                    self.heard = Heard::Refused(refused.code);
                }
            }
            _ => {}
        }
    }

    fn next_frame(&mut self) -> Option<(u8, BytesMut)> {
        let mut head = self.inbound.get(..HEADER_BYTES)?;
        let (kind, length) = (head.get_u8(), head.get_u32() as usize);
        if self.inbound.len() < HEADER_BYTES.saturating_add(length) {
            return None;
        }
        self.inbound.advance(HEADER_BYTES);
        Some((kind, self.inbound.split_to(length)))
    }
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const SUBSCRIPTIONS: u8 = 4;
const ATTACH: u8 = 43;
const HEADER_BYTES: usize = 5;
const READ_BYTES: usize = 16 << 10;

/// Longer than any delay of a hub on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_millis(2);
const ATTEMPTS: usize = 200;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);
const REFUSALS_KEPT: usize = 100;
