//! One connection that an LDM made: what it asks for is read from the logs, what it pushes goes into them.
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use downburst_ldm6::{
    Ending, FeedType, Interest, ProductClass, Served, Taken, Upstream, UpstreamConfig, UpstreamEvent,
    UpstreamInput, UpstreamOutput, Version, Want,
};
use downburst_model::{Machine as _, Micros};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::border::From;
use super::door::Peer;
use super::intake::{Intake, Settled};
use super::readers::Readers;
use super::request::word;
use super::rules::Rules;
use crate::hub::{Hub, lock};
use crate::lines::Event;
use crate::tcp;
use downburst_hub::shown;

/// Speaks with a peer until either is done.
pub(super) async fn serve(hub: &Arc<Hub>, stream: TcpStream, peer: &Arc<Peer>) {
    prepare(&stream);
    let mut talk = Talk::new(hub, stream, peer);
    let mut end = peer.end.subscribe();
    while !talk.is_over {
        tokio::select! {
            done = talk.turn() => {
                if let Err(error) = done {
                    talk.over(&format!("the connection failed: {error}"));
                }
            }
            reason = end.wait_for(Option::is_some) => {
                let reason = reason.ok().and_then(|reason| *reason).unwrap_or_default();
                talk.over(reason);
            }
        }
    }
    talk.ended();
}

struct Talk {
    hub: Arc<Hub>,
    peer: Arc<Peer>,
    name: String,
    rules: Arc<Rules>,
    machine: Upstream,
    stream: TcpStream,
    buffer: BytesMut,
    /// To be sent, in order.
    out: VecDeque<Bytes>,
    out_bytes: usize,
    written: u64,
    /// The peer speaks version 5: what it says is acknowledged without the usual delay.
    is_prompt: bool,
    readers: Option<Readers>,
    /// What is left of the product that is being sent.
    current: Option<Bytes>,
    is_begun: bool,
    /// The peer waits for a product that is not there yet.
    is_wanting: bool,
    sent_at_question: u64,
    intake: Intake,
    looked_at: Micros,
    reason: String,
    is_over: bool,
}

impl Talk {
    fn new(hub: &Arc<Hub>, stream: TcpStream, peer: &Arc<Peer>) -> Self {
        let (name, rules, names) = (peer.name(), hub.ldm.door.rules(), lock(&peer.standing).names.clone());
        let config = UpstreamConfig {
            peer: names,
            access: Arc::clone(&rules.access),
            id: peer.id,
            max_hereis: u32::MAX,
            oldest: OLDEST,
            largest_bytes: u32::MAX,
            silence: SILENCE,
            first_xid: 1,
        };
        Self {
            machine: Upstream::new(hub.clock.now(), config),
            intake: Intake::new(hub, &name, FeedType::NONE, Arc::clone(&peer.taken)),
            hub: Arc::clone(hub),
            peer: Arc::clone(peer),
            name,
            rules,
            stream,
            buffer: BytesMut::new(),
            out: VecDeque::new(),
            out_bytes: 0,
            written: 0,
            is_prompt: false,
            readers: None,
            current: None,
            is_begun: false,
            is_wanting: false,
            sent_at_question: 0,
            looked_at: Micros(0),
            reason: String::new(),
            is_over: false,
        }
    }

    /// Sends what there is and waits for the next thing to happen.
    async fn turn(&mut self) -> io::Result<()> {
        self.flush().await?;
        while self.speak() {
            self.flush().await?;
            tokio::task::consume_budget().await;
        }
        self.flush().await?;
        self.account();
        if self.is_over { Ok(()) } else { self.wait().await }
    }

    /// Does what the machine asks for until there is enough to send (true) or nothing more to do.
    fn speak(&mut self) -> bool {
        while self.out_bytes < WRITE_BYTES {
            let Some(output) = self.machine.poll(self.hub.clock.now()) else { return false };
            match output {
                UpstreamOutput::Send(bytes) => {
                    self.out_bytes += bytes.len();
                    self.out.push_back(bytes);
                }
                UpstreamOutput::Want(Want::Product) => self.give_product(true),
                UpstreamOutput::Want(Want::Bytes(most)) => self.give_bytes(most),
                UpstreamOutput::Close => self.is_over = true,
                UpstreamOutput::Event(event) => self.happened(event),
            }
        }
        true
    }

    fn give_product(&mut self, is_asked: bool) {
        let next = self.readers.as_mut().and_then(|readers| readers.next(&self.hub));
        let now = self.hub.clock.now();
        match next {
            Some(next) => {
                (self.current, self.is_begun, self.is_wanting) = (Some(next.bytes), false, false);
                self.machine.handle(now, UpstreamInput::Product(next.info));
            }
            None => {
                self.is_wanting = true;
                if is_asked {
                    self.machine.handle(now, UpstreamInput::NoProduct);
                }
            }
        }
    }

