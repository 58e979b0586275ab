//! Searches a feed's log by time and product id.
use std::sync::Arc;

use downburst_hub::queries::{Browse, BrowseAnswer, BrowseLine};
use downburst_log::{FeedLog, ProductLog as _};
use serde_json::Value;

use super::{answer, in_a_thread};
use crate::hub::Hub;
use crate::hub::feeds::failure;
use crate::lines::Failure;

/// Lists the matching products, newest first, and some that do not match; counts them on request.
pub(in crate::hub) async fn browse(hub: &Arc<Hub>, line: BrowseLine) -> Result<Value, Failure> {
    let feed = hub.feeds.known(&line.feed)?;
    let (log, browse) = (Arc::clone(&feed.log), Browse::of(line)?);
    answer(&in_a_thread(move || look(&log, browse)).await??)
}

fn look(log: &FeedLog, mut browse: Browse) -> Result<BrowseAnswer, Failure> {
    let range = browse.range(|time| log.find_time(time));
    let looked = log.look_back(range.after, range.before, range.most, |info, kept| browse.look(info, kept));
    let looked = looked.map_err(|error| failure(&error))?;
    Ok(browse.answer(log.epoch(), looked.searched_to, looked.complete))
}
