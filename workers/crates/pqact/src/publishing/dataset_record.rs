//! The record of a line's dataset: placed where a web server serves it, and announced each day and after each change.
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use downburst_model::{WallMicros, moment};
use downburst_publish::Answer;
use downburst_wis2::{Kind, Message, Publisher, Record};

use super::super::files;

/// The record, from its file to the broker's answer.
#[derive(Default)]
pub(super) struct DatasetRecord {
    /// The one that the broker has taken, or called invalid.
    over: Option<Version>,
    due: Option<Due>,
    looked: Option<(Publisher, Instant)>,
    fault: Option<String>,
    /// The fault is not reported yet, or its end.
    is_news: bool,
}

/// A record as it is announced once.
#[derive(Clone, PartialEq, Eq)]
struct Version {
    publisher: Publisher,
    /// The begin of the day, or the file's last change on it.
    due_at: WallMicros,
    modified: SystemTime,
}

struct Due {
    version: Version,
    message: Message,
    /// While the broker has it.
    token: Option<u64>,
    at: Instant,
}

impl DatasetRecord {
    /// Looks whether a record is to be announced; `None`: the rules have none. Relative paths are below `base`.
    pub(super) fn look(&mut self, publisher: Option<&Publisher>, now: WallMicros, base: &Path) {
        let Some((publisher, path)) = publisher.and_then(|one| Some((one, one.record.as_ref()?))) else {
            self.due = None;
            return self.set_fault(None);
        };
        let last = self.looked.as_ref().filter(|(of, _)| of == publisher);
        if last.is_some_and(|(_, at)| at.elapsed() < LOOK_INTERVAL) {
            return;
        }
        self.looked = Some((publisher.clone(), Instant::now()));
        if let Err(sentence) = self.prepare(publisher, &base.join(path), now, base) {
            self.due = None;
            self.set_fault(Some(sentence));
        }
    }

    /// The notification, if it is to be sent now.
    pub(super) fn due(&self, now: Instant) -> Option<(&Publisher, &Message)> {
        let due = self.due.as_ref().filter(|due| due.token.is_none() && due.at <= now)?;
        Some((&due.version.publisher, &due.message))
    }

    pub(super) fn sent(&mut self, token: u64) {
        if let Some(due) = &mut self.due {
            due.token = Some(token);
        }
    }

    /// The connection that had it is gone.
    pub(super) fn lost(&mut self) {
        if let Some(due) = &mut self.due {
            due.token = None;
        }
    }

    /// Takes the broker's answer; false if it is another notification's.
    pub(super) fn answered(&mut self, token: u64, answer: &Answer) -> bool {
        let Some(due) = self.due.as_mut().filter(|due| due.token == Some(token)) else { return false };
        due.token = None;
        match answer {
            Answer::Taken => {
                tracing::info!(topic = due.message.topic, "the record of the dataset is announced");
                self.over = self.due.take().map(|due| due.version);
                self.set_fault(None);
            }
            Answer::Invalid(sentence) => {
                self.over = self.due.take().map(|due| due.version);
                self.set_fault(Some(format!("the record of the dataset can't be announced: {sentence}")));
            }
            Answer::Refused(sentence) => {
                due.at = Instant::now() + super::REFUSED_PAUSE;
                self.waits(sentence);
            }
            Answer::Lost(_) => {}
        }
        true
    }

    /// The broker is the reason for the delay of a record that is due.
    pub(super) fn waits(&mut self, sentence: &str) {
        if self.due.is_some() {
            self.set_fault(Some(format!("the record of the dataset waits: {sentence}")));
        }
    }

    /// A fault that is new, or the end of one.
    pub(super) fn news(&mut self) -> Option<Option<String>> {
        std::mem::take(&mut self.is_news).then(|| self.fault.clone())
    }

    fn prepare(
        &mut self,
        publisher: &Publisher,
        path: &Path,
        now: WallMicros,
        base: &Path,
    ) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("the record {} can't be read: {error}", path.display());
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(unreadable)?;
        let version = Version { publisher: publisher.clone(), due_at: due_at(now, modified), modified };
        let is_under_way = self.due.as_ref().is_some_and(|due| due.version == version);
        if is_under_way || self.over.as_ref() == Some(&version) {
            return Ok(());
        }
        let bytes = read(path).map_err(unreadable)?;
        let message = placed(publisher, &bytes, &moment::rfc3339(version.due_at), base)
            .map_err(|sentence| format!("{}: {sentence}", path.display()))?;
        self.due = Some(Due { version, message, token: None, at: Instant::now() });
        Ok(())
    }

    fn set_fault(&mut self, fault: Option<String>) {
        self.is_news |= self.fault != fault;
        self.fault = fault;
    }
}

/// A file's bytes, but no more than show that it is too long.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(Record::LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Places a record, also to keep its file from `scour`. Other bytes that are served still make it an update.
fn placed(publisher: &Publisher, bytes: &[u8], due_at: &str, base: &Path) -> Result<Message, String> {
    let record = Record::read(publisher, bytes)?;
    let served = base.join(&publisher.directory);
    let path = record.path();
    let kind = if has_others(&served, &path) { Kind::Update } else { Kind::New };
    let message = record.message(due_at, kind)?;
    let file = served.join(path);
    files::replace(&file, bytes, true)
        .map_err(|error| format!("{} can't be written: {error}", file.display()))?;
    Ok(message)
}

/// True if there is another record of the dataset with this path.
fn has_others(served: &Path, path: &Path) -> bool {
    let mut levels = path.components();
    let (Some(records), Some(digest), Some(name)) = (levels.next(), levels.next(), levels.next()) else {
        return false;
    };
    let Ok(listing) = fs::read_dir(served.join(records)) else { return false };
    listing.flatten().any(|one| one.file_name() != digest.as_os_str() && one.path().join(name).is_file())
}

