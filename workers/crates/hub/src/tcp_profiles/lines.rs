//! The agent's lines about TCP profiles: the fields of the job, of the event and of the accounts.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::knobs::Knobs;
use super::prefix::Prefix;

/// One profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProfileLine {
    /// Its name.
    pub name: String,
    /// The destinations.
    pub prefix: Prefix,
    /// The use of its options.
    pub mode: Mode,
    /// The operator's options.
    pub knobs: Knobs,
    /// The options that a node learnt earlier.
    #[serde(default)]
    pub learnt: Option<Knobs>,
}

/// The use of a profile's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They apply to every connection.
    Static,
    /// They are tried, and kept or taken back.
    Trial,
    /// The node tries options of its own, and reports those that it keeps.
    Learn,
}

/// A step of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialLine {
    /// The profile.
    pub name: String,
    /// The step.
    pub step: TrialStep,
    /// The candidate.
    pub knobs: Knobs,
    /// The options that applied until then.
    pub before: Knobs,
    /// The number of connections with the candidate.
    pub canaries: usize,
    /// The number of connections that they are compared with.
    pub others: usize,
    /// The median of a canary, over the windows compared.
    pub canary_bps: Option<u64>,
    /// The median of one of the others.
    pub others_bps: Option<u64>,
    /// The number of windows compared.
    pub windows: u32,
    /// One sentence.
    pub reason: String,
}

/// See [`TrialLine::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStep {
    /// The first canaries have the candidate.
    Began,
    /// Every connection has it from here on.
    Kept,
    /// It did not bring more.
    NotBetter,
    /// Throughput fell.
    TakenBack,
}

/// News for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileNews {
    /// A step of a trial.
    Trial(Box<TrialLine>),
    /// A fault, in one sentence.
    Fault(String),
}

/// The profile of a session's connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionProfile {
    /// The profile.
    pub name: String,
    /// The state of the session's connections.
    pub state: ProfileState,
    /// The options that apply; buffers are those of all connections together.
    pub knobs: Knobs,
}

/// See [`SessionProfile::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileState {
    /// The operator's options, or those of a trial that was kept.
    Static,
    /// The options from before a trial.
    Base,
    /// A connection of the session tries a candidate.
    Canary,
    /// The options that were learnt.
    Learnt,
}

/// Checks a whole list of profiles; the error is a sentence that names the profile.
pub fn check_profiles(profiles: &[ProfileLine]) -> Result<(), String> {
    if profiles.len() > PROFILES_MAX {
        let count = profiles.len();
        return Err(format!("`profiles` has {count} entries; at most {PROFILES_MAX} can be"));
    }
    let (mut names, mut prefixes) = (BTreeSet::new(), BTreeSet::new());
    for line in profiles {
        check_name(&line.name)?;
        let in_profile = |sentence: String| format!("the TCP profile {:?}: {sentence}", line.name);
        line.knobs.check().map_err(in_profile)?;
        line.learnt.as_ref().map_or(Ok(()), Knobs::check).map_err(in_profile)?;
        if !names.insert(&line.name) {
            return Err(format!("two TCP profiles have the name {:?}; rename one", line.name));
        }
        if !prefixes.insert(line.prefix) {
            return Err(format!("two TCP profiles have the prefix {}; remove one", line.prefix));
        }
    }
    Ok(())
}

/// The profile of an address: that with the longest prefix.
pub(super) fn longest_match<'a>(
    profiles: impl Iterator<Item = &'a ProfileLine>,
    address: IpAddr,
) -> Option<&'a ProfileLine> {
    profiles.filter(|line| line.prefix.has(address)).max_by_key(|line| line.prefix.length())
}

fn check_name(name: &str) -> Result<(), String> {
    let length = name.chars().count();
    if (1..=NAME_CHARS_MAX).contains(&length) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    Err(format!("`name` is {shown:?}; a TCP profile's name has 1 to {NAME_CHARS_MAX} printable characters"))
}

const PROFILES_MAX: usize = 1_000;
const NAME_CHARS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(name: &str, prefix: &str) -> Value {
        json!({"name": name, "prefix": prefix, "mode": "static", "knobs": {"congestion": "bbr"}, "learnt": null})
    }

    fn refused(lines: Value) -> String {
        let lines = serde_json::from_value::<Vec<ProfileLine>>(lines).map_err(|error| error.to_string());
        lines.and_then(|lines| check_profiles(&lines)).unwrap_err()
    }

    #[test]
    fn a_list_is_refused_for_one_bad_profile() {
        let good = line("a", "192.0.2.0/24");
        for (bad, says) in [
            (line("a", "10.0.0.0/8"), "have the name \"a\""),
            (line("b", "192.0.2.0/24"), "have the prefix 192.0.2.0/24"),
            (line("", "10.0.0.0/8"), "1 to 64"),
            (line(&"x".repeat(65), "10.0.0.0/8"), "1 to 64"),
            (line("b", "10.0.0.1/8"), "set them to zero"),
        ] {
            assert!(refused(json!([good, bad])).contains(says), "{bad}");
        }
        let mut learnt = line("b", "10.0.0.0/8");
        learnt["learnt"] = json!({"connections": 99});
        assert!(refused(json!([learnt])).starts_with("the TCP profile \"b\": `connections` is 99"));
        let many: Vec<Value> =
            (0..=PROFILES_MAX).map(|at| line(&at.to_string(), &format!("{at:x}::/16"))).collect();
        assert!(refused(json!(many)).contains("at most 1000"));
    }

    #[test]
    fn the_longest_prefix_wins() {
        let lines =
            json!([line("all", "0.0.0.0/0"), line("site", "192.0.2.7/32"), line("net", "192.0.2.0/24")]);
        let lines: Vec<ProfileLine> = serde_json::from_value(lines).unwrap();
        let name = |text: &str| longest_match(lines.iter(), text.parse().unwrap()).map(|it| it.name.as_str());
        assert_eq!(
            [name("192.0.2.7"), name("::ffff:192.0.2.8"), name("10.0.0.1"), name("2001:db8::1")],
            [Some("site"), Some("net"), Some("all"), None]
        );
    }
}
