//! The notification by which a product came, as its properties keep it:
//! `{"source": "wis2", "topic": "cache/a/wis2/…", "notification": {…}}`.
use serde_json::Value;

use crate::instant;
use crate::topic::Topic;

/// The statements of a product's source that its own notification passes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stated {
    pub(crate) topic: Topic,
    pub(crate) data_id: String,
    /// Set by the first publisher, and never changed behind it.
    pub(crate) published_at: String,
    /// The time of the data; `None`: not known.
    pub(crate) data_at: Option<String>,
    /// A point or a polygon; null: not known.
    pub(crate) geometry: Value,
}

impl Stated {
    /// Reads a product's properties; `None`: another kind of source made them.
    ///
    /// # Errors
    /// A sentence, if they are of WIS2 and can't be read.
    pub(crate) fn read(properties: &[u8]) -> Result<Option<Self>, String> {
        let Ok(document) = serde_json::from_slice::<Value>(properties) else { return Ok(None) };
        if document.get("source").and_then(Value::as_str) != Some("wis2") {
            return Ok(None);
        }
        let damaged = || "the notification by which it came can't be read again".to_owned();
        Self::of(&document).map(Some).ok_or_else(damaged)
    }

    fn of(document: &Value) -> Option<Self> {
        let topic = Topic::read(document.get("topic")?.as_str()?)?;
        let notification = document.get("notification")?;
        let properties = notification.get("properties")?;
        let data_id = properties.get("data_id")?.as_str()?;
        if data_id.is_empty() || data_id.chars().count() > LONGEST_DATA_ID {
            return None;
        }
        let time = |name: &str| properties.get(name).and_then(Value::as_str).and_then(instant::normalized);
        let geometry = notification.get("geometry").filter(|geometry| is_place(geometry));
        Some(Self {
            topic,
            data_id: data_id.to_owned(),
            published_at: time("pubtime")?,
            data_at: time("datetime"),
            geometry: geometry.cloned().unwrap_or(Value::Null),
        })
    }
}

/// True for a point or a polygon whose coordinates are numbers (requirement `geometry`, B).
fn is_place(geometry: &Value) -> bool {
    let depth = match geometry.get("type").and_then(Value::as_str) {
        Some("Point") => 1,
        Some("Polygon") => 3,
        _ => return false,
    };
    geometry.as_object().is_some_and(|members| members.len() == 2)
        && geometry.get("coordinates").is_some_and(|coordinates| is_nested(coordinates, depth))
}

fn is_nested(value: &Value, depth: usize) -> bool {
    match value {
        Value::Number(_) => depth == 0,
        Value::Array(items) if depth == 1 => {
            (2..=3).contains(&items.len()) && items.iter().all(|item| is_nested(item, 0))
        }
        Value::Array(items) => {
            depth > 0 && !items.is_empty() && items.iter().all(|item| is_nested(item, depth - 1))
        }
        _ => false,
    }
}

pub(crate) const LONGEST_DATA_ID: usize = 255;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    pub(crate) fn properties(topic: &str) -> Vec<u8> {
        let notification = json!({
            "id": "31e9d66a-cd83-4174-9429-b932f1abe1be",
            "geometry": {"type": "Point", "coordinates": [8.5, 50.0]},
            "properties": {
                "data_id": "de-dwd/synop/1", "pubtime": "2026-11-23T04:00:00Z", "datetime": "2026-11-23T03:00:00Z",
            },
        });
        json!({"source": "wis2", "topic": topic, "notification": notification}).to_string().into_bytes()
    }

    #[test]
    fn the_notification_of_a_product_is_read_back() {
        let topic = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop";
        let stated = Stated::read(&properties(topic)).unwrap().unwrap();
        assert_eq!(stated.topic, Topic { centre: "de-dwd".to_owned(), is_recommended: false });
        assert_eq!(stated.published_at, "2026-11-23T04:00:00.000Z");
        assert_eq!(stated.data_at.as_deref(), Some("2026-11-23T03:00:00.000Z"));
        assert_eq!(stated.geometry["type"], "Point");
    }

    #[test]
    fn other_sources_have_none_and_damage_is_no_other_source() {
        assert_eq!(Stated::read(b"{\"source\": \"sarracenia\"}"), Ok(None));
        assert_eq!(Stated::read(b"no json"), Ok(None));
        for topic in
            ["", "monitor/a/wis2/x", "cache/a/wis2/de-dwd/data/free/weather", "cache/a/wis2/+/metadata"]
        {
            assert!(Stated::read(&properties(topic)).is_err(), "{topic}");
        }
    }

    #[test]
    fn a_place_is_a_point_or_a_polygon_of_numbers() {
        let ring = json!([[[0, 0], [1, 0], [1, 1], [0, 0]]]);
        for (geometry, is_one) in [
            (json!({"type": "Point", "coordinates": [1, 2.5]}), true),
            (json!({"type": "Point", "coordinates": [1, 2, 3]}), true),
            (json!({"type": "Polygon", "coordinates": ring}), true),
            (json!({"type": "Point", "coordinates": "10.0,50.0"}), false),
            (json!({"type": "Point", "coordinates": [1]}), false),
            (json!({"type": "Polygon", "coordinates": []}), false),
            (json!({"type": "MultiPoint", "coordinates": [[1, 2]]}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_place(&geometry), is_one, "{geometry}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = Stated::read(&bytes);
        }
    }
}
