//! The TCP profile of a session: its connections are looked at, and get their options.
use downburst_hub::{ConnectionLook, Looked, ProfileNews, SessionInput, SessionLook, StatusChange};
use downburst_model::Micros;
use downburst_session::StreamId;

use super::Task;
use crate::hub::connections::counted::Counted;
use crate::hub::{Hub, lock};
use crate::lines::Event;

/// The kernel refused an option. Each is tried once, so the next look does not meet it again.
struct Refused;

impl Task {
    /// Looks at the connections, if it is time.
    pub(super) fn look_at_profile_if_due(&mut self) {
        if self.profile_at.is_some_and(|at| at <= self.hub.clock.monotonic()) {
            self.look_at_profile();
        }
    }

    /// Looks at the connections for their profile: they get the options that they should have now.
    pub(super) fn look_at_profile(&mut self) {
        let Some(member) = &self.member else { return };
        let (now, serial) = (self.hub.clock.monotonic(), member.handle.serial);
        let had_profile = lock(&member.handle.status).tcp_profile.is_some();
        if lock(&self.hub.sessions.tcp_profiles).is_empty() && !had_profile && self.profile_at.is_none() {
            return;
        }
        let (waiting_bytes, bound_bps) = self.session.load(self.hub.clock.wall(), &*self.hub);
        let connections = self.connection_looks();
        let look = SessionLook { session: serial, at: now, waiting_bytes, bound_bps, connections };
        let (looked, is_empty) = {
            let mut profiles = lock(&self.hub.sessions.tcp_profiles);
            (profiles.look(&look), profiles.is_empty())
        };
        // A refusal may end a trial: the others' options change with it.
        let pause = match self.apply_options(serial, now, &looked) {
            Err(Refused) => Micros(0),
            Ok(()) if waiting_bytes > 0 => BUSY_PAUSE,
            Ok(()) => IDLE_PAUSE,
        };
        self.profile_at = (!is_empty && !looked.settings.is_empty()).then(|| now.plus(pause));
        let Looked { profile, connections, .. } = looked;
        lock(&member.handle.status).apply(StatusChange::TcpProfile(profile));
        self.hub.tell_profile_news();
        if std::mem::replace(&mut self.profiled, connections) != connections {
            self.tell(SessionInput::ProfileStreams(connections));
        }
    }

    /// Each connection gets its options, or the kernel's values again.
    fn apply_options(&self, serial: u64, now: Micros, looked: &Looked) -> Result<(), Refused> {
        let mut applied = Ok(());
        for (stream, connection, _) in self.numbered() {
            let setting = looked.settings.iter().find(|setting| setting.stream == stream);
            let knobs = setting.map(|setting| setting.knobs.clone()).unwrap_or_default();
            if let Err(sentence) = connection.apply(&knobs) {
                lock(&self.hub.sessions.tcp_profiles).refused(serial, stream, now, &sentence);
                applied = Err(Refused);
            }
        }
        applied
    }

    fn connection_looks(&self) -> Vec<ConnectionLook> {
        self.numbered()
            .filter_map(|(stream, connection, queued)| connection.progress(stream, queued))
            .collect()
    }

    /// The connections with their numbers; true: bytes are queued for it.
    fn numbered(&self) -> impl Iterator<Item = (StreamId, &Counted, bool)> {
        let first = (StreamId::FIRST, self.socket.connection(), !self.outgoing.first.is_empty());
        let links = self.outgoing.links.all();
        std::iter::once(first)
            .chain(links.map(|link| (link.stream, link.socket.get_ref().0, !link.out.is_empty())))
    }
}

impl Hub {
    /// Reports steps of trials and faults of profiles to the agent.
    fn tell_profile_news(&self) {
        let news = lock(&self.sessions.tcp_profiles).take_news();
        for one in news {
            match one {
                ProfileNews::Fault(sentence) => self.fault(sentence, None),
                ProfileNews::Trial(line) => {
                    tracing::info!(profile = line.name, step = ?line.step, "TCP profile: {}", line.reason);
                    self.event(&Event::TcpTrial(*line));
                }
            }
        }
    }
}

/// While products wait, throughput is measured.
const BUSY_PAUSE: Micros = Micros::from_secs(1);

/// Products may begin to wait.
const IDLE_PAUSE: Micros = Micros::from_secs(5);
