//! Samples as lines of a table with commas: values, or the growth of counters.
use std::collections::BTreeMap;

use downburst_model::{WallMicros, moment};

use crate::record::{Connection, Role};
use crate::sample::Sample;
use crate::variable::Variable;
use crate::verdict::GAP;

/// Writes the lines of a table.
#[derive(Debug)]
pub struct Table {
    variables: Vec<Variable>,
    /// The last sample of each connection; `None`: the lines have values.
    before: Option<BTreeMap<Connection, Sample>>,
}

impl Table {
    /// Begins a table of these variables; with `deltas`, counters are replaced by their growth since the sample before.
    pub fn new(variables: Vec<Variable>, deltas: bool) -> Self {
        Self { variables, before: deltas.then(BTreeMap::new) }
    }

    /// The first line.
    pub fn head(&self) -> String {
        let names = self.variables.iter().map(|variable| variable.name());
        let fixed = ["time", "local", "peer", "role"];
        fixed.into_iter().chain(names).collect::<Vec<_>>().join(",")
    }

    /// The line of a sample; `None`: it is the first of its connection, and nothing has grown.
    pub fn line(&mut self, connection: &Connection, sample: &Sample) -> Option<String> {
        let before = match &mut self.before {
            None => None,
            Some(known) => {
                let before = known.insert(connection.clone(), *sample).filter(|it| sample.follows(it));
                forget(known, sample.at);
                Some(before?)
            }
        };
        let value = |variable: &Variable| match &before {
            Some(before) if variable.counts() => sample.since(before, *variable),
            _ => sample.get(*variable),
        };
        let Connection { local, peer, role, .. } = connection;
        let mut line = format!("{},{local},{peer},{}", moment::rfc3339(sample.at), Role::name(*role));
        for variable in &self.variables {
            line.push(',');
            line.extend(value(variable).map(|value| value.to_string()));
        }
        Some(line)
    }
}

/// Drops connections that are gone, once there are many: an open one has a sample each second.
fn forget(known: &mut BTreeMap<Connection, Sample>, now: WallMicros) {
    if known.len() > MANY {
        known.retain(|_, sample| now.0.abs_diff(sample.at.0) <= GAP.0);
    }
}

/// Ten megabytes of memory.
const MANY: usize = 20_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::record;

    fn lines(deltas: bool, acked: &[u64]) -> Vec<String> {
        let mut table = Table::new(vec![Variable::Rtt, Variable::BytesAcked], deltas);
        let line = |(number, acked): (usize, &u64)| {
            let mut look = record(0, "a", number as i64 * 100_000);
            look.sample.set(Variable::BytesAcked, *acked);
            table.line(&look.connection, &look.sample)
        };
        acked.iter().enumerate().filter_map(line).collect()
    }

    #[test]
    fn a_line_has_time_ends_role_and_values() {
        assert_eq!(Table::new(vec![Variable::Rtt], false).head(), "time,local,peer,role,rtt");
        let expected = "1970-01-01T00:00:00.000Z,10.0.0.1:7370,10.0.0.2:40000,session,,7";
        assert_eq!(lines(false, &[7]), [expected], "the kernel did not report a round trip");
    }

    #[test]
    fn a_connection_with_the_ends_of_an_earlier_one_begins_anew() {
        let grown: Vec<String> = lines(true, &[5, 9, 2, 4]);
        let last = |line: &String| line.rsplit(',').next().unwrap().to_owned();
        assert_eq!(grown.iter().map(last).collect::<Vec<_>>(), ["4", "2"]);
    }

    #[test]
    fn connections_that_are_gone_are_forgotten_once_there_are_many() {
        let mut table = Table::new(vec![], true);
        for number in 0..2 * MANY {
            let mut look = record(0, "", number as i64 * 1_000);
            look.connection.peer.set_port(number as u16);
            look.connection.local.set_port((number >> 16) as u16);
            table.line(&look.connection, &look.sample);
        }
        assert!(table.before.unwrap().len() <= MANY);
    }

    proptest! {
        #[test]
        fn growths_add_up_to_the_difference_of_the_values(grows in prop::collection::vec(0..1_000_000_u64, 2..50)) {
            let acked: Vec<u64> = grows.iter().scan(0, |sum, more| { *sum += more; Some(*sum) }).collect();
            let last = |line: &String| line.rsplit(',').next().unwrap().parse::<u64>().unwrap();
            let sum: u64 = lines(true, &acked).iter().map(last).sum();
            prop_assert_eq!(sum, acked[acked.len() - 1] - acked[0]);
            prop_assert_eq!(lines(false, &acked).iter().map(last).collect::<Vec<_>>(), acked);
        }
    }
}
