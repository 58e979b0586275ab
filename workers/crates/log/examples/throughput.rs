//! Appends products of one size for a few seconds and prints the throughput and its CPU cost.
//!
//! ```text
//! cargo run --release -p downburst-log --example throughput -- \
//!     DIRECTORY SIZE_BYTES SECONDS [power] [group=N] [threads=N] [site] [body=N] [files]
//! ```
//!
//! `group=N` appends N products at a time, `threads=N` appends from N threads, `site` appends like a site: with
//! rising upstream keys and no other duplicate rule. `body=N` gives products of at least N bytes bodies, and `files`
//! makes a file of each product afterwards: a second name of its body, or a copy. Costs are user and system time of the
//! process.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use downburst_log::{
    DuplicateRule, Durability, FeedLog, LogOptions, NewProduct, ProductLog, SourceStamp, contract, disk,
};
use downburst_model::{Epoch, FeedName, ProductKey, Sequence, WallMicros};

struct Run {
    size: usize,
    limit: Duration,
    group: usize,
    threads: usize,
    site: bool,
    files: bool,
    options: LogOptions,
}

#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn main() -> Result<(), contract::Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, size, seconds, words @ ..] = arguments.as_slice() else {
        return Err(
            "usage: throughput DIRECTORY SIZE_BYTES SECONDS [power] [group=N] [threads=N] [site] [body=N] [files]"
                .into()
        );
    };
    let run = Run::parse(size, seconds, words)?;
    let (log, _) = FeedLog::open(Path::new(directory), FeedName::parse("BENCH")?, run.options.clone(), 1)?;

    let (hashed, hashing) = (200_000_000 / run.size.max(1), cpu_seconds());
    let content = vec![7; run.size];
    for _ in 0..hashed {
        std::hint::black_box(contract::digest(std::hint::black_box(&content)));
    }
    let hash_us = (cpu_seconds() - hashing) * 1e6 / hashed as f64;

    let (started, cost) = (Instant::now(), cpu_seconds());
    let count = append(&run, &log)?;
    let (appending_s, cost_us) =
        (started.elapsed().as_secs_f64(), (cpu_seconds() - cost) * 1e6 / count as f64);
    let megabytes = (count * run.size as u64) as f64 / 1e6;
    println!("append: {:.0} products/s, {:.0} MB/s", count as f64 / appending_s, megabytes / appending_s);
    println!("CPU per product: {cost_us:.2} us, {hash_us:.2} us of it for the digest");

    let started = Instant::now();
    let (mut cursor, mut read) = (Sequence(0), 0);
    while cursor < log.head() {
        let batch = log.read(cursor, log.head(), 1 << 20, 1_000)?;
        read += batch.entries.len();
        cursor = batch.read_to;
    }
    println!("read by cursor: {:.0} entries/s", read as f64 / started.elapsed().as_secs_f64());

    if run.files {
        let cost = cpu_seconds();
        make_files(&log, &Path::new(directory).join("files"))?;
        println!("CPU per file: {:.2} us", (cpu_seconds() - cost) * 1e6 / count as f64);
    }

    let started = Instant::now();
    log.close()?;
    println!("close: {:.2} s", started.elapsed().as_secs_f64());
    drop(log);
    let started = Instant::now();
    FeedLog::open(Path::new(directory), FeedName::parse("BENCH")?, run.options, 1)?;
    println!("open: {:.3} s for {count} products", started.elapsed().as_secs_f64());
    Ok(())
}

/// Makes a file of each product, aside first, as a site does.
fn make_files(log: &FeedLog, directory: &Path) -> Result<(), contract::Failure> {
    std::fs::create_dir_all(directory)?;
    let aside = directory.join("aside");
    let mut cursor = Sequence(0);
    while cursor < log.head() {
        let batch = log.read(cursor, log.head(), 4 << 20, 256)?;
        for entry in batch.entries {
            let content = entry.bytes.ok_or("a product was evicted")?;
            match content.path() {
                Some(body) => disk::link(body, &aside)?,
                None => disk::File::create(&aside)?.write_all_at(&content.whole().ok_or("unreadable")?, 0)?,
            }
            disk::rename(&aside, &directory.join(entry.info.key.sequence.0.to_string()))?;
        }
        cursor = batch.read_to;
    }
    Ok(())
}

impl Run {
    fn parse(size: &str, seconds: &str, words: &[String]) -> Result<Self, contract::Failure> {
        let limit = Duration::from_secs_f64(seconds.parse()?);
        let options = LogOptions::default();
        let mut run =
            Self { size: size.parse()?, limit, group: 1, threads: 1, site: false, files: false, options };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("power", _) => run.options.durability = Durability::Power,
                ("group", count) => run.group = count.parse()?,
                ("body", bytes) => run.options.body_bytes = bytes.parse()?,
                ("files", _) => run.files = true,
                ("threads", count) => run.threads = count.parse()?,
                ("site", _) => {
                    run.site = true;
                    run.options.duplicate_rule = DuplicateRule::None;
                }
                (other, _) => return Err(format!("what is {other}?").into()),
            }
        }
        Ok(run)
    }
}

/// Returns the total number of products that the threads appended.
fn append(run: &Run, log: &FeedLog) -> Result<u64, contract::Failure> {
    let numbers = AtomicU64::new(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..run.threads).map(|_| scope.spawn(|| append_until_the_end(run, log, &numbers))).collect();
        threads.into_iter().try_fold(0, |sum, thread| Ok(sum + thread.join().map_err(|_| "a thread died")??))
    })
}

#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn append_until_the_end(run: &Run, log: &FeedLog, numbers: &AtomicU64) -> Result<u64, contract::Failure> {
    let template = contract::product("measured product, with an id as long as they usually are")?;
    let upstream = FeedName::parse("UPSTREAM")?;
    let mut content = vec![7; run.size];
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < run.limit {
        let first = numbers.fetch_add(run.group as u64, Ordering::Relaxed);
        let numbered = |n: u64| {
            let key = ProductKey { feed: upstream.clone(), epoch: Epoch(5), sequence: Sequence(n) };
            let stamp = SourceStamp::live(key, WallMicros(1), Some(WallMicros(2)));
            NewProduct { source: run.site.then_some(stamp), ..template.clone() }
        };
        if run.group == 1 {
            content.iter_mut().zip(first.to_le_bytes()).for_each(|(byte, digit)| *byte = digit);
            log.append(numbered(first), &mut content.as_slice(), &|| WallMicros(0))?;
        } else {
            // Slices of one buffer, as products come out of a receive buffer; each begins with its own number.
            let mut buffer = vec![7; run.size * run.group];
            for (n, part) in (first..).zip(buffer.chunks_mut(run.size.max(1))) {
                part.iter_mut().zip(n.to_le_bytes()).for_each(|(byte, digit)| *byte = digit);
            }
            let buffer = Bytes::from(buffer);
            let slice = |n: usize| buffer.slice(n * run.size..(n + 1) * run.size);
            let group = (0..run.group).map(|n| (numbered(first + n as u64), slice(n))).collect();
            log.append_all(group, &|| WallMicros(0)).into_iter().try_for_each(|result| result.map(|_| ()))?;
        }
        count += run.group as u64;
    }
    Ok(count)
}

/// User and system time that the process has used so far.
fn cpu_seconds() -> f64 {
    let ticks: f64 = std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| {
            let (_, fields) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = fields.split_whitespace().collect();
            Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
        })
        .unwrap_or(f64::NAN);
    ticks / TICKS_PER_SECOND
}

/// The unit of Linux's reports, independent of the kernel's own timer.
const TICKS_PER_SECOND: f64 = 100.0;
