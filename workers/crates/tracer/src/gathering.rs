//! A question about a site's connections, and its answer: bounded, whatever the ring holds.
use std::collections::{BTreeMap, VecDeque};

use downburst_model::{SiteName, WallMicros};
use serde::{Deserialize, Serialize};

use crate::record::{Connection, Record, Role};
use crate::ring::Scan;
use crate::sample::Sample;
use crate::selection::Selection;
use crate::stalls::{Stall, stalls};
use crate::variable::Variable;
use crate::verdict::{Verdict, verdict};

/// Asks for the samples of a site's connections.
#[derive(Clone, Debug, Deserialize)]
pub struct TracerLine {
    /// The site.
    pub site: SiteName,
    /// Samples of this time or later.
    pub from_us: WallMicros,
    /// And before this.
    pub to_us: WallMicros,
    /// The most samples of each connection in the answer; all of them are judged.
    #[serde(default = "default_points")]
    pub points: usize,
    /// Names of the variables to answer; empty: all.
    #[serde(default)]
    pub variables: Vec<String>,
}

/// The samples that are wanted of a ring.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Of these connections.
    pub selection: Selection,
    /// Of this time or later.
    pub from: WallMicros,
    /// And before this.
    pub to: WallMicros,
    /// The most samples of each connection in the answer; all of them are judged.
    pub points: usize,
    /// The variables to answer.
    pub variables: Vec<Variable>,
}

/// Gathers the samples that a question asks for.
#[derive(Debug)]
pub struct Gathering {
    wanted: Wanted,
    found: BTreeMap<Connection, VecDeque<Sample>>,
    samples: usize,
    complete: bool,
}

/// How the sampling itself stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The reason why this node takes no samples; null: it does.
    pub unable: Option<String>,
    /// Looks that came too late and were left out, since the node began.
    pub missed_ticks: u64,
}

/// What the ring holds of a site's connections.
#[derive(Debug, Serialize)]
pub struct TracerAnswer {
    #[serde(flatten)]
    pub(crate) standing: Standing,
    /// Damaged records that were passed over.
    pub(crate) damaged: u64,
    /// The times of the ring's oldest and newest sample, of any site; null: it is empty.
    since_us: Option<WallMicros>,
    until_us: Option<WallMicros>,
    /// False: there were more samples or connections than an answer holds; the newest are here.
    pub(crate) complete: bool,
    /// The names of the columns of `samples` behind the first, which is the time.
    variables: Vec<&'static str>,
    pub(crate) connections: Vec<ConnectionAnswer>,
}

/// One connection.
#[derive(Debug, Serialize)]
pub struct ConnectionAnswer {
    pub(crate) local: String,
    pub(crate) peer: String,
    pub(crate) role: Role,
    /// Time and values, oldest first; null: the kernel does not report it.
    samples: Vec<Vec<Option<i64>>>,
    pub(crate) verdict: Option<Verdict>,
    /// The longest, in their order.
    pub(crate) stalls: Vec<Stall>,
}

impl Wanted {
    /// True for a record of these connections and this time.
    pub fn takes(&self, record: &Record) -> bool {
        let at = record.sample.at;
        self.from <= at && at < self.to && self.selection.takes(&record.connection)
    }
}

impl Gathering {
    /// Begins.
    pub const fn new(wanted: Wanted) -> Self {
        Self { wanted, found: BTreeMap::new(), samples: 0, complete: true }
    }

    /// Begins with a question about a site.
    ///
    /// # Errors
    ///
    /// A sentence: no variable has a given name.
    pub fn begin(line: TracerLine) -> Result<Self, String> {
        let TracerLine { site, from_us: from, to_us: to, points, variables } = line;
        let selection = Selection { site: Some(site), ..Selection::default() };
        Ok(Self::new(Wanted { selection, from, to, points, variables: Variable::chosen(&variables)? }))
    }

    /// Takes a record of the ring; they come oldest first.
    pub fn take(&mut self, record: Record) {
        if !self.wanted.takes(&record) {
            return;
        }
        self.found.entry(record.connection).or_default().push_back(record.sample);
        self.samples += 1;
        self.bound();
    }

    /// The answer, once the whole ring was read.
    pub fn answer(self, standing: Standing, scan: &Scan) -> TracerAnswer {
        let Wanted { points, variables, .. } = &self.wanted;
        let points = (*points).clamp(2, (POINTS_MOST / self.found.len().max(1)).max(2));
        let answered = |(connection, samples)| answered(connection, samples, variables, points);
        TracerAnswer {
            standing,
            damaged: scan.damaged,
            since_us: scan.span.map(|(oldest, _)| oldest),
            until_us: scan.span.map(|(_, newest)| newest),
            complete: self.complete,
            variables: variables.iter().map(|variable| variable.name()).collect(),
            connections: self.found.into_iter().map(answered).collect(),
        }
    }

    /// Drops the oldest beyond the bounds.
    fn bound(&mut self) {
        if self.samples <= SAMPLES_MOST && self.found.len() <= CONNECTIONS_MOST {
            return;
        }
        self.complete = false;
        let newest = |samples: &VecDeque<Sample>| samples.back().map(|sample| sample.at);
        let oldest = |samples: &VecDeque<Sample>| samples.front().map(|sample| sample.at);
        if self.found.len() > CONNECTIONS_MOST {
            let least =
                self.found.iter().min_by_key(|(_, samples)| newest(samples)).map(|(it, _)| it.clone());
            let dropped = least.and_then(|connection| self.found.remove(&connection));
            self.samples -= dropped.map_or(0, |samples| samples.len());
        } else if let Some(samples) = self.found.values_mut().min_by_key(|samples| oldest(samples)) {
            self.samples -= usize::from(samples.pop_front().is_some());
        }
        self.found.retain(|_, samples| !samples.is_empty());
    }
}

