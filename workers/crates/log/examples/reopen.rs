//! Fills a log, leaves it as a killed process would, and prints the CPU cost of reopening it.
//!
//! `cargo run --release -p downburst-log --example reopen -- DIRECTORY MEGABYTES [SIZE_BYTES]`
//!
//! The directory must be empty. Costs are user and system time of the process.

use std::{path::Path, time::Duration};

use downburst_log::{FeedLog, LogOptions, ProductLog, contract};
use downburst_model::{FeedName, WallMicros};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike},
};

fn main() -> Result<(), contract::Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, megabytes, words @ ..] = arguments.as_slice() else {
        return Err("usage: reopen DIRECTORY MEGABYTES [SIZE_BYTES]".into());
    };
    let size: usize = words.first().map_or(Ok(2_000), |word| word.parse())?;
    let count = megabytes.parse::<usize>()? * 1_000_000 / size.max(1);
    let open = || -> Result<_, contract::Failure> {
        Ok(FeedLog::open(Path::new(directory), FeedName::parse("BENCH")?, LogOptions::default(), 1)?)
    };

    let (log, _) = open()?;
    for n in 0..count {
        let content = vec![n as u8; size];
        log.append(contract::product(&n.to_string())?, &mut content.as_slice(), &|| WallMicros(0))?;
    }
    drop(log);

    let before = used()?;
    let (log, recovery) = open()?;
    println!(
        "open after a kill: {} of {count} products, {} segments read: {}",
        log.stat().products,
        recovery.segments_scanned,
        since(before)?
    );
    log.close()?;
    drop(log);

    let before = used()?;
    open()?;
    println!("open after a close: {}", since(before)?);
    Ok(())
}

fn since([user_before, system_before]: [Duration; 2]) -> Result<String, contract::Failure> {
    let [user, system] = used()?;
    let [user, system] = [user - user_before, system - system_before].map(|time| time.as_secs_f64());
    Ok(format!("{user:.3} s user, {system:.3} s system"))
}

/// User and system time that the process has used so far.
fn used() -> Result<[Duration; 2], contract::Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let duration = |time: TimeVal| Duration::from_micros((time.num_microseconds()).unsigned_abs());
    Ok([duration(usage.user_time()), duration(usage.system_time())])
}
