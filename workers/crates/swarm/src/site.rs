//! One site: drives the site's half of the session over connections to the hub, as `downburst-node receive` does.
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant as Monotonic};

use bytes::{Buf as _, BytesMut};
use downburst_model::{Machine as _, Micros, Now, ProductInfo, WallMicros};
use downburst_node::reconnect::{self, Ended, Reconnect};
use downburst_node::tls;
use downburst_session::{
    LegJoin, Reception, RefusalCode, SiteEvent, SiteInput, SiteOutput, SiteSession, SiteState, StoreResult,
    StreamId, Train,
};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::identity::{Enrolled, Identity};
use crate::insider;
use crate::products::Products;
use crate::statistics::{Statistics, wall_us};

/// A site without a log.
pub(crate) struct Site {
    hub: String,
    identity: Identity,
    machine: SiteSession,
    products: Products,
    statistics: Arc<Statistics>,
    enrolled: Arc<Enrolled>,
    started: Monotonic,
    reconnect: Reconnect,
    welcomed: Option<Monotonic>,
    out: BytesMut,
    flushed: bool,
    is_up: bool,
    /// Nothing that the hub stored before counts in latencies and gaps.
    since: WallMicros,
    last_arrival: WallMicros,
    hang_up: bool,
    given_up: bool,
    insider: Option<Ipv4Addr>,
    swallows: bool,
    hears: UnboundedSender<SiteInput>,
    heard: UnboundedReceiver<SiteInput>,
}

/// How a site goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Products are put together and their digests checked.
    pub(crate) receive: bool,
    /// What is acknowledged comes out nowhere.
    pub(crate) swallows: bool,
    /// Forge datagrams on the interface with this address.
    pub(crate) insider: Option<Ipv4Addr>,
}

type Reader = ReadHalf<TlsStream<TcpStream>>;
type Writer = WriteHalf<TlsStream<TcpStream>>;

impl Site {
    pub(crate) fn new(
        hub: String,
        identity: Identity,
        manner: Manner,
        number: usize,
        statistics: Arc<Statistics>,
        enrolled: Arc<Enrolled>,
    ) -> Self {
        let (hears, heard) = unbounded_channel();
        let software = format!("downburst-swarm {} ({number})", env!("CARGO_PKG_VERSION"));
        Self {
            hub,
            identity,
            machine: SiteSession::new(software, SiteState::default()),
            products: Products::new(manner.receive),
            statistics,
            enrolled,
            started: Monotonic::now(),
            reconnect: Reconnect::default(),
            welcomed: None,
            out: BytesMut::new(),
            flushed: true,
            is_up: false,
            since: WallMicros(0),
            last_arrival: WallMicros(0),
            hang_up: false,
            given_up: false,
            insider: manner.insider,
            swallows: manner.swallows,
            hears,
            heard,
        }
    }

    /// Works for ever, or until the hub refuses the site for good.
    pub(crate) async fn run(mut self) {
        while !self.given_up {
            let ended = match self.dial().await {
                Ok((reader, writer)) => {
                    self.session(reader, writer).await;
                    self.welcomed.take().map_or(Ended::Answered, |since| Ended::Session(since.elapsed()))
                }
                Err(ended) => {
                    self.statistics.failed();
                    ended
                }
            };
            tokio::time::sleep(self.reconnect.pause(ended, reconnect::random())).await;
        }
    }

    async fn dial(&self) -> Result<(Reader, Writer), Ended> {
        let stream = downburst_node::site::connect(&self.hub).await.map_err(|(_, ended)| ended)?;
        self.shake_hands(stream).await.map(split).map_err(|_| Ended::Answered)
    }

    async fn shake_hands(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = tls::site_config(&self.identity.ca_sha256).map_err(std::io::Error::other)?;
        let name = ServerName::try_from(tls::HUB_NAME).map_err(std::io::Error::other)?;
        tokio::time::timeout(PATIENCE, TlsConnector::from(config).connect(name, stream)).await?
    }

    async fn session(&mut self, mut reader: Reader, mut writer: Writer) {
        self.tell(SiteInput::Connected(self.identity.proof()));
        let mut inbound = BytesMut::new();
        loop {
            self.perform();
            if self.hang_up {
                break;
            }
            inbound.reserve(IN_BYTES);
            let due = self
                .machine
                .deadline()
                .map_or(LONGEST_SLEEP, |due| Duration::from_micros(due.since(self.now().monotonic).0));
            let idle = self.out.is_empty() && self.flushed;
            tokio::select! {
                read = reader.read_buf(&mut inbound) => match read {
                    Ok(count) if count > 0 => {
                        let bytes = inbound.split().freeze();
                        self.tell(SiteInput::Bytes { stream: StreamId::FIRST, bytes });
                    }
                    _ => self.fail(),
                },
                sent = send(&mut writer, &self.out), if !idle => match sent {
                    Ok(count) => {
                        self.flushed = count == 0;
                        self.out.advance(count);
                    }
                    Err(_) => self.fail(),
                },
                Some(heard) = self.heard.recv() => self.tell(heard),
                () = tokio::time::sleep(due) => {}
            }
        }
        self.end();
    }

    fn fail(&mut self) {
        self.statistics.failed();
        self.hang_up = true;
    }

