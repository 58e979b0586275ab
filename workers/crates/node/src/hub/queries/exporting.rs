//! Products in the order of a feed's log, and their bytes in files.
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use downburst_hub::queries::{ExportAnswer, ExportLine, FollowLine};
use downburst_log::{FeedLog, ProductLog as _};
use downburst_model::Content;
use ring::digest::{Context, SHA512};
use serde_json::Value;

use super::{answer, in_a_thread};
use crate::hub::Hub;
use crate::hub::feeds::failure;
use crate::lines::Failure;

/// Lists the products behind a sequence, in their order.
pub(in crate::hub) async fn follow(hub: &Arc<Hub>, line: FollowLine) -> Result<Value, Failure> {
    let log = Arc::clone(&hub.feeds.known(&line.feed)?.log);
    in_a_thread(move || followed(&log, &line)).await?
}

/// Writes the bytes of a product into a file.
pub(in crate::hub) async fn export(hub: &Arc<Hub>, line: ExportLine) -> Result<Value, Failure> {
    let log = Arc::clone(&hub.feeds.known(&line.feed)?.log);
    in_a_thread(move || exported(&log, &line)).await?
}

fn followed(log: &FeedLog, line: &FollowLine) -> Result<Value, Failure> {
    let head = log.head();
    let batch = log.read(line.after, head, usize::MAX, line.most()).map_err(|error| failure(&error))?;
    let products = batch.entries.iter().map(|entry| (&entry.info, entry.bytes.is_some()));
    answer(&FollowLine::answer(log.epoch(), head, batch.read_to, products))
}

fn exported(log: &FeedLog, line: &ExportLine) -> Result<Value, Failure> {
    line.check(log.epoch())?;
    let entry = log.entry(line.sequence).map_err(|error| failure(&error))?;
    let entry = entry.ok_or_else(|| line.gone())?;
    let content = entry.bytes.ok_or_else(|| line.gone())?;
    let file = File::create_new(&line.path).map_err(|error| Failure::not_writable(&line.path, &error))?;
    let sha512 = written(&content, file, line).inspect_err(|_| drop(std::fs::remove_file(&line.path)))?;
    answer(&ExportAnswer::of(&entry.info, &sha512))
}

fn written(content: &Content, mut file: File, line: &ExportLine) -> Result<Vec<u8>, Failure> {
    let mut sha512 = Context::new(&SHA512);
    for begin in (0..content.len()).step_by(PIECE_BYTES) {
        let piece =
            content.slice(begin..content.len().min(begin + PIECE_BYTES)).ok_or_else(|| line.gone())?;
        sha512.update(&piece);
        file.write_all(&piece).map_err(|error| Failure::not_writable(&line.path, &error))?;
    }
    Ok(sha512.finish().as_ref().to_vec())
}

const PIECE_BYTES: usize = 1 << 20;
