//! An answer in words, for a terminal.
use downburst_model::{WallMicros, moment};

use crate::gathering::{ConnectionAnswer, TracerAnswer};
use crate::stalls::Stall;
use crate::verdict::Verdict;

impl TracerAnswer {
    /// The connections with their limits and stalls, then notes; a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.connections.iter().flat_map(connection).collect();
        if self.connections.is_empty() {
            lines.push("no connection that fits was recorded in this time".to_owned());
        }
        if !self.complete {
            lines
                .push("note: there are more samples than are judged; ask for less with --seconds".to_owned());
        }
        if self.damaged > 0 {
            lines.push(format!("note: {} damaged records were passed over", self.damaged));
        }
        if self.standing.missed_ticks > 0 {
            let missed = self.standing.missed_ticks;
            lines.push(format!("note: {missed} looks were left out: this host is busy"));
        }
        lines
    }
}

fn connection(found: &ConnectionAnswer) -> Vec<String> {
    let ConnectionAnswer { local, peer, role, .. } = found;
    let mut lines = vec![format!("{peer} ({}), from {local}", role.name())];
    match &found.verdict {
        None => lines.push("  too few samples to judge".to_owned()),
        Some(verdict) => lines.extend(judgement(verdict)),
    }
    lines.extend(found.stalls.iter().map(stall));
    lines
}

fn judgement(verdict: &Verdict) -> [String; 2] {
    let counts = verdict.shares.iter().filter(|one| one.share >= LEAST_SHOWN);
    let shares: Vec<String> =
        counts.map(|one| format!("{} {:.0}%", one.limit.name(), one.share * 100.0)).collect();
    [
        format!("  {}: {}", verdict.leading.name(), verdict.sentence),
        format!("  of {:.1} s: {}", verdict.seconds, shares.join(", ")),
    ]
}

fn stall(it: &Stall) -> String {
    let WallMicros(length) = WallMicros(it.until_us.0.saturating_sub(it.from_us.0));
    let lasts = if it.ended { "" } else { ", and it may last on" };
    format!(
        "  stall of {:.1} s from {}: nothing was acknowledged, {} bytes waited{lasts}",
        length as f64 / 1e6,
        moment::rfc3339(it.from_us),
        it.waiting_bytes,
    )
}

const LEAST_SHOWN: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::{Gathering, Role, Scan, Selection, Standing, Variable, Wanted};

    fn told(looks: u64, damaged: u64) -> String {
        let mut gathering = Gathering::new(Wanted {
            selection: Selection::default(),
            from: WallMicros(0),
            to: WallMicros(i64::MAX),
            points: 10,
            variables: Variable::all().collect(),
        });
        for number in 0..looks {
            let mut look = record(number, "", number as i64 * 100_000);
            look.connection.role = Role::Other;
            look.sample.set(Variable::BytesAcked, 5);
            look.sample.set(Variable::NotsentBytes, 900);
            for counter in [Variable::BusyTime, Variable::RwndLimited] {
                look.sample.set(counter, number * 100_000);
            }
            gathering.take(look);
        }
        let standing = Standing { unable: None, missed_ticks: damaged };
        let mut scan = Scan::default();
        scan.damaged = damaged;
        gathering.answer(standing, &scan).lines().join("\n")
    }

    #[test]
    fn limit_shares_and_stalls_of_another_process_are_told() {
        let told = told(11, 0);
        assert!(told.starts_with("10.0.0.2:40000 (other), from 10.0.0.1:7370\n"), "{told}");
        assert!(told.contains("receive-window: In 100 % of the time the peer's receive window"), "{told}");
        assert!(told.contains("\n  of 1.0 s: receive-window 100%\n"), "{told}");
        assert!(told.contains("stall of 1.0 s from 1970-01-01T00:00:00.000Z"), "{told}");
        assert!(told.ends_with("900 bytes waited, and it may last on"), "{told}");
    }

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(told(0, 0), "no connection that fits was recorded in this time");
        assert!(told(1, 0).ends_with("too few samples to judge"));
        let notes = told(1, 3);
        assert!(notes.contains("3 damaged records") && notes.contains("3 looks were left out"), "{notes}");
    }
}
