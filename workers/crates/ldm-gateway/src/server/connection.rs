//! One connection from an LDM: requested products are read from the logs, pushed products are written to them.
mod caller;
mod delivery;
mod wire;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use downburst_hub::shown;
use downburst_ldm6::{
    Ending, FeedType, Interest, ProductClass, Served, Taken, Upstream, UpstreamConfig, UpstreamEvent,
    UpstreamInput, UpstreamOutput, Version, Want,
};
use downburst_log::ProductLog as _;
use downburst_model::{Machine as _, Micros};
use tokio::net::TcpStream;

use super::peers::{Peer, Peers};
use super::readers::Readers;
use crate::context::Context;
use crate::hub::word;
use crate::intake::{Intake, Settled};
use crate::lock;
use caller::Caller;
use delivery::Delivery;
use wire::Wire;

/// Serves a peer until either side ends the connection.
pub(super) async fn serve(context: &Context, peers: &Arc<Peers>, stream: TcpStream, peer: &Arc<Peer>) {
    let mut connection = Connection::new(context, Caller::new(peers, peer), stream);
    let mut end = peer.end.subscribe();
    while !connection.is_over {
        tokio::select! {
            done = connection.turn() => {
                if let Err(error) = done {
                    connection.over(&format!("the connection failed: {error}"));
                }
            }
            reason = end.wait_for(Option::is_some) => {
                let reason = reason.ok().and_then(|reason| *reason).unwrap_or_default();
                connection.over(reason);
            }
        }
    }
    connection.ended();
}

struct Connection {
    context: Context,
    caller: Caller,
    machine: Upstream,
    wire: Wire,
    delivery: Delivery,
    intake: Intake,
    looked_at: Micros,
    reason: String,
    is_over: bool,
}

impl Connection {
    fn new(context: &Context, caller: Caller, stream: TcpStream) -> Self {
        let config = UpstreamConfig {
            peer: caller.names(),
            access: Arc::clone(&caller.rules.access),
            id: caller.peer.id,
            max_hereis: u32::MAX,
            oldest: OLDEST,
            largest_bytes: u32::MAX,
            silence: SILENCE,
            first_xid: 1,
        };
        Self {
            machine: Upstream::new(context.clock.now(), config),
            intake: Intake::new(context, &caller.name, FeedType::NONE, Arc::clone(&caller.peer.taken)),
            context: context.clone(),
            caller,
            wire: Wire::new(stream),
            delivery: Delivery::default(),
            looked_at: Micros(0),
            reason: String::new(),
            is_over: false,
        }
    }

    /// Sends all pending output and waits for the next event.
    async fn turn(&mut self) -> io::Result<()> {
        self.wire.flush(&*self.context.hub).await?;
        while self.speak() {
            self.wire.flush(&*self.context.hub).await?;
            tokio::task::consume_budget().await;
        }
        self.wire.flush(&*self.context.hub).await?;
        self.account();
        if self.is_over { Ok(()) } else { self.wait().await }
    }

    /// Carries out the machine's outputs until the send buffer is full (true) or there are no more (false).
    fn speak(&mut self) -> bool {
        while !self.wire.is_full() {
            let Some(output) = self.machine.poll(self.context.clock.now()) else { return false };
            match output {
                UpstreamOutput::Send(bytes) => self.wire.queue(bytes),
                UpstreamOutput::Want(Want::Product) => self.give_product(true),
                UpstreamOutput::Want(Want::Bytes(most)) => self.give_bytes(most),
                UpstreamOutput::Close => self.is_over = true,
                UpstreamOutput::Event(event) => self.happened(event),
            }
        }
        true
    }

    fn give_product(&mut self, is_asked: bool) {
        let next = self.delivery.next(&*self.context.hub);
        let now = self.context.clock.now();
        match next {
            Some(info) => self.machine.handle(now, UpstreamInput::Product(info)),
            None if is_asked => self.machine.handle(now, UpstreamInput::NoProduct),
            None => {}
        }
    }

    fn give_bytes(&mut self, most: u32) {
        let piece = self.delivery.piece(most).map_or(UpstreamInput::Gone, UpstreamInput::Bytes);
        self.machine.handle(self.context.clock.now(), piece);
    }

