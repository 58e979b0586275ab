//! Appends products of one size for a few seconds and prints how fast that was.
//!
//! `cargo run --release -p downburst-log --example throughput -- DIRECTORY SIZE_BYTES SECONDS [power]`

use std::{
    path::Path,
    time::{Duration, Instant},
};

use downburst_log::{Durability, FeedLog, LogOptions, ProductLog, contract};
use downburst_model::{FeedName, Sequence, WallMicros};

#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn main() -> Result<(), contract::Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, size, seconds, power @ ..] = arguments.as_slice() else {
        return Err("usage: throughput DIRECTORY SIZE_BYTES SECONDS [power]".into());
    };
    let durability = if power.is_empty() { Durability::Process } else { Durability::Power };
    let options = LogOptions { durability, ..LogOptions::default() };
    let (log, _) = FeedLog::open(Path::new(directory), FeedName::parse("BENCH")?, options, 1)?;
    let mut content = vec![7; size.parse()?];
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let started = Instant::now();
    let mut count = 0_u64;
    while started.elapsed() < limit {
        content.iter_mut().zip(count.to_le_bytes()).for_each(|(byte, digit)| *byte = digit);
        log.append(contract::product("measured product")?, &mut content.as_slice(), &|| WallMicros(0))?;
        count += 1;
    }
    let appending_s = started.elapsed().as_secs_f64();
    let megabytes = (count * content.len() as u64) as f64 / 1e6;
    println!("append: {:.0} products/s, {:.0} MB/s", count as f64 / appending_s, megabytes / appending_s);

    let started = Instant::now();
    let (mut cursor, mut read) = (Sequence(0), 0);
    while cursor < log.head() {
        let batch = log.read(cursor, log.head(), 1 << 20, 1_000)?;
        read += batch.entries.len();
        cursor = batch.read_to;
    }
    println!("read by cursor: {:.0} entries/s", read as f64 / started.elapsed().as_secs_f64());

    let started = Instant::now();
    log.close()?;
    println!("close: {:.2} s", started.elapsed().as_secs_f64());
    drop(log);
    let started = Instant::now();
    FeedLog::open(Path::new(directory), FeedName::parse("BENCH")?, LogOptions::default(), 1)?;
    println!("open: {:.3} s for {count} products", started.elapsed().as_secs_f64());
    Ok(())
}
