//! One site: drives the machine of a site's connection with a socket, as `downburst-node receive` does.
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant as Monotonic};

use bytes::{Buf as _, BytesMut};
use downburst_model::{Machine as _, Micros, Now, ProductInfo, WallMicros};
use downburst_node::tls;
use downburst_session::{LegJoin, Reception, RefusalCode, SiteEvent, StoreResult, StreamId, Train, VERSIONS};
use downburst_site::{
    Connection, Contents, CredentialsAnswer, CredentialsOrder, Ended, Input, LegNews, Linked, NoLink, Output,
    PlaceOrder, Recovered, Role, Settings, StoreItem, StoreRequest, Stored, StoredItem, StoredWhat,
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
    machine: Connection,
    stream: HubStream,
    products: Products,
    arrivals: Arrivals,
    statistics: Arc<Statistics>,
    enrolled: Arc<Enrolled>,
    started: Monotonic,
    is_up: bool,
    given_up: bool,
    insider: Option<Ipv4Addr>,
    hears: UnboundedSender<Input>,
    heard: UnboundedReceiver<Input>,
}

/// Behaviour of a site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Reassemble products and check their digests.
    pub(crate) receive: bool,
    /// Acknowledge products without any output of them.
    pub(crate) swallows: bool,
    /// Forge datagrams on the interface with this address.
    pub(crate) insider: Option<Ipv4Addr>,
}

/// The connection to the hub.
#[derive(Default)]
struct HubStream {
    dialling: Option<Dial>,
    link: Option<(Reader, Writer)>,
    inbound: BytesMut,
    out: BytesMut,
    unflushed: bool,
}

/// Times of arrivals.
struct Arrivals {
    /// Products that the hub stored before this time do not count in latencies and gaps.
    since: WallMicros,
    last: WallMicros,
}

enum Moved {
    Dialled(Result<(), Ended>),
    Read,
    Sent,
    Failed,
}

