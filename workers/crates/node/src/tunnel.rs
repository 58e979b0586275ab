//! The request for a tunnel and its answer: HTTP's CONNECT (RFC 9110, section 9.3.6), as sites and relays speak it.
//!
//! Both sides bound the head. Bytes of a request that follow it belong to the tunnel.
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A request for a tunnel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The other end of the tunnel, `HOST:PORT`.
    pub(crate) target: String,
    /// Bytes that came behind the head.
    pub(crate) early: Vec<u8>,
}

/// Reads the head of a request; the error is the sentence for the answer, with its status.
pub(crate) async fn hear(stream: &mut (impl AsyncRead + Unpin)) -> Result<Asked, Refusal> {
    let mut heard = Vec::new();
    loop {
        if let Some(asked) = parse_request(&heard)? {
            return Ok(asked);
        }
        if !read_more(stream, &mut heard).await.map_err(|error| Refusal::malformed(error.to_string()))? {
            return Err(Refusal::malformed("the connection ended in the request".to_owned()));
        }
    }
}

/// Answers that the tunnel stands.
pub(crate) async fn grant(stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 Tunnel established\r\n\r\n").await
}

/// Answers that there is no tunnel, and ends the connection.
pub(crate) async fn refuse(stream: &mut (impl AsyncWrite + Unpin), refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, sentence } = refusal;
    let reason: String =
        sentence.chars().map(|one| if (' '..='~').contains(&one) { one } else { '?' }).collect();
    let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.shutdown().await
}

/// Requests a tunnel to `target`, `HOST:PORT`, at the other end of `stream`.
pub(crate) async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), target: &str) -> io::Result<()> {
    let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut heard = Vec::new();
    loop {
        match parse_answer(&heard)? {
            Some(()) => return Ok(()),
            None if read_more(stream, &mut heard).await? => {}
            None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended the connection")),
        }
    }
}

/// A refused request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status of HTTP.
    pub(crate) status: u16,
    pub(crate) sentence: String,
}

impl Refusal {
    fn malformed(sentence: String) -> Self {
        Self { status: 400, sentence }
    }
}

fn parse_request(heard: &[u8]) -> Result<Option<Asked>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(heard) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Refusal::malformed(format!("the request can't be read: {error}"))),
    };
    let target = match (request.method, request.path) {
        (Some("CONNECT"), Some(target)) => target.to_owned(),
        _ => {
            let sentence = "this is a relay for sites: it knows no request but CONNECT";
            return Err(Refusal { status: 405, sentence: sentence.to_owned() });
        }
    };
    let early = heard.get(length..).unwrap_or_default().to_vec();
    Ok(Some(Asked { target, early }))
}

/// `None` while the head is incomplete; the error has the sentence of whoever refused.
fn parse_answer(heard: &[u8]) -> io::Result<Option<()>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let invalid = |sentence: String| Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
    match answer.parse(heard) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(length)) => match answer.code {
            // The hub speaks second: bytes that are there already are not its own.
            Some(200..=299) if length == heard.len() => Ok(Some(())),
            Some(200..=299) => invalid("it sent bytes before the hub could".to_owned()),
            code => {
                let (code, reason) = (code.unwrap_or_default(), answer.reason.unwrap_or_default());
                Err(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    format!("it refuses ({code}): {reason}"),
                ))
            }
        },
        Err(error) => invalid(format!("its answer is not that of a relay: {error}")),
    }
}

/// Reads on, up to the limit of a head; bytes behind it may come along. False at the end.
async fn read_more(stream: &mut (impl AsyncRead + Unpin), heard: &mut Vec<u8>) -> io::Result<bool> {
    if heard.len() >= HEAD_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("its head exceeds {HEAD_BYTES} bytes"),
        ));
    }
    let mut piece = [0; 512];
    let room = piece.len().min(HEAD_BYTES - heard.len());
    let read = stream.read(piece.get_mut(..room).unwrap_or_default()).await?;
    heard.extend_from_slice(piece.get(..read).unwrap_or_default());
    Ok(read > 0)
}

const HEAD_BYTES: usize = 4 << 10;
const MOST_FIELDS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_arrives_in_any_pieces_and_what_follows_it_is_kept() {
        let sent = b"CONNECT hub.example:7370 HTTP/1.1\r\nHost: hub.example:7370\r\nVia: x\r\n\r\nhello";
        for piece in [1, 7, 1000] {
            let (mut near, mut far) = tokio::io::duplex(piece);
            let sending = tokio::spawn(async move { far.write_all(sent).await });
            let asked = hear(&mut near).await.unwrap();
            assert_eq!(asked.target, "hub.example:7370");
            let mut rest = asked.early;
            near.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"hello");
            sending.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn another_request_a_stranger_and_an_endless_head_are_refused() {
        for (sent, status) in [
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), 405),
            (b"\x16\x03\x01\x02\x00\x01\x00".to_vec(), 400),
            (b"CONNECT hub:1 HTTP/1.1\r\n".to_vec(), 400),
            ([b"CONNECT hub:1 HTTP/1.1\r\nx: ".as_slice(), &[b'a'; 2 * HEAD_BYTES]].concat(), 400),
            ("CONNECT h:1 HTTP/1.1\r\n".bytes().chain("a: b\r\n".repeat(99).bytes()).collect(), 400),
        ] {
            assert_eq!(hear(&mut sent.as_slice()).await.unwrap_err().status, status, "{sent:?}");
        }
    }

    #[tokio::test]
    async fn the_asking_side_learns_the_reason_of_a_refusal() {
        let (mut near, mut far) = tokio::io::duplex(1 << 16);
        let refusal = Refusal { status: 403, sentence: "\u{e4}h\r\nno such target".to_owned() };
        refuse(&mut far, &refusal).await.unwrap();
        let error = ask(&mut near, "hub:7370").await.unwrap_err();
        assert_eq!(error.to_string(), "it refuses (403): ?h??no such target");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(hear(&mut far).await.unwrap().target, "hub:7370");
    }

    #[tokio::test]
    async fn an_answer_that_is_none_or_goes_on_is_an_error() {
        for answer in ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200 OK\r\n", ""] {
            let (mut near, mut far) = tokio::io::duplex(1 << 16);
            far.write_all(answer.as_bytes()).await.unwrap();
            far.shutdown().await.unwrap();
            assert!(ask(&mut near, "hub:7370").await.is_err(), "{answer:?}");
        }
        let (mut near, mut far) = tokio::io::duplex(1 << 16);
        grant(&mut far).await.unwrap();
        ask(&mut near, "hub:7370").await.unwrap();
    }
}
