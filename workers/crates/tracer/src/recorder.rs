//! The choice of the samples that are worth a record.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use downburst_model::Micros;

use crate::record::Connection;
use crate::sample::Sample;
use crate::variable::Variable;

/// Remembers the last record of each open connection.
#[derive(Debug, Default)]
pub struct Recorder {
    last: BTreeMap<(SocketAddr, SocketAddr), Last>,
}

#[derive(Debug)]
struct Last {
    connection: Connection,
    sample: Sample,
    at: Micros,
}

impl Recorder {
    /// Passes on the samples that differ from their connection's last record; one without news passes once a second.
    /// `looked` are all open connections: what is remembered of others is dropped.
    pub fn worth(
        &mut self,
        now: Micros,
        looked: impl IntoIterator<Item = (Connection, Sample)>,
    ) -> Vec<(Connection, Sample)> {
        let mut before = std::mem::take(&mut self.last);
        let mut worth = Vec::new();
        for (connection, sample) in looked {
            let key = (connection.local, connection.peer);
            let kept = before.remove(&key).filter(|last| !last.is_news(now, &connection, &sample));
            let kept = kept.unwrap_or_else(|| {
                worth.push((connection.clone(), sample));
                Last { connection, sample, at: now }
            });
            self.last.insert(key, kept);
        }
        worth
    }
}

impl Last {
    fn is_news(&self, now: Micros, connection: &Connection, sample: &Sample) -> bool {
        let differs = |variable: &Variable| self.sample.get(*variable) != sample.get(*variable);
        self.connection != *connection || now.since(self.at) >= AT_LEAST || NEWS.iter().any(differs)
    }
}

/// What moves while a connection is in use.
const NEWS: [Variable; 6] = [
    Variable::BytesAcked,
    Variable::BytesSent,
    Variable::TotalRetrans,
    Variable::BusyTime,
    Variable::Unacked,
    Variable::NotsentBytes,
];

/// Ten idle connections write 2.6 kB/s: no disk wears.
const AT_LEAST: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn look(acked: u64) -> Vec<(Connection, Sample)> {
        let mut looked = record(0, "a", 0);
        looked.sample.set(Variable::BytesAcked, acked);
        vec![(looked.connection, looked.sample)]
    }

    #[test]
    fn an_idle_connection_is_recorded_once_a_second() {
        let mut recorder = Recorder::default();
        let worth = |tick: u64| recorder.worth(Micros::from_millis(tick * 100), look(5)).len();
        assert_eq!((0..31).map(worth).sum::<usize>(), 4);
    }

    #[test]
    fn a_busy_one_is_recorded_each_time_and_a_closed_one_is_forgotten() {
        let mut recorder = Recorder::default();
        for tick in 0..10 {
            assert_eq!(recorder.worth(Micros::from_millis(tick * 100), look(tick)).len(), 1);
        }
        assert!(recorder.worth(Micros::from_secs(1), []).is_empty() && recorder.last.is_empty());
    }

    #[test]
    fn a_connection_that_turns_out_to_be_a_sites_is_news() {
        let mut recorder = Recorder::default();
        let mut admitted = look(1);
        admitted[0].0.site = None;
        assert_eq!(recorder.worth(Micros(0), admitted).len(), 1);
        assert_eq!(recorder.worth(Micros(100_000), look(1)).len(), 1);
    }
}