    fn give_bytes(&mut self, most: u32) {
        let now = self.hub.clock.now();
        let Some(current) = self.current.as_mut().filter(|current| !current.is_empty()) else {
            return self.machine.handle(now, UpstreamInput::Gone);
        };
        let piece = current.split_to(current.len().min(most as usize));
        if let Some(readers) = &mut self.readers {
            readers.sends(piece.len() as u64, !std::mem::replace(&mut self.is_begun, true));
        }
        self.machine.handle(now, UpstreamInput::Bytes(piece));
    }

    async fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            let slices: Vec<IoSlice<'_>> =
                self.out.iter().take(MOST_SLICES).map(|bytes| IoSlice::new(bytes)).collect();
            let mut written = self.stream.write_vectored(&slices).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.hub.counters.wire(written);
            self.written += written as u64;
            self.out_bytes -= written;
            while let Some(front) = self.out.front_mut().filter(|_| written > 0) {
                let gone = written.min(front.len());
                written -= gone;
                drop(front.split_to(gone));
                if front.is_empty() {
                    self.out.pop_front();
                }
            }
        }
        Ok(())
    }

    async fn wait(&mut self) -> io::Result<()> {
        let deadline = self.machine.deadline().unwrap_or(Micros(u64::MAX));
        let left = Duration::from_micros(deadline.since(self.hub.clock.monotonic()).0).min(LONGEST_WAIT);
        let news = self.readers.as_ref().filter(|_| self.is_wanting).map(|readers| Arc::clone(&readers.news));
        let is_full = self.intake.is_full();
        self.buffer.reserve(READ_BYTES);
        tokio::select! {
            read = self.stream.read_buf(&mut self.buffer), if !is_full => {
                if self.is_prompt {
                    // LDM's notifyme answers twice, and its system holds the next answer back until this is
                    // acknowledged.
                    let _ = SockRef::from(&self.stream).set_tcp_quickack(true);
                }
                let input = match read? {
                    0 => UpstreamInput::Disconnected,
                    _ => UpstreamInput::Received(self.buffer.split().freeze()),
                };
                self.machine.handle(self.hub.clock.now(), input);
            }
            () = heard(news) => self.give_product(false),
            settled = self.intake.settled() => {
                if settled == Settled::Unstored {
                    self.over("pushed products can't be stored");
                }
            }
            () = tokio::time::sleep(left) => {}
        }
        Ok(())
    }

    fn happened(&mut self, event: UpstreamEvent) {
        let peer = &self.name;
        match event {
            UpstreamEvent::Serving(served) => self.serving(&served),
            UpstreamEvent::Taking(class) => {
                self.intake.grant(class.feeds());
                let class = said(&class);
                tracing::info!(peer, class, "HIYA was accepted: products are pushed");
                self.is_known_as("hiya", "", class);
                self.tell("connected", None);
            }
            UpstreamEvent::Denied(asked) => {
                let reason = shown(&format!("no site with this host may have or push {asked}"));
                tracing::warn!(peer, reason, "an LDM was denied");
                self.tell("refused", Some(reason));
            }
            UpstreamEvent::Refused(reason) => {
                let reason = shown(&reason);
                tracing::warn!(peer, reason, "an LDM was refused");
                self.tell("refused", Some(reason));
            }
            UpstreamEvent::AskedAlive(id) => {
                let is_alive = self.hub.ldm.door.is_alive(id);
                self.machine.handle(self.hub.clock.now(), UpstreamInput::Alive(is_alive));
            }
            UpstreamEvent::Asked => self.asked(),
            UpstreamEvent::Answered => self.answered(),
            UpstreamEvent::Taken(taken) => self.taken(taken),
            UpstreamEvent::Ended(why) => self.has_ended(&why),
        }
    }

    fn has_ended(&mut self, why: &Ending) {
        self.reason = why.to_string();
        let site = self.rules.site(&lock(&self.peer.standing).names);
        self.hub.ldm.border.ended(&self.hub, From { peer: &self.name, source: None, site }, why);
    }

    fn serving(&mut self, served: &Served) {
        let (what, procedure) = match served.interest {
            Interest::Products => ("feedme", "FEEDME"),
            Interest::Descriptions => ("notifyme", "NOTIFYME"),
        };
        let (class, mode, version) = (said(&served.class), word(served.mode), served.version.number());
        let resume = served.resume.map(|signature| signature.to_string());
        let (id, peer) = (self.peer.id, &self.name);
        tracing::info!(peer, class, mode, version, resume, id, "{procedure} was accepted");
        self.is_known_as(what, mode, class);
        self.is_prompt = served.version == Version::Five;
        let names = lock(&self.peer.standing).names.clone();
        let feeds = self.rules.feeds(&names);
        let routes = self.hub.ldm.routes();
        let types = served.class.feeds();
        let allowed =
            routes.holding(types).filter_map(|route| Some((route, *feeds.get(&route.feed.name())?)));
        self.readers = Some(Readers::open(&self.hub, &self.name, served, allowed));
        self.tell("connected", None);
    }

    fn is_known_as(&self, what: &'static str, mode: &'static str, class: String) {
        let mut standing = lock(&self.peer.standing);
        standing.site = self.rules.site(&standing.names);
        standing.said = self.rules.said(&standing.names);
        (standing.what, standing.mode, standing.class) = (what, mode, class);
        // Rules that changed since the connection was taken were not compared with it.
        if standing.said != self.hub.ldm.door.rules().said(&standing.names) {
            self.peer.end.send_replace(Some("its rights to request or push were changed"));
        }
    }

    fn tell(&self, state: &'static str, reason: Option<String>) {
        let standing = lock(&self.peer.standing);
        let (peer, site, what) = (self.name.clone(), standing.site.clone(), standing.what);
        self.hub.event(&Event::LdmPeer { peer, site, state, what, reason });
    }

    fn asked(&mut self) {
        self.account();
        self.sent_at_question = self.peer.counts.products.load(Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.asked();
        }
    }

    fn answered(&mut self) {
        let now = u64::try_from(self.hub.clock.wall().0).unwrap_or_default();
        self.peer.counts.answered.store(self.sent_at_question, Ordering::Relaxed);
        self.peer.counts.answered_at.store(now, Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.answered(&self.hub.ldm.places);
        }
    }

    fn taken(&mut self, taken: Taken) {
        match self.intake.take(taken) {
            Ok(None) => {}
            Ok(Some(wanted)) => {
                self.machine.handle(self.hub.clock.now(), UpstreamInput::Decided(wanted));
            }
            Err(error) => self.over(&format!("pushed products can't be spooled: {error}")),
        }
    }

    /// Enters what was sent in the accounts.
    fn account(&mut self) {
        let counts = &self.peer.counts;
        if let Some(readers) = &mut self.readers {
            let (products, bytes) = readers.account(&self.hub);
            counts.products.fetch_add(products, Ordering::Relaxed);
            counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            counts.gone.fetch_add(std::mem::take(&mut readers.gone), Ordering::Relaxed);
            counts.too_old.fetch_add(std::mem::take(&mut readers.too_old), Ordering::Relaxed);
            counts.too_large.fetch_add(std::mem::take(&mut readers.too_large), Ordering::Relaxed);
        }
        let now = self.hub.clock.monotonic();
        if now >= self.looked_at.plus(LOOK_EACH) {
            self.looked_at = now;
            let acknowledged = tcp::acknowledged_bytes(&self.stream).unwrap_or(self.written);
            let left = self.written.saturating_sub(acknowledged);
            counts.unacknowledged.store(left, Ordering::Relaxed);
        }
    }

    fn over(&mut self, reason: &str) {
        self.reason = reason.to_owned();
        self.is_over = true;
    }

    /// Says what became of the connection, once.
    fn ended(&mut self) {
        self.account();
        let (peer, reason) = (&self.name, &self.reason);
        let counts = &self.peer.counts;
        let (products, answered) =
            (counts.products.load(Ordering::Relaxed), counts.answered.load(Ordering::Relaxed));
        tracing::info!(peer, reason, products, answered, "an LDM's connection ended");
        let (gone, large) = (counts.gone.load(Ordering::Relaxed), counts.too_large.load(Ordering::Relaxed));
        if gone + large > 0 {
            let sentence = format!(
                "the LDM at {peer} missed {gone} products that left the log before their turn, and {large} that \
                 exceed LDM's size limit; a longer retention of the feed avoids the former"
            );
            self.hub.fault(sentence, None);
        }
        if !lock(&self.peer.standing).what.is_empty() {
            self.tell("closed", Some(self.reason.clone()));
        }
    }
}

