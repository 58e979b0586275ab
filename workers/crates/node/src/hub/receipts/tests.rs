use std::fs;
use std::path::Path;
use std::sync::mpsc;

use arrow_ipc::reader::StreamReader;
use downburst_model::{Class, Epoch, FeedName, Lane, LegId, ProductKey, Sequence, Transport};
use downburst_session::Outcome;

use super::directory::{Contents, list, retain};
use super::file::Receiving;
use super::find::KeptStamps;
use super::*;

fn key(feed: &str, sequence: u64) -> ProductKey {
    ProductKey { feed: FeedName::parse(feed).unwrap(), epoch: Epoch(u64::MAX), sequence: Sequence(sequence) }
}

fn row(feed: &str, sequence: u64) -> Row {
    let receipt = Receipt {
        key: key(feed, sequence),
        outcome: Outcome::Stored,
        lane: Lane::Live,
        leg: LegId(7),
        transport: Transport::Multicast,
        class: Class::Grid,
        size: 2_000,
        created: WallMicros(1_000),
        hub_stored: WallMicros(2_000),
        last_byte: WallMicros(4_000),
        site_stored: WallMicros(5_000),
        repaired: true,
        action_done: None,
    };
    Row::new(receipt, Some(WallMicros(3_000)))
}

fn batch(site: &str, feed: &str, sequences: std::ops::Range<u64>) -> Batch {
    let clock = Some(ClockOffset { offset_us: -40, bound_us: 9, round_trip_us: 18 });
    Batch { site: SiteName::parse(site).unwrap(), clock, rows: sequences.map(|it| row(feed, it)).collect() }
}

fn wanted(feed: &str, sequence: u64, sites: usize) -> Wanted {
    Wanted { key: key(feed, sequence), hub_stored: WallMicros(2_000), sites }
}

fn ample() -> Budget {
    Budget { time: Duration::from_secs(60), rows: 1_000 }
}

fn start(directory: &Path) -> (Receipts, mpsc::Receiver<String>) {
    let (sender, faults) = mpsc::channel();
    let limits = Limits { hours: 1.0, bytes: 1 << 30 };
    let receipts = Receipts::start(directory.to_owned(), limits, Clock::start(0), move |sentence| {
        let _ = sender.send(sentence);
    });
    (receipts, faults)
}

fn hand_over(receipts: &Receipts, batch: Batch) {
    receipts.record(&batch.site, batch.clock, batch.rows);
}

fn file_of(directory: &Path, batches: &[Batch], wall: i64) -> Receiving {
    let mut file = Receiving::begin(directory, WallMicros(wall), downburst_model::Micros(0)).unwrap();
    for batch in batches {
        assert!(file.add(batch, downburst_model::Micros(0)).unwrap());
    }
    file
}

#[test]
fn a_receipt_is_found_again_with_all_its_stamps() {
    let dir = tempfile::tempdir().unwrap();
    let (receipts, faults) = start(dir.path());
    hand_over(&receipts, batch("unl", "NGRID", 1..50));
    hand_over(&receipts, batch("psu", "NGRID", 40..60));
    hand_over(&receipts, batch("psu", "IDS|DDPLUS", 40..60));
    let found = receipts.find(&[wanted("NGRID", 44, 2)], ample());
    assert!(found.complete && found.since.is_some());
    let sites: Vec<&str> = found.receipts.iter().map(|receipt| receipt.site.as_str()).collect();
    assert_eq!(sites, ["unl", "psu"]);
    let expected = KeptReceipt {
        key: key("NGRID", 44),
        site: "unl".to_owned(),
        outcome: "stored".to_owned(),
        lane: "live".to_owned(),
        transport: "multicast".to_owned(),
        leg: 7,
        size: 2_000,
        repaired: true,
        stamps: KeptStamps {
            created_us: Some(1_000),
            hub_stored_us: Some(2_000),
            first_byte_us: Some(3_000),
            last_byte_us: Some(4_000),
            site_stored_us: Some(5_000),
            action_done_us: None,
        },
        clock_offset_us: Some(-40),
        clock_bound_us: Some(9),
        sent_before: Vec::new(),
    };
    assert_eq!(found.receipts[0], expected);
    assert!(receipts.find(&[wanted("NGRID", 60, 2), wanted("OTHER", 44, 2)], ample()).receipts.is_empty());
    receipts.stop();
    assert_eq!(receipts.find(&[wanted("NGRID", 44, 2)], ample()).receipts.len(), 2, "complete files, too");
    assert!(faults.try_recv().is_err());
}