    fn end(&mut self) {
        self.tell(SiteInput::Disconnected);
        self.perform();
        if std::mem::take(&mut self.is_up) {
            self.statistics.disconnected();
        }
        self.products.clear();
        self.out.clear();
        self.flushed = true;
        self.hang_up = false;
    }

    fn tell(&mut self, input: SiteInput) {
        self.machine.handle(self.now(), input);
    }

    fn now(&self) -> Now {
        let elapsed = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { monotonic: Micros(elapsed), wall: WallMicros(wall_us()) }
    }

    fn perform(&mut self) {
        while let Some(output) = self.machine.poll(self.now()) {
            match output {
                SiteOutput::Write { bytes, .. } => self.out.extend_from_slice(&bytes),
                SiteOutput::Begin(info) => self.begin(&info),
                SiteOutput::Block { key, offset, bytes } => {
                    self.arrived(WallMicros(i64::MIN));
                    self.products.block(&key, offset, &bytes);
                }
                SiteOutput::Complete { info, .. } => self.complete(info),
                SiteOutput::Train { train, .. } => self.take_train(train),
                SiteOutput::Abandon(key) => self.products.abandon(&key),
                SiteOutput::JoinGroup(join) => self.join(&join),
                SiteOutput::Event(event) => self.event(event),
                SiteOutput::Close => self.hang_up = true,
                SiteOutput::OpenStream(stream) => {
                    let reason = "a swarm opens no data connections".to_owned();
                    self.tell(SiteInput::StreamClosed { stream, reason });
                }
                SiteOutput::CloseStream(_)
                | SiteOutput::LeaveGroup(_)
                | SiteOutput::Ask { .. }
                | SiteOutput::Checkpoint(_) => {}
            }
        }
    }

    fn join(&mut self, join: &LegJoin) {
        let leg = join.leg;
        let begun =
            self.insider.take().ok_or("a swarm hears no multicast".to_owned()).and_then(|interface| {
                insider::begin(join, interface, Arc::clone(&self.statistics), self.hears.clone())
                    .map_err(|error| error.to_string())
            });
        self.tell(match begun {
            Ok(()) => {
                let reception = Reception { buffer_bytes: 0, path: "insider".to_owned(), advice: None };
                SiteInput::GroupJoined { leg, reception }
            }
            Err(reason) => SiteInput::JoinFailed { leg, reason },
        });
    }

    fn begin(&mut self, info: &ProductInfo) {
        if info.stored >= self.since {
            self.arrived(info.stored);
        }
        self.products.begin(info);
    }

    /// Something came of a product that stood in the hub's log since `stored`.
    fn arrived(&mut self, stored: WallMicros) {
        let now = WallMicros(wall_us());
        let waited_from = self.last_arrival.max(stored);
        self.statistics.gap(u64::try_from(now.0.saturating_sub(waited_from.0)).unwrap_or(0));
        self.last_arrival = now;
    }

    fn complete(&mut self, info: ProductInfo) {
        let result = self.finished(&info);
        let at = WallMicros(wall_us());
        let out = info.id.is_heartbeat() && result == StoreResult::Stored && !self.swallows;
        self.tell(SiteInput::Settled { key: info.key.clone(), result, at });
        if out {
            self.tell(SiteInput::HeartbeatOut { key: info.key, at });
        }
    }

    fn finished(&mut self, info: &ProductInfo) -> StoreResult {
        let result = self.products.complete(info);
        let at = WallMicros(wall_us());
        if info.id.is_heartbeat() {
            return result;
        }
        if result == StoreResult::Stored {
            let latency = u64::try_from(at.0.saturating_sub(info.stored.0)).unwrap_or(0);
            self.statistics.product(info.size, (info.stored >= self.since).then_some(latency));
        } else {
            self.statistics.bad();
        }
        result
    }

    fn take_train(&mut self, train: Arc<Train>) {
        let results = train.cars.iter().map(|car| self.take_car(&train.info(car), &car.bytes)).collect();
        let at = WallMicros(wall_us());
        self.tell(SiteInput::TrainSettled { train, results, at });
    }

    fn take_car(&mut self, info: &ProductInfo, bytes: &[u8]) -> StoreResult {
        self.begin(info);
        self.products.block(&info.key, 0, bytes);
        self.finished(info)
    }

    fn event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Welcome { site, .. } => {
                self.is_up = true;
                self.welcomed = Some(Monotonic::now());
                (self.since, self.last_arrival) = (WallMicros(wall_us()), WallMicros(wall_us()));
                self.statistics.connected();
                if self.identity.accepted(site) {
                    self.enrolled.note(&self.identity);
                }
            }
            SiteEvent::Refused(refused) => {
                self.statistics.refused();
                self.given_up = !matches!(refused.code, RefusalCode::Busy | RefusalCode::Unavailable);
                if self.given_up {
                    eprintln!("downburst-swarm: a site was refused for good: {}", refused.sentence);
                }
            }
            SiteEvent::Violation(sentence) => {
                eprintln!("downburst-swarm: the hub broke the protocol: {sentence}")
            }
            SiteEvent::Dead => self.statistics.failed(),
            _ => {}
        }
    }
}

/// Writes what there is, and flushes what was written; 0 means flushed.
async fn send(writer: &mut Writer, out: &BytesMut) -> std::io::Result<usize> {
    if out.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    writer.write(out).await
}

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);
const IN_BYTES: usize = 16 << 10;
