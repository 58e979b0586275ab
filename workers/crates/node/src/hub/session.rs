//! One task per connected site: moves bytes between its sockets and its machine, and carries out the outputs.
mod facts;
mod identity;
mod late_share;
mod logs;
mod outputs;
mod reports;
mod tcp_profile;
mod watched;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use downburst_hub::{
    Outgoing, ResendsLeft, Session, SessionInput, SessionSettings, Siblings, Taken, TcpProfiles,
};
use downburst_model::Micros;
use downburst_session::{HubInput, RefusalCode, Refused, StreamId};
use downburst_tracer::Role;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use crate::hub::connections::counted::Counted;
use crate::hub::connections::data::{self, Attached};
use crate::hub::connections::pending_connections::{EVICTED, PendingConnection};
use crate::hub::connections::session_socket::{Moved, SessionSocket};
use crate::hub::probes::Probes;
use crate::hub::roster::{Command, Member, Repair};
use crate::hub::{Hub, lock};
use crate::lines::EnrolAnswer;
use crate::tls;
use late_share::LateShare;
use watched::Watched;

/// The state that sessions share.
pub(super) struct Sessions {
    /// The same for all sessions.
    settings: Arc<SessionSettings>,
    pub(super) late_share: LateShare,
    pub(super) resends_left: Mutex<ResendsLeft>,
    pub(super) tcp_profiles: Mutex<TcpProfiles>,
    pub(super) probes: Probes,
    pub(super) siblings: Mutex<Siblings>,
}

impl Sessions {
    pub(super) fn new(settings: SessionSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            late_share: LateShare::new(),
            resends_left: Mutex::default(),
            tcp_profiles: Mutex::default(),
            probes: Probes::default(),
            siblings: Mutex::default(),
        }
    }
}

/// Serves the first connection of a session, and the data connections that it has opened, until either side ends the
/// first. `heard` holds the bytes already read from it.
pub(super) async fn serve(
    hub: Arc<Hub>,
    stream: TlsStream<Counted>,
    pending: PendingConnection,
    heard: Bytes,
) {
    let socket = SessionSocket::new(stream);
    let session = Session::new(hub.clock.now(), Arc::clone(&hub.sessions.settings), socket.local_port())
        .of_peer(pending.peer.ip());
    let mut task = Task {
        stopping: hub.stopping.subscribe(),
        hub,
        session,
        peer: pending.peer,
        pending: Some(pending),
        socket,
        outgoing: Outgoing::default(),
        answer: None,
        member: None,
        watched: Watched::default(),
        profile_at: None,
        profiled: None,
    };
    task.hear(heard);
    task.run().await;
}

/// The task of a session.
pub(super) struct Task {
    pub(super) hub: Arc<Hub>,
    pub(super) session: Session,
    peer: SocketAddr,
    /// Present until the site is admitted.
    pending: Option<PendingConnection>,
    socket: SessionSocket,
    outgoing: Outgoing<Box<TlsStream<Counted>>>,
    /// The agent's answer about a token or a replacement credential.
    answer: Option<oneshot::Receiver<EnrolAnswer>>,
    /// Present once the site is admitted.
    pub(super) member: Option<Member>,
    stopping: watch::Receiver<bool>,
    watched: Watched,
    /// The time of the next look for the TCP profile; `None`: no connection has one.
    profile_at: Option<Micros>,
    /// The number of data connections that the profile set at the last look.
    profiled: Option<usize>,
}

enum Woken {
    Moved(Moved),
    Evicted,
    Answered(Option<EnrolAnswer>),
    Command(Option<Command>),
    Repair(Option<Repair>),
    Grown,
    Stopping,
    Data(data::Woken),
    Deadline,
}

