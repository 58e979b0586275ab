//! Addresses of LDM servers in the form `HOST[:PORT]`.
use std::io;

use tokio::net::TcpStream;

/// The host's name, for messages and origins.
pub(super) fn host(server: &str) -> &str {
    let with_port = server.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    with_port.map_or(server, |(host, _)| host)
}

/// The server's address with a port; LDM's port if none is given.
pub(super) fn with_port(server: &str) -> String {
    if host(server).len() < server.len() { server.to_owned() } else { format!("{server}:{LDM_PORT}") }
}

pub(super) async fn connect(server: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(with_port(server)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

const LDM_PORT: u16 = 388;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        for (server, name, whole) in [
            ("idd.unl.edu", "idd.unl.edu", "idd.unl.edu:388"),
            ("idd.unl.edu:3880", "idd.unl.edu", "idd.unl.edu:3880"),
            ("[2001:db8::7]", "[2001:db8::7]", "[2001:db8::7]:388"),
            ("[2001:db8::7]:3880", "[2001:db8::7]", "[2001:db8::7]:3880"),
        ] {
            assert_eq!((host(server), with_port(server).as_str()), (name, whole));
        }
    }
}