/// The later of the day's begin and the file's last change, if that is not to come.
fn due_at(now: WallMicros, modified: SystemTime) -> WallMicros {
    let day = now.0 - now.0.rem_euclid(DAY_US);
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    WallMicros(if changed <= now.0 { changed.max(day) } else { day })
}

const DAY_US: i64 = 86_400_000_000;
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use downburst_wis2::Broker;

    use super::*;

    const DATASET: &str = "urn:wmo:md:us-unidata:synop";

    fn publisher(record: Option<&str>) -> Publisher {
        Publisher {
            broker: Broker::parse("mqtt://127.0.0.1:1").unwrap(),
            centre: "us-unidata".to_owned(),
            topic: "core/weather".to_owned(),
            metadata_id: DATASET.to_owned(),
            directory: "served".into(),
            base_url: "https://wis2.example/data".to_owned(),
            media_type: Publisher::MEDIA_TYPE.to_owned(),
            by_heading: false,
            republishes: false,
            record: record.map(Into::into),
        }
    }

    fn write(path: &Path, id: &str, title: &str) {
        let core = "http://wis.wmo.int/spec/wcmp/2/conf/core";
        let record = serde_json::json!({"id": id, "type": "Feature", "conformsTo": [core], "title": title});
        fs::write(path, record.to_string()).unwrap();
    }

    fn today() -> WallMicros {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        WallMicros(since.as_micros() as i64)
    }

    /// Looks again, as after the interval.
    fn look(
        record: &mut DatasetRecord,
        publisher: &Publisher,
        now: WallMicros,
        base: &Path,
    ) -> Option<Message> {
        record.looked = None;
        record.look(Some(publisher), now, base);
        record.due(Instant::now() + super::super::REFUSED_PAUSE).map(|(_, message)| message.clone())
    }

    #[test]
    fn it_is_announced_once_a_day_and_after_a_change() {
        let root = tempfile::tempdir().unwrap();
        let (mut record, publisher, now) =
            (DatasetRecord::default(), publisher(Some("record.json")), today());
        write(&root.path().join("record.json"), DATASET, "one");
        let first = look(&mut record, &publisher, now, root.path()).unwrap();
        record.sent(1);
        assert_eq!(look(&mut record, &publisher, now, root.path()), None, "it is under way");
        assert!(!record.answered(2, &Answer::Taken), "of another notification");
        assert!(record.answered(1, &Answer::Refused("no client".to_owned())));
        assert_eq!(record.news(), Some(Some("the record of the dataset waits: no client".to_owned())));
        assert_eq!(look(&mut record, &publisher, now, root.path()), Some(first.clone()));
        record.sent(3);
        record.lost();
        assert_eq!(look(&mut record, &publisher, now, root.path()), Some(first.clone()), "sent once more");
        record.sent(4);
        assert!(record.answered(4, &Answer::Taken));
        assert_eq!(record.news(), Some(None), "the end of the fault");
        assert_eq!(look(&mut record, &publisher, now, root.path()), None);
        let next_day = WallMicros(now.0 + DAY_US);
        let again = look(&mut record, &publisher, next_day, root.path()).unwrap();
        assert_ne!(again.id, first.id);
        record.sent(5);
        assert!(record.answered(5, &Answer::Taken));
        write(&root.path().join("record.json"), DATASET, "another");
        let changed = look(&mut record, &publisher, WallMicros(next_day.0 + DAY_US), root.path()).unwrap();
        assert!(String::from_utf8(changed.payload).unwrap().contains("\"rel\":\"update\""));
    }

    #[test]
    fn a_record_that_is_none_is_a_fault_until_it_is_one() {
        let root = tempfile::tempdir().unwrap();
        let (mut record, publisher, now) =
            (DatasetRecord::default(), publisher(Some("record.json")), today());
        assert_eq!(look(&mut record, &publisher, now, root.path()), None);
        assert!(record.news().flatten().unwrap().contains("record.json can't be read"));
        write(&root.path().join("record.json"), "urn:wmo:md:us-unidata:other", "one");
        assert_eq!(look(&mut record, &publisher, now, root.path()), None);
        assert!(record.news().flatten().unwrap().contains("has the id"));
        assert!(!root.path().join("served").exists());
        write(&root.path().join("record.json"), DATASET, "one");
        let message = look(&mut record, &publisher, now, root.path()).unwrap();
        record.sent(1);
        assert!(record.answered(1, &Answer::Invalid("topic name invalid".to_owned())));
        assert!(record.news().flatten().unwrap().contains("can't be announced: topic name invalid"));
        assert_eq!(look(&mut record, &publisher, now, root.path()), None, "{} is over", message.id);
    }

    #[test]
    fn rules_without_a_record_have_none_and_no_fault() {
        let mut record = DatasetRecord::default();
        record.look(Some(&publisher(None)), today(), Path::new("/nowhere"));
        record.look(None, today(), Path::new("/nowhere"));
        assert!(record.due(Instant::now()).is_none() && record.news().is_none());
    }

    #[test]
    fn it_is_due_since_midnight_or_its_change() {
        let at = |micros: u64| SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let noon = WallMicros(10 * DAY_US + DAY_US / 2);
        for (modified, due) in [
            (at(5), 10 * DAY_US),
            (at(10 * DAY_US as u64 + 7), 10 * DAY_US + 7),
            (at(11 * DAY_US as u64), 10 * DAY_US),
        ] {
            assert_eq!(due_at(noon, modified), WallMicros(due));
        }
    }
}
