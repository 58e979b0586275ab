//! Names of files at a site: a reversible, bounded encoding of feed, id and sequence. Never a path from the id.
use std::path::PathBuf;

use crate::ProductKey;

/// Encodes text as a name without separators: letters, digits, `.` and `-` remain, every other byte becomes `%XX`;
/// a `.` at the start is encoded, so that no name is hidden or special.
pub fn encode(text: &str) -> String {
    pieces(text).concat()
}

/// The text that [`encode`] turned into the name; `None` if it did not make the name.
pub fn decode(name: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(if *first == b'%' {
            let (digits, behind) = rest.split_first_chunk::<2>()?;
            rest = behind;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        } else {
            *first
        });
    }
    String::from_utf8(bytes).ok().filter(|text| encode(text) == name)
}

/// The path of the product `key` with identifier `id` below a site's directory of received files.
///
/// The form is `FEED/EPOCH-SEQUENCE_ID`. An encoded id of more than 180 characters is cut into pieces; each but the
/// last ends in `~` and is a directory, so that no component exceeds the 255 bytes that a file system allows.
pub fn received_path(key: &ProductKey, id: &str) -> PathBuf {
    let mut path = PathBuf::from(encode(key.feed.as_str()));
    let mut component = format!("{:016x}-{:010}_", key.epoch.0, key.sequence.0);
    let mut length = 0;
    for escape in pieces(id) {
        if length + escape.len() > PIECE_LIMIT {
            component.push('~');
            path.push(std::mem::take(&mut component));
            length = 0;
        }
        // A dot at the start of a piece would hide the file or make the component special.
        let escape = if length == 0 && escape == "." { "%2E".to_owned() } else { escape };
        length += escape.len();
        component.push_str(&escape);
    }
    path.push(component);
    path
}

fn pieces(text: &str) -> Vec<String> {
    let escape = |(at, byte): (usize, u8)| match byte {
        b'.' if at == 0 => "%2E".to_owned(),
        b'.' | b'-' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().enumerate().map(escape).collect()
}

const PIECE_LIMIT: usize = 180;

#[cfg(test)]
mod tests {
    use crate::{Epoch, FeedName, Sequence};

    use super::*;

    #[test]
    fn agrees_with_the_golden_names() {
        let golden = include_str!("../../../../tests/golden/file-names.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let names = golden["names"].as_array().unwrap();
        assert!(names.len() > 8);
        for name in names {
            let feed = FeedName::parse(name["feed"].as_str().unwrap());
            // Names of feeds that earlier releases accepted: their files are still read.
            assert_eq!(feed.is_err(), name["feed_refused"] == true, "{}", name["why"]);
            let Ok(feed) = feed else { continue };
            let key = ProductKey {
                feed,
                epoch: Epoch(u64::from_str_radix(name["epoch"].as_str().unwrap(), 16).unwrap()),
                sequence: Sequence(name["sequence"].as_u64().unwrap()),
            };
            let path = received_path(&key, name["id"].as_str().unwrap());
            let directory = path.iter().next().unwrap().to_str().unwrap();
            assert_eq!(decode(directory).as_deref(), Some(key.feed.as_str()));
            assert_eq!(path.to_str().unwrap(), name["path"].as_str().unwrap(), "{}", name["why"]);
        }
    }

    #[test]
    fn a_name_that_was_not_made_here_stands_for_nothing() {
        for name in ["IDS|DDPLUS", "%7", "%zz", "%7c", "%41", "%FF", ".X"] {
            assert_eq!(decode(name), None, "{name}");
        }
    }
}