#[test]
fn a_file_that_stood_late_is_found_in_the_receipt_of_its_product() {
    let dir = tempfile::tempdir().unwrap();
    let (receipts, _faults) = start(dir.path());
    hand_over(&receipts, batch("unl", "NGRID", 1..50));
    hand_over(&receipts, batch("psu", "NGRID", 1..50));
    let files = || receipts.find(&[wanted("NGRID", 44, 2)], ample()).receipts;
    assert_eq!(files().iter().map(|it| it.stamps.action_done_us).collect::<Vec<_>>(), [None, None]);
    let late = |row: Row| Row::of_late_file(Receipt { action_done: Some(WallMicros(8_000)), ..row.receipt });
    receipts.record(&SiteName::parse("unl").unwrap(), None, vec![late(row("NGRID", 44))]);
    receipts.stop();
    // The receipt lies in one file, the late one in the next.
    let (receipts, _faults) = start(dir.path());
    let unknown = Receipt::of_file(key("NGRID", 44), WallMicros(9_000));
    receipts.record(&SiteName::parse("psu").unwrap(), None, vec![Row::of_late_file(unknown)]);
    let found = receipts.find(&[wanted("NGRID", 44, 2)], ample()).receipts;
    let files: Vec<_> =
        found.iter().map(|it| (it.site.as_str(), it.outcome.as_str(), it.stamps.action_done_us)).collect();
    assert_eq!(files, [("unl", "stored", Some(8_000)), ("psu", "stored", Some(9_000))]);
    assert_eq!(found[1].stamps.site_stored_us, Some(5_000), "the receipt keeps its own stamps");
}

#[test]
fn zeros_of_a_product_the_site_never_saw_are_no_stamps() {
    let dir = tempfile::tempdir().unwrap();
    let (receipts, _faults) = start(dir.path());
    let receipt = Receipt::undescribed(key("NGRID", 3), Outcome::Expired, WallMicros(9_000));
    receipts.record(&SiteName::parse("unl").unwrap(), None, vec![Row::new(receipt, None)]);
    let found = receipts.find(&[wanted("NGRID", 3, 1)], ample()).receipts;
    assert_eq!(
        (found[0].stamps.created_us, found[0].stamps.hub_stored_us, found[0].clock_bound_us),
        (None, None, None)
    );
    assert_eq!((found[0].outcome.as_str(), found[0].stamps.site_stored_us), ("expired", Some(9_000)));
}

#[test]
fn a_torn_file_is_read_up_to_the_tear() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = file_of(dir.path(), &[batch("unl", "NGRID", 1..100)], 5_000);
    file.flush().unwrap();
    assert!(file.add(&batch("psu", "NGRID", 1..100), downburst_model::Micros(0)).unwrap());
    file.flush().unwrap();
    drop(file);
    let path = list(dir.path()).unwrap().remove(0).path;
    let whole = fs::read(&path).unwrap();
    let torn = dir.path().join("torn.part");
    let mut counts = std::collections::BTreeSet::new();
    for length in (0..whole.len()).step_by(37).chain([whole.len()]) {
        fs::write(&torn, &whole[..length]).unwrap();
        fs::remove_file(&path).unwrap_or_default();
        let found = find::find(dir.path(), &[wanted("NGRID", 50, 2)], ample());
        counts.insert(found.receipts.len());
    }
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [0, 1, 2], "nothing, the first flush, both");
}

#[test]
fn what_a_crash_left_is_kept_and_the_next_run_begins_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = file_of(dir.path(), &[batch("unl", "NGRID", 1..10)], 5_000);
    file.flush().unwrap();
    drop(file);
    let (receipts, _faults) = start(dir.path());
    hand_over(&receipts, batch("psu", "NGRID", 1..10));
    assert_eq!(receipts.find(&[wanted("NGRID", 5, 2)], ample()).receipts.len(), 2);
    receipts.stop();
    let names: Vec<_> = list(dir.path()).unwrap().into_iter().map(|file| file.path).collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|path| path.extension().unwrap() == "arrows"), "{names:?}");
}

