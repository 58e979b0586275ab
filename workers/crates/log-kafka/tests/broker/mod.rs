//! The broker that the tests run against, and nodes that share logs on it.
// Each test program uses some of this.
#![allow(dead_code)]

use std::{
    env,
    path::Path,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{Appended, LogError, LogOptions, Opened, SharedLog, SharedLogs as _, Wanted, contract};
use downburst_log_kafka::{KafkaLogs, Role, Security, Settings};
use downburst_model::{FeedName, Sequence, WallMicros};

/// A prefix of topics that no other test uses.
pub(crate) fn fresh_prefix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("test-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::SeqCst))
}

pub(crate) fn servers() -> String {
    let Ok(servers) = env::var("DOWNBURST_KAFKA") else {
        panic!("DOWNBURST_KAFKA names no broker; `make test-cluster` starts one and runs this");
    };
    servers
}

pub(crate) fn settings(prefix: &str, role: Role) -> Settings {
    Settings {
        servers: servers(),
        prefix: prefix.to_owned(),
        role,
        security: Security::Plaintext,
        ca_file: None,
        certificate_file: None,
        key_file: None,
        sasl_mechanism: String::new(),
        sasl_user: String::new(),
        sasl_password_file: None,
        replication: 1,
        copy_mb: 0,
    }
}

/// A product's sequence, identifier and bytes.
pub(crate) type Content = (Sequence, String, Option<Bytes>);

/// A node's log, and its messages.
pub(crate) struct Node {
    pub(crate) log: Arc<dyn SharedLog>,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
}

/// Opens the one log of the prefix, with its copy in a directory; each opening offers another epoch.
pub(crate) fn open(prefix: &str, role: Role, directory: &Path) -> Node {
    open_with(settings(prefix, role), directory).unwrap()
}

pub(crate) fn open_with(settings: Settings, directory: &Path) -> Result<Node, LogError> {
    static EPOCHS: AtomicU64 = AtomicU64::new(77);
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let wanted = Wanted {
        feed: FeedName::parse("IDS|DDPLUS").unwrap(),
        directory: directory.to_owned(),
        options: LogOptions::default(),
        random: EPOCHS.fetch_add(1, Ordering::SeqCst),
        say: Arc::new(move |sentence| heard.lock().unwrap().push(sentence)),
    };
    let Opened { log, .. } = KafkaLogs::new(settings)?.open(wanted)?;
    Ok(Node { log, said })
}

impl Node {
    pub(crate) fn append(&self, id: &str, bytes: &[u8]) -> Result<Appended, LogError> {
        self.log.append(contract::product(id).unwrap(), &mut &*bytes, &|| WallMicros(0))
    }

    pub(crate) fn store(&self, id: &str, bytes: &[u8]) -> Sequence {
        match self.append(id, bytes).unwrap() {
            Appended::Stored { sequence, .. } => sequence,
            Appended::Duplicate { of } => panic!("{id} is a duplicate of {of:?}"),
        }
    }

    /// Sequences, identifiers and bytes.
    pub(crate) fn contents(&self) -> Vec<Content> {
        let batch = self.log.read(Sequence(0), Sequence(u64::MAX), usize::MAX, usize::MAX).unwrap();
        let entries = batch.entries.into_iter();
        entries.map(|entry| (entry.info.key.sequence, entry.info.id.to_string(), entry.whole())).collect()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.contents().into_iter().map(|(_, id, _)| id).collect()
    }

    /// Waits until the copy has reached a sequence.
    pub(crate) fn wait_for(&self, head: Sequence) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.log.head() < head {
            assert!(
                Instant::now() < until,
                "{:?} of {head:?}: {:?}",
                self.log.head(),
                self.said.lock().unwrap()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}
