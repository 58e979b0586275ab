//! The changes of a site's line that concern its session.
use crate::session::SessionInput;
use crate::sites::SiteLine;

/// The inputs for the session of a site whose line changed.
pub(super) fn inputs(known: Option<&SiteLine>, line: &SiteLine) -> Vec<SessionInput> {
    let mut inputs = Vec::new();
    if known.is_none_or(|known| known.data_connections != line.data_connections) {
        inputs.push(SessionInput::PinStreams(line.data_connections));
    }
    let pace = |line: &SiteLine| (line.access_rate_bps, line.ceiling_bps_by_hour.clone());
    if known.is_none_or(|known| pace(known) != pace(line)) {
        inputs.push(SessionInput::Pace);
    }
    let nodes = |line: &SiteLine| (line.nodes_version, line.nodes.clone());
    let moved = known.is_none_or(|known| nodes(known) != nodes(line));
    if moved || known.is_none_or(|known| known.subscriptions != line.subscriptions) {
        inputs.push(SessionInput::Subscriptions);
    }
    if moved || known.is_none_or(|known| known.resends != line.resends) {
        inputs.push(SessionInput::Resends);
    }
    if known.is_none_or(|known| known.via != line.via) {
        inputs.push(SessionInput::Ways);
    }
    if known.map(|known| &known.rights.siblings) != Some(&line.rights.siblings) {
        inputs.push(SessionInput::Siblings);
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(changes: serde_json::Value) -> SiteLine {
        let mut line = serde_json::json!({
            "site": "unl.edu", "active": true, "credentials": [], "subscriptions": [],
        });
        line.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    /// One letter for each input after a change of the line.
    fn told(known: Option<serde_json::Value>, changes: serde_json::Value) -> String {
        let letter = |input: &SessionInput| match input {
            SessionInput::PinStreams(_) => 'd',
            SessionInput::Pace => 'p',
            SessionInput::Subscriptions => 's',
            SessionInput::Resends => 'r',
            SessionInput::Ways => 'w',
            SessionInput::Siblings => 'i',
            _ => '?',
        };
        inputs(known.map(line).as_ref(), &line(changes)).iter().map(letter).collect()
    }

    #[test]
    fn a_session_learns_exactly_the_parts_that_changed() {
        let same = || Some(serde_json::json!({}));
        assert_eq!(told(None, serde_json::json!({})), "dpsrwi", "of a site that was not known");
        assert_eq!(told(same(), serde_json::json!({})), "");
        assert_eq!(told(same(), serde_json::json!({"data_connections": 3})), "d");
        assert_eq!(told(same(), serde_json::json!({"access_rate_bps": 9})), "p");
        assert_eq!(told(same(), serde_json::json!({"ceiling_bps_by_hour": [5]})), "p");
        assert_eq!(told(same(), serde_json::json!({"via": ["relay:1"]})), "w");
        let siblings = serde_json::json!({"upload_bytes_per_second": 1, "upload_bytes_per_day": 2});
        assert_eq!(told(same(), serde_json::json!({"siblings": siblings})), "i");
        let wish = serde_json::json!([{"feed": "NGRID", "pattern": ".*", "not_pattern": null}]);
        assert_eq!(told(same(), serde_json::json!({"subscriptions": wish})), "s");
    }

    #[test]
    fn a_site_that_moves_among_nodes_looks_at_its_subscriptions_and_resends_again() {
        let same = || Some(serde_json::json!({}));
        assert_eq!(told(same(), serde_json::json!({"nodes_version": 2})), "sr");
        let nodes = serde_json::json!([{"address": "one:1", "feeds": ["A"]}]);
        assert_eq!(told(same(), serde_json::json!({"nodes": nodes})), "sr");
    }

    #[test]
    fn other_parts_of_the_line_concern_no_session() {
        let known = serde_json::json!({"interface": "eth0", "ldm_order": 1});
        let changes = serde_json::json!({"interface": "eth1", "ldm_order": 2});
        assert_eq!(told(Some(known), changes), "");
    }
}
