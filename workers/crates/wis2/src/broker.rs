use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A broker of MQTT 5 that takes a site's notifications. Its password is in a file, and never in rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Broker {
    /// A name or an address.
    pub host: String,
    /// Of TCP.
    pub port: u16,
    /// By TLS.
    pub is_encrypted: bool,
    /// The user, if the broker wants one.
    pub user: Option<String>,
    /// The file with the user's password in its first line.
    pub password_file: Option<PathBuf>,
    /// The certificates of an own authority (PEM); absent: those of the system.
    pub ca_file: Option<PathBuf>,
}

impl Broker {
    /// Reads an address as `mqtts://node@broker.example`.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || format!("{:?} is no address of a broker; write mqtts://USER@HOST", shown(url));
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let is_encrypted = match scheme {
            "mqtts" => true,
            "mqtt" => false,
            _ => return Err(wrong()),
        };
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(
                "a password does not belong into rules; write it to a file, and name it by password-file"
                    .to_owned(),
            );
        }
        if url.len() > LONGEST || user.is_some_and(|user| !is_name(user)) {
            return Err(wrong());
        }
        let (host, port) = split(place).ok_or_else(wrong)?;
        let port = port.unwrap_or(if is_encrypted { 8_883 } else { 1_883 });
        if is_encrypted && host.contains(':') {
            return Err("a broker by TLS has a name, and not an address of IPv6".to_owned());
        }
        let user = user.map(str::to_owned);
        Ok(Self { host, port, is_encrypted, user, password_file: None, ca_file: None })
    }
}

/// Without the password that it may have.
impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "mqtts" } else { "mqtt" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// A host and the port behind it; brackets are around addresses of IPv6.
fn split(place: &str) -> Option<(String, Option<u16>)> {
    let place = place.strip_suffix('/').unwrap_or(place);
    let (host, port) = match place.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let is_host = place.starts_with('[')
        || !host.is_empty()
            && host.len() <= LONGEST_HOST
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let port = match port {
        Some(text) => Some(text.parse().ok().filter(|port| *port > 0)?),
        None => None,
    };
    is_host.then(|| (host.to_owned(), port))
}

fn is_name(user: &str) -> bool {
    !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@'))
}

/// The begin of a faulty address, without the words before its host: they may be a password.
fn shown(url: &str) -> String {
    url.rsplit('@').next().unwrap_or_default().chars().take(80).collect()
}

const LONGEST: usize = 300;
const LONGEST_HOST: usize = 253;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_of_brokers_are_read() {
        for (url, host, port, is_encrypted, user) in [
            ("mqtts://node@broker.example", "broker.example", 8_883, true, Some("node")),
            ("mqtt://127.0.0.1:18830", "127.0.0.1", 18_830, false, None),
            ("mqtt://[::1]", "::1", 1_883, false, None),
            ("mqtts://a.b@10.0.0.1:443/", "10.0.0.1", 443, true, Some("a.b")),
        ] {
            let broker = Broker::parse(url).unwrap();
            assert_eq!(
                (&*broker.host, broker.port, broker.is_encrypted),
                (host, port, is_encrypted),
                "{url}"
            );
            assert_eq!(broker.user.as_deref(), user, "{url}");
        }
    }

    #[test]
    fn faulty_ones_are_refused_without_their_passwords() {
        for (url, part) in [
            ("broker.example", "is no address of a broker"),
            ("https://broker.example", "mqtts://USER@HOST"),
            ("mqtts://", "is no address"),
            ("mqtts://a b", "is no address"),
            ("mqtts://@a", "is no address"),
            ("mqtts://a:0", "is no address"),
            ("mqtts://a:70000", "is no address"),
            ("mqtts://[::1]", "has a name"),
            ("mqtts://node:secret@a", "password-file"),
            ("mqtts//node:secret@a", "is no address"),
        ] {
            let sentence = Broker::parse(url).unwrap_err();
            assert!(sentence.contains(part) && !sentence.contains("secret"), "{url}: {sentence}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "mqtts?://[-a-z0-9@:.\\[\\]/]{0,30}|(?s).{0,40}") {
            let _ = Broker::parse(&text);
        }
    }
}