#[test]
fn a_search_leaves_alone_what_can_not_hold_the_product() {
    let dir = tempfile::tempdir().unwrap();
    file_of(dir.path(), &[batch("unl", "NGRID", 1..10)], 5_000).complete().unwrap();
    let path = list(dir.path()).unwrap().remove(0).path;
    let contents = Contents::of(&path).unwrap();
    assert_eq!(contents.rows, 9);
    for (feed, sequence, expected) in [
        ("NGRID", 1, true),
        ("NGRID", 9, true),
        ("NGRID", 10, false),
        ("NGRID", 0, false),
        ("OTHER", 5, false),
    ] {
        assert_eq!(contents.may_hold(&key(feed, sequence)), expected, "{feed} {sequence}");
    }
    let other_epoch = ProductKey { epoch: Epoch(1), ..key("NGRID", 5) };
    assert!(!contents.may_hold(&other_epoch));
    fs::write(&path, b"no arrow at all").unwrap();
    let elsewhere = find::find(dir.path(), &[wanted("NGRID", 10, 1)], ample());
    assert!(elsewhere.complete && elsewhere.receipts.is_empty());
}

#[test]
fn the_oldest_files_go_first_by_bytes_and_all_old_ones_by_hours() {
    let dir = tempfile::tempdir().unwrap();
    for hour in 0..4 {
        file_of(dir.path(), &[batch("unl", "NGRID", 1..10)], hour * 3_600_000_000).complete().unwrap();
    }
    let files = list(dir.path()).unwrap();
    let room = files[2].bytes + files[3].bytes;
    let now = std::time::SystemTime::now();
    retain(dir.path(), Limits { hours: 1.0, bytes: room }, now).unwrap();
    let left: Vec<_> = list(dir.path()).unwrap().into_iter().map(|file| file.path).collect();
    assert_eq!(left, [files[2].path.clone(), files[3].path.clone()]);
    assert!(!files[0].path.with_extension("json").exists());
    retain(dir.path(), Limits { hours: 1.0, bytes: u64::MAX }, now + Duration::from_secs(3_700)).unwrap();
    assert!(list(dir.path()).unwrap().is_empty());
}

#[test]
fn names_that_were_used_are_not_used_again() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        file_of(dir.path(), &[batch("unl", "NGRID", 1..3)], 77).complete().unwrap();
    }
    assert_eq!(list(dir.path()).unwrap().len(), 3);
}

#[test]
fn sessions_never_wait_and_what_was_dropped_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (queue, orders) = bounded(2);
    let receipts = Receipts {
        queue: Some(queue),
        waiting: Arc::default(),
        dropped: AtomicU64::new(0),
        directory: dir.path().to_owned(),
        thread: Mutex::new(None),
    };
    for _ in 0..5 {
        hand_over(&receipts, batch("unl", "NGRID", 0..10));
    }
    assert_eq!((receipts.take_dropped(), receipts.take_dropped()), (30, 0));
    drop(orders);
    hand_over(&receipts, batch("unl", "NGRID", 0..10));
    assert_eq!(receipts.take_dropped(), 10, "a writer that is gone takes nothing");
}

#[test]
fn an_unwritable_directory_is_told_once_and_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("receipts");
    fs::write(&blocked, b"a file where the directory should be").unwrap();
    let (receipts, faults) = start(&blocked);
    for _ in 0..5 {
        hand_over(&receipts, batch("unl", "NGRID", 0..10));
    }
    assert!(receipts.find(&[wanted("NGRID", 1, 1)], ample()).receipts.is_empty());
    receipts.stop();
    let told: Vec<String> = faults.try_iter().collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("can't be written to") && told[0].contains("free space"));
}

#[test]
fn with_zero_hours_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("receipts");
    let limits = Limits { hours: 0.0, bytes: 1 << 30 };
    let receipts = Receipts::start(kept.clone(), limits, Clock::start(0), |_| {});
    hand_over(&receipts, batch("unl", "NGRID", 0..10));
    receipts.stop();
    assert!(!kept.exists());
}