impl Task {
    async fn run(mut self) {
        let by_site = loop {
            self.perform();
            self.look_at_profile_if_due();
            if self.is_over() {
                break false;
            }
            if self.drop_stuck_link() {
                continue;
            }
            let woken = self.wait().await;
            if !self.take(woken) {
                break true;
            }
        };
        // A site that moves to another way comes again as soon as it sees the end: its place must be free by then.
        if by_site {
            self.leave();
        }
        // A peer that left bytes unread would not take the end of the stream either.
        if self.outgoing.first.is_empty() {
            let _ = tokio::time::timeout(CLOSE_LIMIT, self.socket.shut_down()).await;
        }
        if !by_site {
            self.leave();
        }
    }

    /// Carries out the machine's outputs until there are none.
    fn perform(&mut self) {
        while let Some(output) = self.session.poll(self.hub.clock.now(), &*self.hub) {
            self.carry_out(output);
        }
    }

    pub(super) fn tell(&mut self, input: SessionInput) {
        self.session.handle(self.hub.clock.now(), input, &*self.hub);
    }

    /// True if everything is sent, or the peer's time is over.
    fn is_over(&mut self) -> bool {
        let now = self.hub.clock.monotonic();
        if self.outgoing.is_over(now) {
            return true;
        }
        let late = self.pending.as_ref().and_then(|pending| pending.limits.late(now));
        let stuck = || "the site did not read the data sent to it";
        let sentence = late.or_else(|| self.outgoing.is_stuck(now).then(stuck));
        if let Some(sentence) = sentence {
            self.session.ends(sentence);
        }
        sentence.is_some()
    }

    /// Drops a data connection that took nothing for too long; returns true if there was one.
    fn drop_stuck_link(&mut self) -> bool {
        let dropped = self.outgoing.drop_stuck_link(self.hub.clock.monotonic());
        let Some(stream) = dropped else { return false };
        let reason = "the site did not read the data sent to it".to_owned();
        self.tell(SessionInput::StreamClosed { stream, reason });
        true
    }

    async fn wait(&mut self) -> Woken {
        let deadline = self.deadline();
        let (commands, repairs) = match self.member.as_mut() {
            Some(member) => (Some(&mut member.commands), Some(&mut member.repairs)),
            None => (None, None),
        };
        // A site that is slow to take its bytes gets no further repairs queued; it requests them again.
        let takes_repairs = self.outgoing.first.has_room();
        let closing = self.outgoing.is_closing();
        tokio::select! {
            moved = self.socket.moved(&self.outgoing.first, !closing) => Woken::Moved(moved),
            woken = data::moved(&mut self.outgoing.links) => Woken::Data(woken),
            () = or_never(self.pending.as_mut().map(PendingConnection::evicted)) => Woken::Evicted,
            answer = or_never(self.answer.as_mut()) => Woken::Answered(answer.ok()),
            command = or_never(commands.map(mpsc::UnboundedReceiver::recv)) => Woken::Command(command),
            repair = or_never(repairs.map(mpsc::Receiver::recv)), if takes_repairs => Woken::Repair(repair),
            () = self.watched.notified(), if !self.session.looks_later() => Woken::Grown,
            _ = self.stopping.wait_for(|stop| *stop), if !closing => Woken::Stopping,
            () = tokio::time::sleep_until(deadline) => Woken::Deadline,
        }
    }

    /// The time at which the task has work even if nothing happens.
    fn deadline(&self) -> Instant {
        let now = self.hub.clock.monotonic();
        let due = [
            self.session.deadline(),
            self.outgoing.deadline(),
            self.profile_at,
            self.pending.as_ref().map(|pending| pending.limits.late_at()),
        ];
        let due = due.into_iter().flatten().min();
        Instant::now() + due.map_or(LONGEST_SLEEP, |due| Duration::from_micros(due.since(now).0))
    }

