//! The result of an attempt to create or change a circuit.
use downburst_model::SiteName;
use downburst_session::CircuitFault;

use super::ends::CircuitEnds;
use super::held::HeldCircuit;
use super::lease::Lease;
use super::lines::{CircuitWord, EndStanding, EndWord};

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The state of the circuit.
    pub state: CircuitWord,
    /// The ends, the near one first.
    pub ends: Vec<EndStanding>,
}

/// The result once the sites have reported their ends, or had the time to.
pub fn attempt_result(circuit: &HeldCircuit, reports: &CircuitEnds) -> Attempt {
    let others = parties(&circuit.lease).map(|(site, end)| match reports.report(site) {
        Some(Ok(())) => stood(end, Some(site), EndWord::Up),
        Some(Err(fault)) => failed(end, Some(site), circuit.hop_of(site), fault.clone()),
        None => stood(end, Some(site), EndWord::Away),
    });
    let own = circuit.lease.own_port().map(|port| stood(port, None, EndWord::Up));
    let ends: Vec<EndStanding> = own.into_iter().chain(others).collect();
    let any = |word: EndWord| ends.iter().any(|end| end.state == word);
    let state = match () {
        () if any(EndWord::Failed) => CircuitWord::Failed,
        () if any(EndWord::Away) => CircuitWord::Partial,
        () => CircuitWord::Up,
    };
    Attempt { state, ends }
}

/// The result if the hub's own part can't be set up.
pub fn failed_begin(lease: &Lease, hub: &str, fault: CircuitFault) -> Attempt {
    let own = failed(lease.own_port().unwrap_or_default(), None, lease.hop(hub), fault);
    let others = parties(lease).map(|(site, end)| stood(end, Some(site), EndWord::Away));
    Attempt { state: CircuitWord::Failed, ends: std::iter::once(own).chain(others).collect() }
}

/// The sites with their ports: those of ends, then those between two hops.
fn parties(lease: &Lease) -> impl Iterator<Item = (&SiteName, &str)> {
    lease.others.iter().map(|(site, end, _)| (site, end.end.as_str())).chain(lease.transits())
}

fn stood(end: &str, site: Option<&SiteName>, state: EndWord) -> EndStanding {
    let (end, site) = (end.to_owned(), site.cloned());
    EndStanding { end, site, state, step: None, hop: None, sentence: None, remedy: None }
}

fn failed(end: &str, site: Option<&SiteName>, hop: String, fault: CircuitFault) -> EndStanding {
    let CircuitFault { step, sentence, remedy } = fault;
    let (step, hop) = (Some(step), Some(hop));
    EndStanding {
        step,
        hop,
        sentence: Some(sentence),
        remedy: Some(remedy),
        ..stood(end, site, EndWord::Failed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::held::tests::{held, oslo};
    use super::*;

    fn fault() -> CircuitFault {
        CircuitFault { step: "port".to_owned(), sentence: "no port".to_owned(), remedy: "plug it".to_owned() }
    }

    fn result(report: Option<Result<(), CircuitFault>>) -> Attempt {
        let mut ends = CircuitEnds::default();
        ends.offered(&oslo());
        if let Some(report) = report {
            ends.said(&oslo(), report);
        }
        attempt_result(&held(true), &ends)
    }

    #[test]
    fn a_circuit_is_up_with_all_its_ends() {
        let states =
            |attempt: Attempt| (attempt.state, attempt.ends.iter().map(|end| end.state).collect::<Vec<_>>());
        assert_eq!(states(result(Some(Ok(())))), (CircuitWord::Up, vec![EndWord::Up, EndWord::Up]));
        assert_eq!(states(result(None)), (CircuitWord::Partial, vec![EndWord::Up, EndWord::Away]));
        assert_eq!(
            states(result(Some(Err(fault())))),
            (CircuitWord::Failed, vec![EndWord::Up, EndWord::Failed])
        );
    }

    #[test]
    fn answers_name_the_place_of_a_failure() {
        let failed = serde_json::to_value(&result(Some(Err(fault()))).ends).unwrap();
        assert_eq!(
            failed,
            json!([
                {"end": "h0", "site": null, "state": "up", "step": null, "hop": null, "sentence": null,
                    "remedy": null},
                {"end": "p0", "site": "oslo", "state": "failed", "step": "port", "hop": "p0 at oslo",
                    "sentence": "no port", "remedy": "plug it"},
            ])
        );
        let begin = failed_begin(&held(true).lease, "hub", fault());
        assert_eq!(begin.state, CircuitWord::Failed);
        let (own, other) = (&begin.ends[0], &begin.ends[1]);
        assert_eq!(
            (own.state, own.hop.as_deref(), other.state),
            (EndWord::Failed, Some("h0 at hub"), EndWord::Away)
        );
    }
}
