//! Actions of a site that consists of a log only.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use downburst_clock::Clock;
use downburst_log::{Appended, FeedLog, LogOptions, NewProduct, ProductLog as _};
use downburst_model::{Class, Content, FeedName, Origin, ProductId};
use downburst_session::ActionFailed;
use tempfile::TempDir;

use super::actions::{Actions, Wanted};
use super::dead_letters::{DeadLetters, Keep};
use super::notifier::Notifier;
use super::site::Site;
use super::task::Defaults;

struct TestSite {
    log: Arc<FeedLog>,
    reports: Mutex<Vec<Option<ActionFailed>>>,
}

impl Site for TestSite {
    fn logs(&self) -> Vec<(FeedName, Arc<FeedLog>)> {
        vec![(self.log.feed().clone(), Arc::clone(&self.log))]
    }

    fn report(&self, _: &FeedName, failed: Option<ActionFailed>) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
    }

    fn share(&self, product: &Content, to: &Path) -> bool {
        product.path().is_some_and(|body| fs::hard_link(body, to).is_ok())
    }
}

/// A site's directory with its log, its rules and their output.
struct Home {
    directory: TempDir,
    site: Arc<TestSite>,
    notifier: Arc<Notifier>,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let feed = FeedName::parse("IDS").unwrap();
        let log = FeedLog::open(&directory.path().join("log/IDS"), feed, LogOptions::default(), 7).unwrap().0;
        let notifier = Arc::<Notifier>::default();
        let rung = Arc::clone(&notifier);
        log.on_append(Box::new(move |_| rung.notify()));
        let site = Arc::new(TestSite { log: Arc::new(log), reports: Mutex::default() });
        Self { directory, site, notifier }
    }

    fn rules(&self, text: &str) {
        fs::write(self.directory.path().join("pqact.conf"), text).unwrap();
    }

    fn start(&self) -> Actions {
        self.try_start(vec![self.directory.path().join("pqact.conf")]).unwrap().unwrap()
    }

    fn try_start(&self, files: Vec<PathBuf>) -> Result<Option<Actions>, String> {
        let wanted = Wanted {
            files,
            directory: None,
            feed_types: [].into(),
            defaults: Defaults { time_limit: Duration::from_secs(60), attempts: 1 },
            lag: Duration::from_secs(60),
            keep_failed: Keep { age: Duration::from_secs(3_600), bytes: 1 << 20, letters: Keep::LETTERS },
        };
        let site = Arc::clone(&self.site) as Arc<dyn Site>;
        let (home, notifier) = (self.directory.path(), Arc::clone(&self.notifier));
        Actions::start(&wanted, home, site, notifier, Clock::start(0))
    }

    fn put(&self, id: &str, bytes: &'static [u8]) {
        let clock = Clock::start(0);
        let product = NewProduct {
            id: ProductId::parse(id).unwrap(),
            origin: Origin::parse("hub.example").unwrap(),
            created: clock.wall(),
            class: Class::Observation,
            source: None,
            hops: None,
            ldm: None,
            properties: None,
            expected_size: None,
            expected_digest: None,
        };
        let stored =
            self.site.log.append_all(vec![(product, Bytes::from_static(bytes))], &|| clock.wall()).remove(0);
        assert!(matches!(stored.unwrap(), Appended::Stored { .. }), "{id}");
    }

    fn data(&self, name: &str) -> PathBuf {
        self.directory.path().join("data").join(name)
    }

    fn letters(&self) -> DeadLetters {
        DeadLetters::new(self.directory.path())
    }

    fn reported(&self) -> Option<ActionFailed> {
        let reports = self.site.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.last().cloned().flatten()
    }
}

fn holds(path: &Path, contents: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|found| found == contents)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn products_go_into_files_and_programs_as_rules_say_and_a_later_start_goes_on_behind_them() {
    let home = Home::new();
    home.rules("IDS\t^(S)\tFILE\t\\1.txt\nIDS\t^S\tPIPE\t-close\tsh -c cat>>piped\n");
    let actions = home.start();
    home.put("SAUS70", b"one\n");
    home.put("WFUS54", b"no rule\n");
    home.put("SAUS80", b"two\n");
    until("both are filed", || holds(&home.data("S.txt"), "one\ntwo\n"));
    actions.stop();
    home.put("SAUS90", b"three\n");
    let actions = home.start();
    until("the third follows", || holds(&home.data("S.txt"), "one\ntwo\nthree\n"));
    until("none was piped twice", || holds(&home.data("piped"), "one\ntwo\nthree\n"));
    actions.stop();
    assert_eq!((home.reported(), home.letters().count()), (None, 0));
}

