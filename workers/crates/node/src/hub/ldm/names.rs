//! What a host is called: LDM's rules go by names, and know nothing else of a peer.
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The names of a peer, its address last. A name counts only if it leads back to the address: anybody may call an address of his own
/// what he likes.
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
    leads_back.then_some(name)
}

/// A name server that does not answer makes a peer wait no longer: it is known by its address then.
const LOOKUP_WITHIN: Duration = Duration::from_secs(3);