/// A peer's request, for people: a class may hold 32 patterns of 255 bytes, and the status of all peers is
/// one line.
fn said(class: &ProductClass) -> String {
    let text = class.to_string();
    if text.len() <= CLASS_BYTES {
        return text;
    }
    let cut: String = text.chars().take(CLASS_BYTES / 4).collect();
    format!("{cut}… ({} specs)", class.specs.len())
}

/// Nothing but the peer's silence says that it is gone: what it does not acknowledge for as long is lost.
fn prepare(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(90)));
    let _ = socket.set_tcp_notsent_lowat(NOT_SENT_BYTES);
}

/// A word that the logs have grown; never any where nobody waits for it.
async fn heard(news: Option<Arc<tokio::sync::Notify>>) {
    match news {
        Some(news) => news.notified().await,
        None => std::future::pending().await,
    }
}

/// One write to the socket, about.
const WRITE_BYTES: usize = 128 << 10;
const MOST_SLICES: usize = 256;
const READ_BYTES: usize = 16 << 10;
const NOT_SENT_BYTES: u32 = 256 << 10;

/// Eight specs with long patterns.
const CLASS_BYTES: usize = 2_048;

/// What is older is not taken from those that push.
const OLDEST: Micros = Micros::from_secs(3_600);

/// A peer that pushes says something within this time, or goes.
const SILENCE: Micros = Micros::from_secs(300);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
const LOOK_EACH: Micros = Micros::from_secs(1);