#[test]
fn a_stream_says_whose_clock_made_each_stamp() {
    let dir = tempfile::tempdir().unwrap();
    file_of(dir.path(), &[batch("unl", "NGRID", 1..3)], 5_000).complete().unwrap();
    let path = list(dir.path()).unwrap().remove(0).path;
    let reader = StreamReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let clock = |name: &str| schema.field_with_name(name).unwrap().metadata()["clock"].clone();
    assert_eq!(
        [clock("created"), clock("hub_stored"), clock("first_byte_sent"), clock("site_stored")],
        ["origin", "hub", "hub", "site"]
    );
    let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names.len(), 18);
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn a_long_wait_is_explained_by_what_went_to_the_site_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (receipts, _faults) = start(dir.path());
    // The files are named after the real time, so the stamps have to be recent.
    let begun = Clock::start(0).wall().0 - 20_000_000;
    let second = 1_000_000;
    let sent = |feed: &str, sequence: u64, size: u64, first_byte: i64| {
        let mut row = row(feed, sequence);
        (row.receipt.size, row.receipt.hub_stored) = (size, WallMicros(begun + 10 * second));
        row.first_byte = Some(WallMicros(begun + first_byte));
        row
    };
    let (unl, psu) = (SiteName::parse("unl").unwrap(), SiteName::parse("psu").unwrap());
    let before = vec![
        sent("NGRID", 1, 30_000_000, 11 * second),
        sent("NGRID", 2, 18_000_000, 12 * second),
        sent("HDS", 1, 500, 12 * second),
        sent("HDS", 2, 500, 9 * second),
        sent("WARN", 7, 1_500, 13 * second),
        sent("HDS", 3, 500, 14 * second),
    ];
    receipts.record(&unl, None, before);
    receipts.record(&psu, None, vec![sent("WARN", 7, 1_500, 10 * second), sent("HDS", 1, 500, 11 * second)]);
    let found = receipts.find(&[wanted("WARN", 7, 2)], ample()).receipts;
    let said: Vec<(&str, u64, u64)> =
        found[0].sent_before.iter().map(|sent| (sent.feed.as_str(), sent.products, sent.bytes)).collect();
    assert_eq!((found[0].site.as_str(), said), ("unl", vec![("HDS", 1, 500), ("NGRID", 2, 48_000_000)]));
    assert_eq!((found[1].site.as_str(), found[1].sent_before.len()), ("psu", 0), "it did not wait");
}

/// Measures the cost of storing a receipt: run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn receipts_cost_little() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = Receiving::begin(dir.path(), WallMicros(5_000), downburst_model::Micros(0)).unwrap();
    let sites: Vec<String> = (0..8).map(|site| format!("site{site}")).collect();
    let mut rows = 0_u64;
    let mut spent = Duration::ZERO;
    for round in 0..500_u64 {
        for (number, site) in sites.iter().enumerate() {
            let mut batch = batch(site, "NGRID", round * 256..round * 256 + 256);
            for (at, row) in batch.rows.iter_mut().enumerate() {
                let stored = 1_763_700_000_000_000 + (round * 256 + at as u64) as i64 * 50;
                row.receipt.created = WallMicros(stored - 1_000);
                row.receipt.hub_stored = WallMicros(stored);
                row.first_byte = Some(WallMicros(stored + 300 + 7 * number as i64));
                row.receipt.last_byte = WallMicros(stored + 900 + (at as i64 * 7_919) % 400);
                row.receipt.site_stored = WallMicros(stored + 1_700 + (at as i64 * 104_729) % 900);
            }
            let begun = std::time::Instant::now();
            assert!(file.add(&batch, downburst_model::Micros(0)).unwrap());
            spent += begun.elapsed();
            rows += 256;
        }
    }
    let begun = std::time::Instant::now();
    file.complete().unwrap();
    spent += begun.elapsed();
    let bytes = list(dir.path()).unwrap()[0].bytes;
    println!(
        "{rows} receipts: {:.3} us and {:.1} bytes each",
        spent.as_secs_f64() * 1e6 / rows as f64,
        bytes as f64 / rows as f64
    );
}
