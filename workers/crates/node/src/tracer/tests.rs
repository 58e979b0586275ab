//! The tool's file.
use std::fs;

use downburst_model::WallMicros;

use super::file::RingFile;
use super::*;
use downburst_tracer::Role;

fn samples(count: i64) -> Vec<(Connection, Sample)> {
    let (local, peer) = ("10.0.0.1:5001".parse().unwrap(), "10.0.0.2:40000".parse().unwrap());
    let one = |number| {
        let connection = Connection { local, peer, site: None, role: Role::Other };
        (connection, Sample::empty(WallMicros(number)))
    };
    (0..count).map(one).collect()
}

fn times(file: &RingFile) -> Vec<i64> {
    let mut times = Vec::new();
    file.scan(|record| times.push(record.sample.at.0)).unwrap();
    times
}

#[test]
fn a_ring_of_a_chosen_length_is_bounded_and_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.ring");
    let room = Room::of_bytes(256 * 11);
    let mut file = RingFile::open_own(&path, room).unwrap();
    file.write(samples(25)).unwrap();
    assert_eq!(times(&file), (15..25).collect::<Vec<_>>());
    drop(file);
    let mut again = RingFile::open_own(&path, None).unwrap();
    again.write(samples(1)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 256 * 11);
    let (seen, scan) = RingFile::look_into(&path).unwrap();
    assert_eq!(times(&seen), (16..25).chain([0]).collect::<Vec<_>>(), "read while another one has it open");
    assert_eq!(scan.span, Some((WallMicros(0), WallMicros(24))));
}

#[test]
fn a_ring_in_use_or_of_another_length_and_other_files_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |name: &str, room| RingFile::open_own(&directory.path().join(name), room).err().unwrap();
    let file = RingFile::open_own(&directory.path().join("own"), Room::of_bytes(5_120)).unwrap();
    assert!(refused("own", None).contains("another process records into it"));
    drop(file);
    assert!(refused("own", Room::of_bytes(4_096)).contains("is a ring of 5120 bytes"));
    fs::write(directory.path().join("other"), [7; 5_000]).unwrap();
    assert!(refused("other", None).contains("is no ring"));
    assert_eq!(fs::read(directory.path().join("other")).unwrap(), [7; 5_000]);
    assert!(RingFile::look_into(&directory.path().join("other")).err().unwrap().contains("is no ring"));
    assert!(refused("none/own", None).contains("name another --ring"));
}
