//! Recorded bytes of the session: `tests/golden/sessions/RELEASE/*.json` at the root of the repository are
//! whole conversations as recorded with that release. Today's hub answers a recorded site byte for byte, and
//! today's site reacts to a recorded hub like that release, with the same bytes.
//! `tests/golden/sessions/README.md` describes the files. `DOWNBURST_GOLDEN=write` records the newest release's
//! conversations again, never those of an older one.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that fails stops"
)]

use std::path::PathBuf;

use file::Conversation;

mod file;
mod peers;
mod replay;
mod scripts;
mod stage;

#[test]
fn todays_hub_answers_the_sites_of_every_release_byte_for_byte() {
    for (path, conversation) in kept() {
        replay::hub(&conversation, &path);
    }
}

#[test]
fn todays_site_understands_the_hubs_of_every_release() {
    for (path, conversation) in kept() {
        replay::site(&conversation, &path);
    }
}

/// The scripts of the newest release still produce the stored conversations: their recorder is not outdated.
#[test]
fn the_newest_conversations_are_those_that_the_scripts_lead_to() {
    let writes = std::env::var("DOWNBURST_GOLDEN").as_deref() == Ok("write");
    let folder = sessions().join(NEWEST);
    for (name, conversation) in scripts::all() {
        let path = folder.join(format!("{name}.json"));
        if writes {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, conversation.text()).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == conversation.text(),
            "{name} reads otherwise today; if the newest release's conversations should change, run this test with \
             DOWNBURST_GOLDEN=write"
        );
    }
}

fn kept() -> Vec<(String, Conversation)> {
    let mut found = Vec::new();
    for release in std::fs::read_dir(sessions()).unwrap().map(|entry| entry.unwrap().path()) {
        let files =
            if release.is_dir() { std::fs::read_dir(&release).unwrap().collect() } else { Vec::new() };
        for path in files.into_iter().map(|entry| entry.unwrap().path()) {
            let conversation = serde_json::from_slice(&std::fs::read(&path).unwrap());
            let name = path.strip_prefix(sessions()).unwrap().display().to_string();
            found.push((name, conversation.unwrap_or_else(|error| panic!("{}: {error}", path.display()))));
        }
    }
    assert!(found.len() >= scripts::all().len(), "the conversations are gone");
    found
}

fn sessions() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/sessions")
}

/// The release that the scripts record.
const NEWEST: &str = "0.1.0";
