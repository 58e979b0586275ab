//! The names of hosts that may be asked.
use std::io;
use std::net::SocketAddr;

use downburst_fetch::may_connect;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves names to the addresses that a download may connect to. The check is here, as a name may have another
/// address in each answer.
pub(super) struct Resolver {
    pub(super) allows_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allows_private = self.allows_private;
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                all.iter().copied().filter(|at| may_connect(at.ip(), allows_private)).collect();
            if allowed.is_empty() && !all.is_empty() {
                let sentence =
                    format!("{} is in a private network, which this source may not ask", name.as_str());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, sentence).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