type Reader = ReadHalf<TlsStream<TcpStream>>;
type Writer = WriteHalf<TlsStream<TcpStream>>;
type Dial = Pin<Box<dyn Future<Output = Result<(Reader, Writer), Ended>> + Send>>;

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
        let settings = Settings {
            address: hub.clone(),
            software: format!("downburst-swarm {} ({number})", env!("CARGO_PKG_VERSION")),
            versions: VERSIONS.to_vec(),
            one_node: false,
            only: None,
            decides: true,
            // Heartbeats are output as files, which a site here does not have; it claims them only if it swallows.
            has_files: manner.swallows,
            // Bytes are processed as they arrive.
            memory_limit_bytes: 0,
        };
        let recovered = Recovered::default();
        Self {
            hub,
            machine: Connection::new(settings, identity.credentials(), recovered, Vec::new(), Role::Serve),
            identity,
            stream: HubStream::default(),
            products: Products::new(manner.receive),
            arrivals: Arrivals { since: WallMicros(0), last: WallMicros(0) },
            statistics,
            enrolled,
            started: Monotonic::now(),
            is_up: false,
            given_up: false,
            insider: manner.insider,
            hears,
            heard,
        }
    }

    /// Runs until the hub refuses the site permanently.
    pub(crate) async fn run(mut self) {
        loop {
            self.perform();
            if self.given_up {
                return;
            }
            let now = self.now().monotonic;
            let due = self.machine.deadline().map(|due| Duration::from_micros(due.since(now).0));
            tokio::select! {
                moved = self.stream.moved() => self.moved(moved),
                Some(heard) = self.heard.recv() => self.tell(heard),
                () = tokio::time::sleep(due.unwrap_or(LONGEST_SLEEP)) => {}
            }
        }
    }

    fn moved(&mut self, moved: Moved) {
        match moved {
            Moved::Dialled(Ok(())) => self.tell(Input::Dialled(Ok(Linked { resume_at: Vec::new() }))),
            Moved::Dialled(Err(ended)) => {
                self.statistics.failed();
                self.tell(Input::Dialled(Err(NoLink { sentence: String::new(), ended })));
            }
            Moved::Read => {
                let bytes = self.stream.inbound.split().freeze();
                self.tell(Input::Bytes { stream: StreamId::FIRST, bytes });
            }
            Moved::Sent => {}
            Moved::Failed => {
                self.statistics.failed();
                self.tell(Input::Closed("the connection is over".to_owned()));
            }
        }
    }

    fn tell(&mut self, input: Input) {
        self.machine.handle(self.now(), input);
    }

    fn now(&self) -> Now {
        let elapsed = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { monotonic: Micros(elapsed), wall: WallMicros(wall_us()) }
    }

    fn perform(&mut self) {
        while let Some(output) = self.machine.poll(self.now()) {
            match output {
                Output::Dial => {
                    let ca_sha256 = self.machine.credentials().ca_sha256().to_owned();
                    self.stream.dialling = Some(Box::pin(dial(self.hub.clone(), ca_sha256)));
                }
                Output::HangUp => self.hang_up(),
                Output::Write { bytes, .. } => self.stream.out.extend_from_slice(&bytes),
                Output::Place(order) => self.carry_out(order),
                Output::Store(request) => self.store(request),
                Output::JoinGroup(join) => self.join(&join),
                Output::Event(event) => self.event(event),
                Output::OpenStream { stream, .. } => {
                    let reason = "a swarm opens no data connections".to_owned();
                    self.tell(Input::StreamClosed { stream, reason });
                }
                Output::Credentials(order) => self.keep(&order),
                Output::Farewell
                | Output::Over(_)
                | Output::CloseStream(_)
                | Output::LeaveGroup(_)
                | Output::LegKey(..)
                | Output::Ask { .. }
                | Output::Checkpoint(_)
                | Output::Guard(_)
                | Output::Reached { .. }
                | Output::Show(_)
                | Output::Relay(_)
                | Output::News(_) => {}
            }
        }
    }

    fn hang_up(&mut self) {
        if std::mem::take(&mut self.is_up) {
            self.statistics.disconnected();
        }
        self.stream = HubStream::default();
        let random = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
        self.tell(Input::HungUp { random });
    }

    /// Answers an order about credentials. A swarm records only the first accepted credential.
    fn keep(&mut self, order: &CredentialsOrder) {
        let answer = match order {
            CredentialsOrder::Keep(credentials) => {
                let accepted = credentials.site().is_some_and(|site| self.identity.accepted(site.clone()));
                if accepted {
                    self.enrolled.note(&self.identity);
                }
                CredentialsAnswer::Kept(Ok(()))
            }
            CredentialsOrder::Read => CredentialsAnswer::Read(None),
            CredentialsOrder::TakeTurn | CredentialsOrder::EndTurn => return,
        };
        self.tell(Input::Credentials(answer));
    }

    fn carry_out(&mut self, order: PlaceOrder) {
        match order {
            PlaceOrder::Begin(place, info) => {
                self.begins(&info);
                self.products.begin(place);
            }
            PlaceOrder::Write { place, offset, bytes } => {
                self.arrived(WallMicros(i64::MIN));
                self.products.block(place, offset, &bytes);
            }
            PlaceOrder::Drop(place) => self.products.abandon(place),
        }
    }

    fn store(&mut self, request: StoreRequest) {
        let StoreRequest { id, items } = request;
        let items = items.into_iter().map(|item| self.store_item(item)).collect();
        self.tell(Input::Stored(Stored { id, items }));
    }

    fn store_item(&mut self, item: StoreItem) -> StoredItem {
        let what = match item {
            StoreItem::Product { info, contents, .. } => {
                let result = match &contents {
                    Contents::Place(place) => self.products.complete(*place, &info),
                    Contents::Pieces(pieces) => self.products.check(&info, &pieces.whole()),
                };
                self.counted(&info, &result);
                StoredWhat::Product(info, result)
            }
            StoreItem::Train { train, .. } => self.store_train(train),
        };
        StoredItem { what, at: WallMicros(wall_us()), log_sequence: None }
    }

    fn store_train(&mut self, train: Arc<Train>) -> StoredWhat {
        let mut results = Vec::with_capacity(train.cars.len());
        for car in &train.cars {
            let info = train.info(car);
            self.begins(&info);
            let result = self.products.check(&info, &car.bytes);
            self.counted(&info, &result);
            results.push(result);
        }
        StoredWhat::Train(train, results)
    }

    fn counted(&self, info: &ProductInfo, result: &StoreResult) {
        if info.id.is_heartbeat() {
            return;
        }
        if *result == StoreResult::Stored {
            let latency = u64::try_from(wall_us().saturating_sub(info.stored.0)).unwrap_or(0);
            self.statistics.product(info.size, (info.stored >= self.arrivals.since).then_some(latency));
        } else {
            self.statistics.bad();
        }
    }

    fn begins(&mut self, info: &ProductInfo) {
        if info.stored >= self.arrivals.since {
            self.arrived(info.stored);
        }
    }

    /// Records the arrival of data of a product that was in the hub's log since `stored`.
    fn arrived(&mut self, stored: WallMicros) {
        let now = WallMicros(wall_us());
        let waited_from = self.arrivals.last.max(stored);
        self.statistics.gap(u64::try_from(now.0.saturating_sub(waited_from.0)).unwrap_or(0));
        self.arrivals.last = now;
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
                Input::Leg(leg, LegNews::Joined(reception))
            }
            Err(reason) => Input::Leg(leg, LegNews::NotJoined(reason)),
        });
    }

    fn event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Welcome { .. } => {
                self.is_up = true;
                self.arrivals = Arrivals { since: WallMicros(wall_us()), last: WallMicros(wall_us()) };
                self.statistics.connected();
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

impl HubStream {
    /// Waits for progress of the connection, without end if there is none. Cancelling the wait loses nothing.
    async fn moved(&mut self) -> Moved {
        if let Some(dialling) = &mut self.dialling {
            let dialled = dialling.await;
            self.dialling = None;
            return Moved::Dialled(dialled.map(|link| self.link = Some(link)));
        }
        let Some((reader, writer)) = &mut self.link else { return std::future::pending().await };
        let idle = self.out.is_empty() && !self.unflushed;
        self.inbound.reserve(IN_BYTES);
        tokio::select! {
            read = reader.read_buf(&mut self.inbound) => match read {
                Ok(count) if count > 0 => Moved::Read,
                _ => Moved::Failed,
            },
            sent = send(writer, &self.out), if !idle => match sent {
                Ok(count) => {
                    self.unflushed = count > 0;
                    self.out.advance(count);
                    Moved::Sent
                }
                Err(_) => Moved::Failed,
            },
        }
    }
}

async fn dial(hub: String, ca_sha256: String) -> Result<(Reader, Writer), Ended> {
    let stream = downburst_node::site::connect(&hub).await.map_err(|(_, ended)| ended)?;
    shake_hands(stream, &ca_sha256).await.map(split).map_err(|_| Ended::Answered)
}

async fn shake_hands(stream: TcpStream, ca_sha256: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let config = tls::site_config(ca_sha256).map_err(std::io::Error::other)?;
    let name = ServerName::try_from(tls::HUB_NAME).map_err(std::io::Error::other)?;
    tokio::time::timeout(PATIENCE, TlsConnector::from(config).connect(name, stream)).await?
}

/// Writes the output, or flushes it once all is written; 0 means flushed.
async fn send(writer: &mut Writer, out: &BytesMut) -> std::io::Result<usize> {
    if out.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    writer.write(out).await
}

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);
const IN_BYTES: usize = 16 << 10;
