//! The site's ends of circuits, as its session hears of them.
use downburst_session::{CircuitFault, CircuitState};

use super::Session;
use downburst_hub::shown;

impl Session {
    pub(super) fn circuit_said(&self, state: CircuitState) {
        let Some(member) = &self.member else { return };
        let said = state.fault.map_or(Ok(()), |fault| {
            let CircuitFault { step, sentence, remedy } = fault;
            Err(CircuitFault { step: shown(&step), sentence: shown(&sentence), remedy: shown(&remedy) })
        });
        self.hub.circuit_said(&member.site, state.lease, said);
    }
}