    /// Handles the event that woke the task; false ends the session.
    fn take(&mut self, woken: Woken) -> bool {
        match woken {
            Woken::Moved(moved) => return self.moved(moved),
            Woken::Evicted => {
                self.session.ends(EVICTED);
                return false;
            }
            Woken::Answered(answer) => {
                self.answer = None;
                self.tell(SessionInput::Answered(answer.map(identity::said)));
            }
            Woken::Command(Some(command)) => self.command(command),
            Woken::Repair(Some(repair)) => self.repair(repair),
            Woken::Command(None) | Woken::Repair(None) | Woken::Deadline => {}
            Woken::Grown => self.tell(SessionInput::Woken),
            Woken::Data(woken) => self.data_moved(woken),
            Woken::Stopping => {
                let sentence = "the hub stops; connect again in a moment".to_owned();
                self.tell(SessionInput::Refuse(Refused { code: RefusalCode::Unavailable, sentence }));
            }
        }
        true
    }

    /// Handles progress of the first connection; false if it ended.
    fn moved(&mut self, moved: Moved) -> bool {
        match moved {
            Moved::Read(Ok(bytes)) if bytes.is_empty() => {
                // A regular end: the site's receiver was stopped, or moves to another hub.
                if self.member.is_some() {
                    self.session.ends("ended by the site");
                }
                return false;
            }
            Moved::Read(Ok(bytes)) => {
                if let Some(member) = &self.member {
                    lock(&member.handle.status).heard_at = self.hub.clock.monotonic();
                }
                // The message may end a leg: the machine must first know what the leg has carried.
                self.tell_grown();
                self.hear(bytes);
            }
            Moved::Sent(Ok(taken)) => self.taken(StreamId::FIRST, taken),
            Moved::Read(Err(error)) | Moved::Sent(Err(error)) => {
                self.session.ends(&tls::broken(&error));
                return false;
            }
        }
        true
    }

    fn taken(&mut self, stream: StreamId, taken: Taken) {
        self.outgoing.taken(self.hub.clock.monotonic(), stream, &taken);
        if taken.bytes > 0 {
            self.tell(SessionInput::Taken { stream, bytes: taken.bytes });
        }
    }

    fn hear(&mut self, heard: Bytes) {
        if let Some(pending) = &self.pending {
            pending.took(heard.len());
        }
        self.tell(SessionInput::Bytes(heard));
    }

    fn tell_grown(&mut self) {
        let grown = self.watched.feeds.grown();
        if !grown.is_empty() {
            self.tell(SessionInput::Grown(grown));
        }
    }

    fn data_moved(&mut self, woken: data::Woken) {
        match woken {
            data::Woken::Taken(stream, taken) => self.taken(stream, taken),
            data::Woken::Spoke(stream) => self.tell(SessionInput::Spoke(stream)),
            data::Woken::Ended(stream, reason) => self.tell(SessionInput::StreamClosed { stream, reason }),
            data::Woken::Closed => {}
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Tell(input) => {
                if matches!(input, SessionInput::Subscriptions) {
                    self.tell_grown();
                }
                self.tell(input);
            }
            Command::LookAtFeeds => {
                let watched = self.watched.look_for(self.session.subscribed(), &self.hub.feeds);
                self.tell(SessionInput::Watched(watched));
                self.tell(SessionInput::Resends);
            }
            Command::LookAtProfile => self.look_at_profile(),
            Command::Where { products, answer } => {
                let _ = answer.send(self.session.view(&products));
            }
            Command::Attach(attached) => {
                let Attached { stream, socket } = attached;
                if let (Some(site), Some(ends)) = (self.session.site(), socket.get_ref().0.ends()) {
                    self.hub.figures.tracer.serves(ends, site, Role::Data);
                }
                self.outgoing.links.add(stream, socket);
                self.look_at_profile();
                self.tell(SessionInput::StreamOpened(stream));
            }
        }
    }

    /// Repeats packets that were lost on a leg's group.
    fn repair(&mut self, repair: Repair) {
        self.tell(SessionInput::Pass(match repair {
            Repair::Packet { leg, leg_epoch, packet, payload } => {
                HubInput::Repair { leg, leg_epoch, packet, payload }
            }
            Repair::Gone { leg, leg_epoch, packets } => HubInput::PacketsGone { leg, leg_epoch, packets },
        }));
    }
}

async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

const CLOSE_LIMIT: Duration = Duration::from_millis(400);
