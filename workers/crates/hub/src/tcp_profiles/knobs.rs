//! The options of a profile, and their bounds.
use serde::{Deserialize, Serialize};

/// Options of connections; `None` leaves an option to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Knobs {
    /// The name of the congestion control.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Send buffers of all connections of a site together.
    #[serde(default)]
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffers of all connections of a site together.
    #[serde(default)]
    pub receive_buffer_bytes: Option<u64>,
    /// The maximum rate of each connection, in bits per second of what TCP sends.
    #[serde(default)]
    pub pacing_bps: Option<u64>,
    /// The number of data connections of a site.
    #[serde(default)]
    pub connections: Option<usize>,
}

impl Knobs {
    /// Checks every value; the error is a sentence that names the one out of bounds.
    pub fn check(&self) -> Result<(), String> {
        self.congestion.as_deref().map_or(Ok(()), check_congestion)?;
        within("send_buffer_bytes", self.send_buffer_bytes, BUFFER_BYTES)?;
        within("receive_buffer_bytes", self.receive_buffer_bytes, BUFFER_BYTES)?;
        within("pacing_bps", self.pacing_bps, PACING_BPS)?;
        within("connections", self.connections.map(|count| count as u64), CONNECTIONS)
    }

    /// True if every option is left to the kernel.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The options of one of `count` connections: buffers are divided, and the number is the site's.
    pub(super) fn of_one(&self, count: usize) -> Self {
        let part = |total: u64| (total / (count as u64).max(1)).max(BUFFER_BYTES.0);
        Self {
            send_buffer_bytes: self.send_buffer_bytes.map(part),
            receive_buffer_bytes: self.receive_buffer_bytes.map(part),
            connections: None,
            ..self.clone()
        }
    }

    /// The options in words, for a sentence.
    pub(super) fn in_words(&self) -> String {
        let kilobytes = |name: &str, bytes: Option<u64>| bytes.map(|it| format!("{name} {} kB", it / 1_000));
        let words = [
            self.congestion.as_ref().map(|name| format!("congestion control {name}")),
            kilobytes("send buffer", self.send_buffer_bytes),
            kilobytes("receive buffer", self.receive_buffer_bytes),
            self.pacing_bps.map(|rate| format!("pacing {:.1} Mb/s", rate as f64 / 1e6)),
            self.connections.map(|count| format!("{count} data connections")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() { "the kernel's own values".to_owned() } else { words.join(", ") }
    }
}

fn check_congestion(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=CONGESTION_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "`congestion` is {:?}; a name has 1 to {CONGESTION_BYTES_MAX} lower-case letters, digits and underscores",
        name.chars().take(40).collect::<String>()
    ))
}

fn within(field: &str, value: Option<u64>, (least, most): (u64, u64)) -> Result<(), String> {
    match value {
        Some(value) if !(least..=most).contains(&value) => Err(format!(
            "`{field}` is {value}; it is a number from {least} to {most}, or null for the kernel's"
        )),
        _ => Ok(()),
    }
}

/// `TCP_CA_NAME_MAX` of the kernel, without its final zero.
const CONGESTION_BYTES_MAX: usize = 15;
const BUFFER_BYTES: (u64, u64) = (4_096, 1 << 30);
const PACING_BPS: (u64, u64) = (8_000, 1_000_000_000_000);
const CONNECTIONS: (u64, u64) = (1, 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_bounds_are_refused_with_their_name() {
        let refused = |json: &str| serde_json::from_str::<Knobs>(json).unwrap().check().unwrap_err();
        for (field, json) in [
            ("congestion", r#"{"congestion": "BBR"}"#),
            ("congestion", r#"{"congestion": "a_name_too_long_"}"#),
            ("congestion", r#"{"congestion": ""}"#),
            ("send_buffer_bytes", r#"{"send_buffer_bytes": 4095}"#),
            ("receive_buffer_bytes", r#"{"receive_buffer_bytes": 1073741825}"#),
            ("pacing_bps", r#"{"pacing_bps": 7999}"#),
            ("pacing_bps", r#"{"pacing_bps": 1000000000001}"#),
            ("connections", r#"{"connections": 0}"#),
            ("connections", r#"{"connections": 17}"#),
        ] {
            assert!(refused(json).starts_with(&format!("`{field}`")), "{json}");
        }
        let full = r#"{"congestion": "bbr", "send_buffer_bytes": 4096, "receive_buffer_bytes": 1073741824,
            "pacing_bps": 8000, "connections": 16}"#;
        assert_eq!(serde_json::from_str::<Knobs>(full).unwrap().check(), Ok(()));
        assert!(serde_json::from_str::<Knobs>(r#"{"congestion": null}"#).unwrap().is_empty());
    }

    #[test]
    fn buffers_are_divided_among_the_connections_of_a_site() {
        let knobs = Knobs { send_buffer_bytes: Some(1 << 20), pacing_bps: Some(9_000), ..Knobs::default() };
        assert_eq!(knobs.of_one(4).send_buffer_bytes, Some(1 << 18));
        assert_eq!(knobs.of_one(100_000).send_buffer_bytes, Some(4_096), "the kernel's own least is near");
        assert_eq!(knobs.of_one(0), knobs.of_one(1));
        assert_eq!(knobs.of_one(4).pacing_bps, Some(9_000), "each connection has the whole rate");
        let words = knobs.in_words();
        assert_eq!(words, "send buffer 1048 kB, pacing 0.0 Mb/s");
        assert_eq!(Knobs::default().in_words(), "the kernel's own values");
    }
}