fn answered(
    connection: Connection,
    samples: VecDeque<Sample>,
    variables: &[Variable],
    points: usize,
) -> ConnectionAnswer {
    let samples = Vec::from(samples);
    let other_end = if connection.role == Role::Other { "peer" } else { "site" };
    ConnectionAnswer {
        local: connection.local.to_string(),
        peer: connection.peer.to_string(),
        role: connection.role,
        verdict: verdict(&samples, other_end),
        stalls: longest(stalls(&samples)),
        samples: thinned(&samples, points).map(|sample| row(sample, variables)).collect(),
    }
}

/// At most so many samples, evenly, with the first and the last: counters lose nothing by that.
fn thinned(samples: &[Sample], points: usize) -> impl Iterator<Item = &Sample> {
    let (last, points) = (samples.len().saturating_sub(1), points.min(samples.len()));
    let at = move |point: usize| if points < 2 { last } else { point * last / (points - 1) };
    (0..points).filter_map(move |point| samples.get(at(point)))
}

fn row(sample: &Sample, variables: &[Variable]) -> Vec<Option<i64>> {
    let value = |variable: &Variable| sample.get(*variable).map(|it| i64::try_from(it).unwrap_or(i64::MAX));
    std::iter::once(Some(sample.at.0)).chain(variables.iter().map(value)).collect()
}

fn longest(mut found: Vec<Stall>) -> Vec<Stall> {
    found.sort_by_key(|stall| stall.from_us.0.saturating_sub(stall.until_us.0));
    found.truncate(STALLS_MOST);
    found.sort_by_key(|stall| stall.from_us);
    found
}

const fn default_points() -> usize {
    600
}

/// A session and its data connections, several times over.
const CONNECTIONS_MOST: usize = 64;

/// In all connections of an answer: four megabytes of text, a quarter of the longest line.
const POINTS_MOST: usize = 20_000;

/// Twenty megabytes of memory.
const SAMPLES_MOST: usize = 100_000;
const STALLS_MOST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn line(points: usize, variables: &[&str]) -> TracerLine {
        TracerLine {
            site: SiteName::parse("a").unwrap(),
            from_us: WallMicros(0),
            to_us: WallMicros(i64::MAX),
            points,
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn answer(gathering: Gathering) -> serde_json::Value {
        serde_json::to_value(gathering.answer(Standing::default(), &Scan::default())).unwrap()
    }

    #[test]
    fn a_sites_samples_are_thinned_and_other_sites_are_left_out() {
        let mut gathering = Gathering::begin(line(11, &["bytes_acked"])).unwrap();
        for number in 0..1_000 {
            gathering.take(record(number, if number % 2 == 0 { "a" } else { "b" }, number as i64 * 50_000));
        }
        let told = answer(gathering);
        let connection = &told["connections"][0];
        assert_eq!(connection["samples"].as_array().unwrap().len(), 11);
        assert_eq!(connection["samples"][0], serde_json::json!([0, 0]));
        assert_eq!(connection["samples"][10], serde_json::json!([49_900_000, 998_000]));
        assert_eq!(
            (connection["role"].as_str(), connection["peer"].as_str()),
            (Some("session"), Some("10.0.0.2:40000"))
        );
        assert_eq!(told["connections"].as_array().unwrap().len(), 1);
        assert_eq!(told["complete"], true);
    }

    #[test]
    fn the_period_bounds_what_is_taken() {
        let mut asked = line(100, &[]);
        (asked.from_us, asked.to_us) = (WallMicros(3), WallMicros(5));
        let mut gathering = Gathering::begin(asked).unwrap();
        (0..10).for_each(|number| gathering.take(record(number, "a", number as i64)));
        assert_eq!(answer(gathering)["connections"][0]["samples"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_newest_connections_and_samples_are_kept() {
        let mut gathering = Gathering::begin(line(600, &["rtt"])).unwrap();
        for number in 0..=SAMPLES_MOST as u64 + 70 {
            let mut one = record(number, "a", number as i64);
            one.connection.peer.set_port(if number < 70 { 1_000 + number as u16 } else { 2_000 });
            gathering.take(one);
        }
        assert!(!gathering.complete && gathering.samples <= SAMPLES_MOST);
        let told = answer(gathering);
        let connections = told["connections"].as_array().unwrap();
        let newest = connections.iter().find(|it| it["peer"] == "10.0.0.2:2000").unwrap();
        assert_eq!(
            newest["samples"][newest["samples"].as_array().unwrap().len() - 1][0],
            SAMPLES_MOST as u64 + 70
        );
        assert!(connections.len() <= CONNECTIONS_MOST);
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_known_ones() {
        let sentence = Gathering::begin(line(5, &["bytes_acked", "cwnd"])).unwrap_err();
        assert!(sentence.contains("\"cwnd\"") && sentence.contains("snd_cwnd"), "{sentence}");
    }
}
