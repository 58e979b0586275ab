//! Today's way, done well: a TLS 1.3 connection for each receiver, a thread each, the digest behind the bytes.
//!
//! A file travels as its length (8 bytes, big-endian), its bytes, and its BLAKE3 digest, which the sender
//! computes while it sends and the receiver checks.

use std::fs::File;
use std::io::{self, BufRead as _, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde_json::json;

use crate::Outcome;
use crate::fill::now;

/// The two ends.
#[derive(clap::Subcommand)]
pub(crate) enum TlsFanOut {
    /// Write a certificate, say `ready`, take the connections, say `connected`; after a line on stdin send the file.
    Send {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
        /// Where to write the certificate that receivers trust.
        #[arg(long)]
        certificate: PathBuf,
        /// How many connections to wait for.
        #[arg(long)]
        receivers: usize,
        /// The file.
        #[arg(long)]
        file: PathBuf,
    },
    /// Connect, say `ready`, write what comes, check its digest, and print an account.
    Receive {
        /// The sender.
        #[arg(long)]
        from: SocketAddr,
        /// The sender's certificate.
        #[arg(long)]
        certificate: PathBuf,
        /// Where to write the file.
        #[arg(long)]
        file: PathBuf,
    },
}

impl TlsFanOut {
    /// Sends or receives.
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Send { listen, certificate, receivers, file } => {
                send(*listen, certificate, *receivers, file)
            }
            Self::Receive { from, certificate, file } => receive(*from, certificate, file),
        }
    }
}

fn send(listen: SocketAddr, certificate: &Path, receivers: usize, file: &Path) -> Outcome {
    let listener = TcpListener::bind(listen)?;
    let config = Arc::new(server(certificate)?);
    say("ready")?;
    let mut connections = Vec::new();
    for _ in 0..receivers {
        connections.push(accept(&listener, &config)?);
    }
    say("connected")?;
    io::stdin().lock().read_line(&mut String::new())?;
    let began_us = now();
    let digest = OnceLock::new();
    std::thread::scope(|scope| {
        let senders: Vec<_> = connections
            .iter_mut()
            .map(|(tls, socket)| scope.spawn(|| send_file(tls, socket, file, &digest)))
            .collect();
        // Set in any case: senders wait for it.
        let hashed = hash(file);
        let _ = digest.set(*hashed.as_ref().unwrap_or(&blake3::hash(b"")));
        for sender in senders {
            sender.join().map_err(|_| "a sender's thread failed")??;
        }
        hashed.map(|_| ())
    })?;
    say(&json!({"began_us": began_us, "ended_us": now()}).to_string())
}

fn accept(listener: &TcpListener, config: &Arc<ServerConfig>) -> Outcome<(ServerConnection, TcpStream)> {
    let (mut socket, _) = listener.accept()?;
    let mut tls = ServerConnection::new(Arc::clone(config))?;
    // A chunk is written whole; the loop behind it empties the buffer.
    tls.set_buffer_limit(None);
    tls.complete_io(&mut socket)?;
    Ok((tls, socket))
}

fn send_file(
    tls: &mut ServerConnection,
    socket: &mut TcpStream,
    file: &Path,
    digest: &OnceLock<blake3::Hash>,
) -> Outcome {
    let mut file = File::open(file)?;
    let mut push = |bytes: &[u8]| -> io::Result<()> {
        tls.writer().write_all(bytes)?;
        while tls.wants_write() {
            tls.write_tls(socket)?;
        }
        Ok(())
    };
    push(&file.metadata()?.len().to_be_bytes())?;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        push(buffer.get(..read).unwrap_or_default())?;
    }
    push(digest.wait().as_bytes())?;
    Ok(())
}

fn hash(file: &Path) -> Outcome<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(file)?)?;
    Ok(hasher.finalize())
}

fn receive(from: SocketAddr, certificate: &Path, path: &Path) -> Outcome {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(certificate)?))?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut socket = TcpStream::connect(from)?;
    let mut tls = ClientConnection::new(Arc::new(config), ServerName::try_from(NAME)?)?;
    tls.complete_io(&mut socket)?;
    say("ready")?;
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let began_us = now();
    let bytes = copy(&mut stream, u64::from_be_bytes(length), path)?;
    say(&json!({"bytes": bytes, "began_us": began_us, "ended_us": now()}).to_string())
}

/// Writes so many bytes to a file, and fails unless the digest behind them is theirs.
fn copy(stream: &mut impl Read, bytes: u64, path: &Path) -> Outcome<u64> {
    let (mut file, mut hasher) = (File::create(path)?, blake3::Hasher::new());
    let (mut buffer, mut left) = (vec![0; CHUNK_BYTES], bytes);
    while left > 0 {
        let room = usize::try_from(left)?.min(CHUNK_BYTES);
        let read = stream.read(buffer.get_mut(..room).unwrap_or_default())?;
        let piece =
            buffer.get(..read).filter(|piece| !piece.is_empty()).ok_or("the sender closed too early")?;
        hasher.update(piece);
        file.write_all(piece)?;
        left -= read as u64;
    }
    drop(file);
    let mut digest = [0; blake3::OUT_LEN];
    stream.read_exact(&mut digest)?;
    if hasher.finalize() == digest {
        Ok(bytes)
    } else {
        Err("the digest is another: bytes were changed".into())
    }
}

/// A key and a certificate for this run alone; the certificate is written where receivers read it.
fn server(certificate: &Path) -> Outcome<ServerConfig> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(certificate, made.cert.der())?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    Ok(ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)?)
}

fn say(line: &str) -> Outcome {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

const NAME: &str = "sender.test";
const CHUNK_BYTES: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(content: &[u8]) -> Vec<u8> {
        [content, blake3::hash(content).as_bytes()].concat()
    }

    #[test]
    fn a_copy_has_the_bytes_and_their_digest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let content = vec![3; 3 * CHUNK_BYTES + 17];
        let bytes = copy(&mut framed(&content).as_slice(), content.len() as u64, &path).unwrap();
        assert_eq!((bytes, std::fs::read(&path).unwrap()), (content.len() as u64, content));
    }

    #[test]
    fn changed_and_missing_bytes_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let mut changed = framed(b"content");
        changed[2] ^= 1;
        assert!(copy(&mut changed.as_slice(), 7, &path).unwrap_err().to_string().contains("digest"));
        let short = copy(&mut b"cont".as_slice(), 7, &path);
        assert!(short.unwrap_err().to_string().contains("too early"));
    }

    #[test]
    fn a_file_reaches_two_receivers_over_tls() {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, original) = (directory.path().join("der"), directory.path().join("original"));
        std::fs::write(&original, vec![5; 700_000]).unwrap();
        let config = Arc::new(server(&certificate).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = listener.local_addr().unwrap();
        let digest = OnceLock::new();
        digest.set(hash(&original).unwrap()).unwrap();
        std::thread::scope(|scope| {
            for name in ["one", "two"] {
                let (path, certificate) = (directory.path().join(name), &certificate);
                scope.spawn(move || receive(from, certificate, &path).unwrap());
                let (mut tls, mut socket) = accept(&listener, &config).unwrap();
                send_file(&mut tls, &mut socket, &original, &digest).unwrap();
            }
        });
        for name in ["one", "two"] {
            assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), vec![5; 700_000]);
        }
    }
}
