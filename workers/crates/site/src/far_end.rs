//! The other end of a circuit between two sites, as the end that watches it hears it.
use std::net::IpAddr;

use downburst_model::Micros;
use downburst_session::CircuitFault;

/// The other end of a circuit.
#[derive(Clone, Debug)]
pub struct FarEnd {
    address: IpAddr,
    /// The own interface of the circuit.
    interface: String,
    /// The last report; `None` before the first answer.
    answers: Option<bool>,
}

impl FarEnd {
    /// An end that has not answered so far.
    pub fn new(address: IpAddr, interface: String) -> Self {
        Self { address, interface, answers: None }
    }

    /// Its address inside the circuit.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The hub has forgotten the reports: the next answer is news.
    pub fn forget(&mut self) {
        self.answers = None;
    }

    /// The report for the hub, if there is news; `heard`: the time since the last answer.
    pub fn look(&mut self, heard: Option<Micros>) -> Option<Result<(), CircuitFault>> {
        let answers = heard.is_some_and(|since| since < SILENCE);
        if self.answers.unwrap_or(false) == answers {
            return None;
        }
        self.answers = Some(answers);
        Some(if answers { Ok(()) } else { Err(CircuitFault::silent(&self.interface, heard)) })
    }
}

/// Five answers in a row are missing.
const SILENCE: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_first_answer_its_silence_and_its_return_are_news() {
        let mut far = FarEnd::new("10.9.0.1".parse().unwrap(), "dbc17".to_owned());
        let mut look = |heard_ms: Option<u64>| far.look(heard_ms.map(Micros::from_millis));
        assert_eq!(look(None), None, "it may take a while to come up");
        assert_eq!(look(Some(20)), Some(Ok(())));
        assert_eq!(look(Some(999)), None);
        assert_eq!(
            look(Some(1_000)).unwrap().unwrap_err().sentence,
            "nothing came back through dbc17 for 1.0 s"
        );
        assert_eq!(look(Some(5_000)), None);
        assert_eq!(look(Some(0)), Some(Ok(())));
    }

    #[test]
    fn a_hub_that_forgot_hears_of_it_again() {
        let mut far = FarEnd::new("10.9.0.1".parse().unwrap(), "dbc17".to_owned());
        far.look(Some(Micros(1)));
        far.forget();
        assert_eq!(far.look(Some(Micros(1))), Some(Ok(())));
    }
}