#[test]
fn a_product_that_fails_for_good_is_kept_and_reported_until_its_letter_is_gone() {
    let home = Home::new();
    home.rules("IDS\t^S\tEXEC\t-wait\tsh -c \"echo no station; exit 3\"\nIDS\t.\tFILE\tall\n");
    let mut actions = home.start();
    home.put("SAUS70", b"x");
    until("it is reported", || home.reported().is_some());
    let failed = home.reported().unwrap();
    assert_eq!((failed.product.as_str(), failed.exit, failed.count), ("SAUS70", Some(3), 1));
    assert!(failed.rule.ends_with("pqact.conf:1"), "{}", failed.rule);
    assert!(failed.last_error.contains("no station"), "{}", failed.last_error);
    home.put("WFUS54", b"y");
    until("the others go on", || holds(&home.data("all"), "xy"));
    actions.tend();
    let letters = home.letters();
    let names = letters.names().unwrap();
    assert_eq!(letters.bytes(&names[0]).unwrap(), b"x");
    letters.remove(&names[0]).unwrap();
    until("the hub is told", || home.reported().is_none());
    actions.stop();
}

#[test]
fn other_rules_are_taken_in_at_work_and_faulty_ones_leave_the_former_in_force() {
    let home = Home::new();
    home.rules("IDS\t.\tFILE\told\n");
    let mut actions = home.start();
    home.put("SAUS70", b"1");
    until("the first rules are in force", || holds(&home.data("old"), "1"));
    home.rules("IDS\t(\tFILE\tnew\n");
    actions.reread();
    home.put("SAUS80", b"2");
    until("they stay in force", || holds(&home.data("old"), "12"));
    home.rules("IDS\t.\tFILE\tnew\n");
    actions.reread();
    home.put("SAUS90", b"3");
    until("the others are in force", || holds(&home.data("new"), "3"));
    actions.stop();
    assert!(holds(&home.data("old"), "12"));
}

#[test]
fn a_file_that_cannot_be_read_ends_the_start_and_no_file_starts_nothing() {
    let home = Home::new();
    assert!(home.try_start(Vec::new()).unwrap().is_none());
    let Err(sentence) = home.try_start(vec![home.directory.path().join("gone")]) else {
        panic!("it started")
    };
    assert!(sentence.contains("gone can't be read"), "{sentence}");
}

#[test]
fn products_wait_for_a_broker_that_is_away_and_those_that_may_not_be_announced_do_not() {
    let home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rules = home.directory.path().join("rules.yaml");
    let text = format!(
        "actions:\n  - match: ^S\n    do:\n      - publish: {{broker: 'mqtt://{free}', centre: us-unidata, topic: \
         core/weather, metadata-id: 'urn:wmo:md:us-unidata:x', directory: served, base-url: 'https://a.example', \
         by-heading: true}}\n"
    );
    fs::write(&rules, text).unwrap();
    let actions = home.try_start(vec![rules.clone()]).unwrap().unwrap();
    home.put("SAUS70", b"SAUS70 KWBC 291200\r\r\nMETAR");
    home.put("SAUS80", b"no heading");
    let is_waiting = || home.reported().is_some_and(|it| it.last_error.contains("takes no connection"));
    until("the wait is reported", is_waiting);
    until("the other one is kept", || home.letters().count() == 1);
    let letter = home.letters().all().unwrap().remove(0).1;
    assert!(letter.error.contains("no heading of the GTS"), "{}", letter.error);
    actions.stop();
    home.site.reports.lock().unwrap().clear();
    let actions = home.try_start(vec![rules]).unwrap().unwrap();
    until("it still waits", is_waiting);
    actions.stop();
    assert_eq!(home.letters().count(), 1, "a broker fails no product");
}

const PATIENCE: Duration = Duration::from_secs(60);
