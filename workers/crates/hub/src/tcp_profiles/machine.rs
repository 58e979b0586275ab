//! All profiles of a node: looks at sessions come in, the options of their connections come out.
use std::collections::BTreeMap;

use downburst_model::Micros;
use downburst_session::StreamId;

use super::knobs::Knobs;
use super::learner::Offer;
use super::lines::{ProfileLine, ProfileNews, SessionProfile, longest_match};
use super::meter::{ConnectionKey, ConnectionLook, Interval, Meter, SessionLook, fills};
use super::run::{Around, Run};

/// The profiles of a node, and the measurements of its connections.
#[derive(Debug, Default)]
pub struct TcpProfiles {
    offer: Offer,
    runs: BTreeMap<String, Run>,
    meters: BTreeMap<ConnectionKey, Meter>,
    /// The last look at each session.
    looks: BTreeMap<u64, Micros>,
    news: Vec<ProfileNews>,
}

/// The answer to a look at a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The options of each connection with a profile.
    pub settings: Vec<ConnectionSetting>,
    /// The profile of the session's first connection.
    pub profile: Option<SessionProfile>,
    /// The number of data connections that the profile sets.
    pub connections: Option<usize>,
}

/// The options of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSetting {
    /// The connection.
    pub stream: StreamId,
    /// Its options; buffers are its own part.
    pub knobs: Knobs,
}

impl TcpProfiles {
    /// Takes the host's congestion controls, and the one that connections have without a profile.
    pub fn offer(&mut self, congestions: Vec<String>, usual: String) {
        self.offer = Offer { congestions, usual };
    }

    /// Takes the whole list of profiles, checked before. The trials of profiles that did not change go on.
    pub fn replace(&mut self, lines: Vec<ProfileLine>) {
        let mut former = std::mem::take(&mut self.runs);
        for line in lines {
            let run = former.remove(&line.name);
            let name = line.name.clone();
            let run = run.map_or_else(|| Run::new(line.clone()), |run| run.relisted(line.clone()));
            self.runs.insert(name, run);
        }
        // Each connection finds its profile again at the next look; windows in which it had a part end without it.
        let keys: Vec<ConnectionKey> = self.meters.keys().copied().collect();
        for key in keys {
            let stays = self.profile_of(key).is_some_and(|(present, matched)| present == matched);
            if !stays {
                self.remove(key);
            }
        }
    }

    /// True without any profile: sessions need no looks.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Takes a look at all connections of a session.
    pub fn look(&mut self, look: &SessionLook) -> Looked {
        let last = self.looks.insert(look.session, look.at);
        self.meet(look);
        let is_free = look.waiting_bytes > 0 && !self.fills(look, last);
        let limiting_bytes = self.limiting_bytes(look);
        for connection in &look.connections {
            let key = key(look, connection);
            let Some(meter) = self.meters.get_mut(&key) else { continue };
            let interval = meter.look(look.at, connection, is_free);
            self.advance(look.at, key, interval, limiting_bytes);
        }
        self.looked(look)
    }

    /// Forgets a session that has ended.
    pub fn gone(&mut self, session: u64) {
        self.looks.remove(&session);
        self.of_session(session).into_iter().for_each(|key| self.remove(key));
    }

    /// The kernel refused options of a connection.
    pub fn refused(&mut self, session: u64, stream: StreamId, at: Micros, sentence: &str) {
        let key = ConnectionKey { session, stream };
        let name = self.meters.get(&key).and_then(|meter| meter.profile.as_ref());
        let run = name.and_then(|name| self.runs.get_mut(name));
        self.news.extend(run.and_then(|run| run.refused(key, at, sentence)));
    }

    /// The news since the last call.
    pub fn take_news(&mut self) -> Vec<ProfileNews> {
        std::mem::take(&mut self.news)
    }

    /// Adds the connections that are new, and removes those that have ended.
    fn meet(&mut self, look: &SessionLook) {
        for key in self.of_session(look.session) {
            if !look.connections.iter().any(|it| it.stream == key.stream) {
                self.remove(key);
            }
        }
        for connection in &look.connections {
            let lines = self.runs.values().map(|run| &run.line);
            let (key, peer) = (key(look, connection), connection.peer);
            self.meters.entry(key).or_insert_with(|| {
                Meter::new(longest_match(lines, peer).map(|line| line.name.clone()), peer)
            });
        }
    }

