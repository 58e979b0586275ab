//! The local control interface of a running site: a socket in its state directory, one line of JSON each way.
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use downburst_site::{GroupStatus, HubStatus, NodeStatus, SiteAnswer as Answer, SiteRequest as Request};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// A request that waits for its answer.
pub(super) struct Asked {
    pub(super) request: Request,
    answer: oneshot::Sender<Answer>,
}

impl Asked {
    pub(super) fn answer(self, answer: Answer) {
        // A client that has gone needs no answer.
        let _ = self.answer.send(answer);
    }
}

/// Listens in the state directory. Without this socket the site still receives.
pub(super) fn listen(directory: &Path) -> mpsc::Receiver<Asked> {
    let (sender, receiver) = mpsc::channel(1);
    let path = socket(directory);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).and_then(|listener| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map(|()| listener)
    });
    match listener {
        Ok(listener) => drop(tokio::spawn(accept(listener, sender))),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "there is no control socket; site-control will not work");
        }
    }
    receiver
}

/// Sends a request to the site that runs in `directory`.
pub fn ask(directory: &Path, request: &Request) -> Result<Answer, String> {
    let path = socket(directory);
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "no site answers at {}: {error}; check --dir, and that downburst-node receive runs",
            path.display()
        )
    };
    let mut stream = std::os::unix::net::UnixStream::connect(&path).map_err(|error| failed(&error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| failed(&error))?;
    let line = serde_json::to_string(request).map_err(|error| failed(&error))?;
    writeln!(stream, "{line}").map_err(|error| failed(&error))?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(|error| failed(&error))?;
    let answer: Answer = serde_json::from_str(&answer).map_err(|error| failed(&error))?;
    answer.done()
}

/// The status for people, in lines.
pub fn in_words(answer: &Answer) -> String {
    let mut lines = Vec::new();
    for hub in &answer.hubs {
        let seconds = hub.seconds.map_or(String::new(), |seconds| format!(" for {seconds} s"));
        let preferred = if hub.preferred { ", preferred" } else { "" };
        let reason = hub.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let name = hub.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        lines.push(format!("{}{name} {}{seconds}{preferred}{reason}", hub.address, hub.state));
        for node in &hub.nodes {
            let state = if node.connected { "serves" } else { "is away, would serve" };
            lines.push(format!("    {} {state} {}", node.address, node.feeds.join(", ")));
        }
    }
    for group in &answer.groups {
        lines.push(format!(
            "group of {}: {} datagrams dropped for want of room; receive buffer {} of {} bytes needed; priority {}",
            group.feed, group.dropped, group.granted_bytes, group.needed_bytes, group.standing
        ));
    }
    if let Some(files) = &answer.files {
        let differs = |reason: &String| format!(" ({} asked: {reason})", files.asked);
        let reason = files.reason.as_ref().map_or(String::new(), differs);
        lines.push(format!("files of large products: {}{reason}", files.used));
        if files.linked_bytes > 0 {
            lines.push(format!(
                "    {} bytes left the log and still take space, because their files exist",
                files.linked_bytes
            ));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

async fn accept(listener: UnixListener, sender: mpsc::Sender<Asked>) {
    while let Ok((stream, _)) = listener.accept().await {
        // One after the other: users are slow, and a stuck client is timed out.
        let _ = tokio::time::timeout(PATIENCE, serve(stream, &sender)).await;
    }
}

async fn serve(stream: UnixStream, sender: &mpsc::Sender<Asked>) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(reader.take(LINE_BYTES)).read_line(&mut line).await.ok()?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => {
            let (answer, answered) = oneshot::channel();
            sender.send(Asked { request, answer }).await.ok()?;
            answered.await.ok()?
        }
        Err(error) => Answer::unreadable(&error),
    };
    let mut line = serde_json::to_string(&answer).ok()?;
    line.push('\n');
    writer.write_all(line.as_bytes()).await.ok()
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("state").join("control.sock")
}

const PATIENCE: Duration = Duration::from_secs(5);
const LINE_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_is_answered_and_rubbish_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let mut asked = listen(dir.path());
        let question = |request| {
            let path = dir.path().to_owned();
            tokio::task::spawn_blocking(move || ask(&path, &request))
        };
        let waiting = question(Request::Prefer { hub: "b".to_owned() });
        let it = asked.recv().await.unwrap();
        assert_eq!(it.request, Request::Prefer { hub: "b".to_owned() });
        it.answer(Answer::refusal("no".to_owned()));
        assert_eq!(waiting.await.unwrap(), Err("no".to_owned()));
        let mut stream = UnixStream::connect(socket(dir.path())).await.unwrap();
        stream.write_all(b"hello\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("can't be read"), "{answer}");
    }

    #[test]
    fn groups_are_in_the_words_of_a_status() {
        let group = GroupStatus {
            feed: "NGRID".to_owned(),
            leg: 70,
            dropped: 12,
            asked_bytes: 65_536,
            granted_bytes: 131_072,
            needed_bytes: 350_000,
            limit_bytes: None,
            priority: Some(20),
            standing: "real-time".to_owned(),
            demotions: 0,
        };
        let answer = Answer { hubs: Vec::new(), files: None, groups: vec![group], error: None };
        let expected = "group of NGRID: 12 datagrams dropped for want of room; receive buffer 131072 of 350000 \
                        bytes needed; priority real-time\n";
        assert_eq!(in_words(&answer), expected);
    }

    #[test]
    fn without_a_site_the_sentence_says_what_to_check() {
        let dir = tempfile::tempdir().unwrap();
        assert!(ask(dir.path(), &Request::Status).unwrap_err().contains("check --dir"));
    }
}