    async fn wait(&mut self) -> io::Result<()> {
        let deadline = self.machine.deadline().unwrap_or(Micros(u64::MAX));
        let left = Duration::from_micros(deadline.since(self.context.clock.monotonic()).0).min(LONGEST_WAIT);
        let news = self.delivery.awaited();
        let is_full = self.intake.is_full();
        tokio::select! {
            read = self.wire.read(), if !is_full => {
                let read = read?;
                let input =
                    if read.is_empty() { UpstreamInput::Disconnected } else { UpstreamInput::Received(read) };
                self.machine.handle(self.context.clock.now(), input);
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
        let peer = &self.caller.name;
        match event {
            UpstreamEvent::Serving(served) => self.serving(&served),
            UpstreamEvent::Taking(class) => {
                self.intake.grant(class.feeds());
                let class = said(&class);
                tracing::info!(peer, class, "HIYA was accepted: products are pushed");
                self.caller.is_known_as("hiya", "", class);
                self.caller.tell(&self.context, "connected", None);
            }
            UpstreamEvent::Denied(asked) => {
                let reason = shown(&format!("no site with this host may have or push {asked}"));
                tracing::warn!(peer, reason, "an LDM was denied");
                self.caller.tell(&self.context, "refused", Some(reason));
            }
            UpstreamEvent::Refused(reason) => {
                let reason = shown(&reason);
                tracing::warn!(peer, reason, "an LDM was refused");
                self.caller.tell(&self.context, "refused", Some(reason));
            }
            UpstreamEvent::AskedAlive(id) => {
                let is_alive = self.caller.peers.is_alive(id);
                self.machine.handle(self.context.clock.now(), UpstreamInput::Alive(is_alive));
            }
            UpstreamEvent::Asked => self.asked(),
            UpstreamEvent::Answered => self.answered(),
            UpstreamEvent::Taken(taken) => self.taken(taken),
            UpstreamEvent::Ended(why) => self.has_ended(&why),
        }
    }

    fn has_ended(&mut self, why: &Ending) {
        self.reason = why.to_string();
        self.caller.has_ended(&self.context, why);
    }

    fn serving(&mut self, served: &Served) {
        let (what, procedure) = match served.interest {
            Interest::Products => ("feedme", "FEEDME"),
            Interest::Descriptions => ("notifyme", "NOTIFYME"),
        };
        let (class, mode, version) = (said(&served.class), word(served.mode), served.version.number());
        let resume = served.resume.map(|signature| signature.to_string());
        let (id, peer) = (self.caller.peer.id, &self.caller.name);
        tracing::info!(peer, class, mode, version, resume, id, "{procedure} was accepted");
        self.caller.is_known_as(what, mode, class);
        self.wire.is_prompt = served.version == Version::Five;
        let feeds = self.caller.rules.feeds(&self.caller.names());
        let routes = self.context.routes();
        let types = served.class.feeds();
        let allowed =
            routes.holding(types).filter_map(|route| Some((route, *feeds.get(route.feed.log().feed())?)));
        let readers = Readers::open(&self.caller.peers.positions, &self.caller.name, served, allowed);
        self.delivery.readers = Some(readers);
        self.caller.tell(&self.context, "connected", None);
    }

    fn asked(&mut self) {
        self.account();
        self.delivery.asked(&self.caller.peer.counts);
    }

    fn answered(&mut self) {
        let now = u64::try_from(self.context.clock.wall().0).unwrap_or_default();
        self.delivery.answered(&self.caller.peer.counts, now, &self.caller.peers.positions);
    }

    fn taken(&mut self, taken: Taken) {
        match self.intake.take(taken) {
            Ok(None) => {}
            Ok(Some(wanted)) => {
                self.machine.handle(self.context.clock.now(), UpstreamInput::Decided(wanted));
            }
            Err(error) => self.over(&format!("pushed products can't be spooled: {error}")),
        }
    }

    /// Adds the sent products to the accounts.
    fn account(&mut self) {
        let counts = &self.caller.peer.counts;
        self.delivery.account(&*self.context.hub, counts);
        let now = self.context.clock.monotonic();
        if now >= self.looked_at.plus(LOOK_EACH) {
            self.looked_at = now;
            counts.unacknowledged.store(self.wire.unacknowledged_bytes(), Ordering::Relaxed);
        }
    }

    fn over(&mut self, reason: &str) {
        self.reason = reason.to_owned();
        self.is_over = true;
    }

    /// Reports the end of the connection, once.
    fn ended(&mut self) {
        self.account();
        let (peer, reason) = (&self.caller.name, &self.reason);
        let counts = &self.caller.peer.counts;
        let (products, answered) =
            (counts.products.load(Ordering::Relaxed), counts.answered.load(Ordering::Relaxed));
        tracing::info!(peer, reason, products, answered, "an LDM's connection ended");
        let (gone, large) = (counts.gone.load(Ordering::Relaxed), counts.too_large.load(Ordering::Relaxed));
        if gone + large > 0 {
            let sentence = format!(
                "the LDM at {peer} missed {gone} products that left the log before their turn, and {large} that \
                 exceed LDM's size limit; a longer retention of the feed avoids the former"
            );
            self.context.hub.fault(sentence);
        }
        if !lock(&self.caller.peer.standing).what.is_empty() {
            self.caller.tell(&self.context, "closed", Some(self.reason.clone()));
        }
    }
}

/// A peer's request as a short text: a class may hold 32 patterns of 255 bytes, and the status of all peers is one
/// line.
fn said(class: &ProductClass) -> String {
    let text = class.to_string();
    if text.len() <= CLASS_BYTES {
        return text;
    }
    let cut: String = text.chars().take(CLASS_BYTES / 4).collect();
    format!("{cut}… ({} specs)", class.specs.len())
}

/// Waits until the logs have grown; never ends if the peer does not wait for products.
async fn heard(news: Option<Arc<tokio::sync::Notify>>) {
    match news {
        Some(news) => news.notified().await,
        None => std::future::pending().await,
    }
}

/// Eight specs with long patterns.
const CLASS_BYTES: usize = 2_048;

/// Older products are not accepted from peers that push.
const OLDEST: Micros = Micros::from_secs(3_600);

/// A peer that pushes is disconnected after this time without a message.
const SILENCE: Micros = Micros::from_secs(300);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
const LOOK_EACH: Micros = Micros::from_secs(1);
