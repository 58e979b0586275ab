//! `ldm notify`: lists the products that a server receives, as `notifyme` does.
use std::io::{self, Write as _};

use downburst_ldm6::{Interest, ProductInfo, Taken};
use downburst_model::{Micros, WallMicros, moment};

use super::watch::{Watch, Wish};
use super::{NotifyArguments, Outcome, as_json};

pub(super) fn run(arguments: &NotifyArguments) -> Outcome {
    let mut watch = Watch::new(&Wish {
        server: &arguments.server,
        feed: arguments.feed,
        pattern: &arguments.pattern,
        interest: Interest::Descriptions,
        resume: None,
        since: Micros::from_secs(u64::from(arguments.since)),
    })?;
    let mut shown = 0_u64;
    while arguments.count.is_none_or(|count| shown < count) {
        if let Taken::Notified(info) = watch.next()? {
            show(&info, watch.wall(), arguments.json)?;
            shown = shown.saturating_add(1);
        }
    }
    Ok(())
}

fn show(info: &ProductInfo, now: WallMicros, json: bool) -> Outcome {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", as_json(info))?;
    } else {
        let (time, made) = (moment::log_time(now), moment::creation_time(info.arrival.into()));
        let ProductInfo { size, feed, sequence, ident, .. } = info;
        let feed = feed.to_string();
        writeln!(out, "{time} {size:>8} {made} {feed:>7} {sequence:03}  {ident}")?;
    }
    Ok(out.flush()?)
}