    fn fills(&self, look: &SessionLook, last: Option<Micros>) -> bool {
        let (Some(bound_bps), Some(last)) = (look.bound_bps, last) else { return false };
        let grown = look.connections.iter().map(|it| {
            let meter = self.meters.get(&key(look, it));
            meter.map_or(0, |meter| meter.grown(it))
        });
        fills(grown.fold(0, u64::saturating_add), look.at.since(last), bound_bps)
    }

    /// The size of the session's send buffers together, if one limits its connection.
    fn limiting_bytes(&self, look: &SessionLook) -> Option<u64> {
        let limiting = look
            .connections
            .iter()
            .filter_map(|it| self.meters.get(&key(look, it)).and_then(Meter::limiting_buffer));
        limiting.max().map(|bytes| bytes.saturating_mul(look.connections.len() as u64))
    }

    fn advance(
        &mut self,
        now: Micros,
        key: ConnectionKey,
        interval: Option<Interval>,
        limiting_bytes: Option<u64>,
    ) {
        let meters = &self.meters;
        let Some(name) = meters.get(&key).and_then(|meter| meter.profile.as_ref()) else { return };
        let busy = || {
            let of_profile = meters.iter().filter(|(_, meter)| meter.profile.as_ref() == Some(name));
            of_profile.filter(|(_, meter)| meter.is_busy(now)).map(|(key, _)| *key).collect()
        };
        let around = Around { now, offer: &self.offer, busy: &busy, limiting_bytes };
        if let Some(run) = self.runs.get_mut(name) {
            run.look(key, interval, &around, &mut self.news);
        }
    }

    fn looked(&self, look: &SessionLook) -> Looked {
        let mut looked = Looked::default();
        for connection in &look.connections {
            let key = key(look, connection);
            let Some(run) = self.run_of(key) else { continue };
            let is_of_it = |it: &&ConnectionLook| {
                self.run_of(ConnectionKey { session: look.session, stream: it.stream })
                    .is_some_and(|other| other.line.name == run.line.name)
            };
            let count = look.connections.iter().filter(is_of_it).count();
            let knobs = run.knobs(key).of_one(count);
            looked.settings.push(ConnectionSetting { stream: connection.stream, knobs });
            if connection.stream == StreamId::FIRST {
                looked.connections = run.connections();
            }
        }
        looked.profile = self.profile(look);
        looked
    }

    /// The profile of the first connection; a canary among the session's connections makes it the state.
    fn profile(&self, look: &SessionLook) -> Option<SessionProfile> {
        let first = ConnectionKey { session: look.session, stream: StreamId::FIRST };
        let run = self.run_of(first)?;
        let keys = look.connections.iter().map(|it| key(look, it));
        let mut of_it = keys.filter(|key| self.run_of(*key).is_some_and(|it| it.line.name == run.line.name));
        let shown = of_it.find(|key| run.is_canary(*key)).unwrap_or(first);
        Some(SessionProfile { name: run.line.name.clone(), state: run.state(shown), knobs: run.knobs(shown) })
    }

    fn run_of(&self, key: ConnectionKey) -> Option<&Run> {
        self.runs.get(self.meters.get(&key)?.profile.as_ref()?)
    }

    fn of_session(&self, session: u64) -> Vec<ConnectionKey> {
        let of = |stream| ConnectionKey { session, stream };
        let keys = self.meters.range(of(StreamId::FIRST)..=of(StreamId(u32::MAX)));
        keys.map(|(key, _)| *key).collect()
    }

    /// The profile that a connection has, and the one that it should have.
    fn profile_of(&self, key: ConnectionKey) -> Option<(Option<String>, Option<String>)> {
        let meter = self.meters.get(&key)?;
        let matched = longest_match(self.runs.values().map(|run| &run.line), meter.peer);
        Some((meter.profile.clone(), matched.map(|line| line.name.clone())))
    }

    fn remove(&mut self, key: ConnectionKey) {
        let profile = self.meters.remove(&key).and_then(|meter| meter.profile);
        if let Some(run) = profile.and_then(|name| self.runs.get_mut(&name)) {
            run.gone(key);
        }
    }
}

fn key(look: &SessionLook, connection: &ConnectionLook) -> ConnectionKey {
    ConnectionKey { session: look.session, stream: connection.stream }
}
