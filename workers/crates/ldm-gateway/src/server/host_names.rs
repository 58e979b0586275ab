//! Names of hosts: LDM's rules identify a peer by name alone.
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The names of a peer, its address last. A name counts only if it resolves to the address: the owner of an address
/// may give it any name.
pub(super) async fn of(peer: SocketAddr) -> Vec<String> {
    let address = peer.ip().to_canonical();
    let looked_up = tokio::time::timeout(LOOKUP_WITHIN, looked_up(address)).await;
    let name = looked_up.ok().flatten().filter(|name| *name != address.to_string());
    name.into_iter().chain([address.to_string()]).collect()
}

async fn looked_up(address: IpAddr) -> Option<String> {
    let name = tokio::task::spawn_blocking(move || dns_lookup::lookup_addr(&address)).await.ok()?.ok()?;
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let mut addresses = tokio::net::lookup_host((name.as_str(), 0)).await.ok()?;
    let leads_back = addresses.any(|found| found.ip().to_canonical() == address);
    drop(addresses);
    leads_back.then_some(name).filter(|name| is_host(name))
}

/// True for a valid host name: it is used in logs, rules and origins.
fn is_host(name: &str) -> bool {
    let is_of_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=LONGEST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_of_host)
}

/// The limit of DNS.
const LONGEST_NAME_BYTES: usize = 253;

/// Timeout of a lookup; after it the peer is known by its address.
const LOOKUP_WITHIN: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_letters_digits_dots_and_hyphens() {
        assert!(is_host("ldm-1.unidata.ucar.edu") && is_host("a_b.example"));
        for bad in ["", "a b", "a\nb", "\u{1b}[31m", "a/../b", "ü.example", &"a".repeat(254)] {
            assert!(!is_host(bad), "{bad:?}");
        }
    }
}
