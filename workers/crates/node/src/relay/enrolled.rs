//! The session of a relay that a hub has enrolled: that of a site without products.
//!
//! Refused by its hub, a relay has no right to carry anything for it: tunnels and legs end, and the relay asks again
//! in long intervals, in case its operator has given it another token.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use downburst_log::FeedLog;
use downburst_model::FeedName;
use downburst_session::{RelayReport, RelayedLeg, VERSIONS};
use downburst_site::{News, Role};
use tokio::sync::{mpsc, watch};

use super::account::{REPORT_INTERVAL, Register};
use crate::clock::Clock;
use crate::probing::MaySayHello;
use crate::site::{
    Carried, CircuitPeers, Destination, HubChoice, HubPlace, Identity, Local, Parts, SharedCompleteness,
    SharedLegs, Site, Supervisor, Turn, Ways, place_of,
};

/// The enrolment of a relay.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// The hub, and the token of the relay.
    pub hub: HubChoice,
    /// The directory of its credential.
    pub directory: PathBuf,
    /// The interface by which legs leave: its name, number or address; empty: the system's choice.
    pub interface: String,
    /// The interfaces that the hub may use for circuits.
    pub circuits: Vec<String>,
    /// The highest rate of probes of its path, bits per second; `None`: no limit, 0: no probes.
    pub probes_most_bps: Option<u64>,
    /// The pause after a refusal.
    pub ask_again_after: Duration,
}

/// The hub's refusal, as one sentence; `None`: the relay may carry.
pub(super) type Refused = Option<String>;

/// The session, and the refusals that it hears.
pub(super) struct Enrolled {
    enrolment: Enrolment,
    legs: SharedLegs,
    register: Arc<Register>,
    peers: CircuitPeers,
    refused: watch::Sender<Refused>,
    /// True once the relay ends.
    ending: watch::Receiver<bool>,
    clock: Clock,
}

/// The parts that a relay shares with its session.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) register: Arc<Register>,
    /// The addresses opposite to the relay's ends of circuits.
    pub(super) peers: CircuitPeers,
    /// Becomes true when the relay ends.
    pub(super) ending: watch::Receiver<bool>,
}

/// A relay keeps no products.
struct NoProducts;

impl Destination for NoProducts {
    fn log(&self, _feed: &FeedName) -> Result<Option<Arc<FeedLog>>, String> {
        Ok(None)
    }
}

impl Enrolled {
    /// Reads the credential, or the token that precedes it; the error is a sentence.
    pub(super) fn open(
        enrolment: Enrolment,
        Shared { register, peers, ending }: Shared,
        refused: watch::Sender<Refused>,
    ) -> Result<Self, String> {
        let legs = SharedLegs::new(enrolment.interface.clone());
        let clock = Clock::start(0);
        let enrolled = Self { enrolment, legs, register, peers, refused, ending, clock };
        enrolled.identity().map(|_| enrolled)
    }

    /// Holds the session for as long as the relay runs, and removes its ends of circuits at the end.
    pub(super) async fn run(self) {
        loop {
            let sentence = match self.hold_session().await {
                Ok(sentence) | Err(sentence) => sentence,
            };
            if *self.ending.borrow() {
                return;
            }
            tracing::error!("this relay carries nothing now: {sentence}");
            self.legs.clear();
            self.refused.send_replace(Some(sentence));
            let mut ending = self.ending.clone();
            tokio::select! {
                _ = ending.wait_for(|ends| *ends) => return,
                () = tokio::time::sleep(self.enrolment.ask_again_after) => {}
            }
        }
    }

    /// Holds a session, across all attempts, until the hub refuses the relay; returns its sentence.
    async fn hold_session(&self) -> Result<String, String> {
        let (role, roles) = watch::channel(Role::Serve);
        let (news_sender, mut news) = mpsc::unbounded_channel();
        let (report_sender, reports) = mpsc::unbounded_channel();
        let (_done_sender, done) = mpsc::unbounded_channel();
        let supervisor = Supervisor { roles, news: news_sender };
        let site = Site::open(self.parts(supervisor, reports, Local { files: None, done })?)?;
        let task = tokio::spawn(site.run());
        let reporting = self.register.report_to(report_sender, || self.told_legs());
        tokio::pin!(reporting);
        let mut sentence = "the session ended".to_owned();
        let mut ending = self.ending.clone();
        loop {
            let news = tokio::select! {
                biased;
                _ = ending.wait_for(|ends| *ends), if *role.borrow() != Role::End => {
                    role.send_replace(Role::End);
                    continue;
                }
                news = news.recv() => news,
                // It ends with the session.
                () = &mut reporting => break,
                () = tokio::time::sleep(REPORT_INTERVAL) => {
                    self.log_legs();
                    continue;
                }
            };
            match news {
                None => break,
                Some(News::Well { .. }) => drop(self.refused.send_replace(None)),
                Some(News::Refused(why)) => {
                    sentence = why;
                    role.send_replace(Role::End);
                }
                Some(News::Unkept(why)) => tracing::error!("{why}"),
                // Another attempt follows, and open tunnels need none of this session.
                Some(News::Away { .. } | News::Nodes(_)) => {}
            }
        }
        let _ = task.await;
        Ok(sentence)
    }

    fn parts(
        &self,
        supervisor: Supervisor,
        reports: mpsc::UnboundedReceiver<RelayReport>,
        local: Local,
    ) -> Result<Parts, String> {
        let (hub, identity) = self.identity()?;
        Ok(Parts {
            hub,
            identity,
            clock: self.clock,
            versions: VERSIONS.to_vec(),
            one_node: true,
            only: None,
            decides: true,
            turn: Turn::default(),
            ways: Ways {
                relayed: Some(self.legs.clone()),
                reports: Some(reports),
                ports: self.enrolment.circuits.clone(),
                probes_most_bps: self.enrolment.probes_most_bps,
                carries: Some(self.carries()),
                peers: self.peers.clone(),
                ..Ways::default()
            },
            destination: Arc::new(NoProducts),
            completeness: SharedCompleteness::default(),
            owed: Vec::new(),
            local,
            supervisor,
        })
    }

    /// The hosts that have tunnels here may be the other end of a probe.
    fn carries(&self) -> MaySayHello {
        let register = Arc::clone(&self.register);
        Arc::new(move |from| register.carries(from))
    }

    fn told_legs(&self) -> Vec<RelayedLeg> {
        let accounts = self.legs.accounts().into_iter();
        let told = accounts.map(|(leg, Carried { datagrams, bytes, dropped })| RelayedLeg {
            leg,
            datagrams,
            bytes,
            dropped,
        });
        told.collect()
    }

    fn log_legs(&self) {
        for (leg, Carried { datagrams, bytes, dropped }) in self.legs.accounts() {
            tracing::info!(leg = leg.0, datagrams, bytes, dropped, "a leg goes on");
        }
    }

    fn identity(&self) -> Result<(HubPlace, Identity), String> {
        let place = place_of(&self.enrolment.directory, &self.enrolment.hub)?;
        let identity = Identity::load(&place, self.enrolment.hub.token_file.as_deref())?;
        Ok((place, identity))
    }
}
