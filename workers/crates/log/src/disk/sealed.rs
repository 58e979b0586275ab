//! JSON with a checksum that reveals changes.
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// JSON for people and programs, with a checksum over all its other fields.
///
/// # Errors
/// If JSON can't hold the value.
pub fn sealed<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut value = serde_json::to_value(value)?;
    let sum = checksum(&value)?;
    if let Value::Object(fields) = &mut value {
        fields.insert(CHECKSUM.to_owned(), sum.into());
    }
    serde_json::to_vec_pretty(&value)
}

/// Reads a value written by [`sealed`]. Text without a checksum is from a release that had none, and is accepted.
///
/// # Errors
/// A sentence: the text is not JSON of this kind, or it was changed.
pub fn unsealed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let sum = value.as_object_mut().and_then(|fields| fields.remove(CHECKSUM));
    let found = checksum(&value).map_err(|error| error.to_string())?;
    if sum.is_some_and(|sum| sum.as_str() != Some(&found)) {
        return Err("it does not match its checksum".to_owned());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The checksum of the fields in name order, so that a release that knows fewer of them computes the same.
fn checksum(value: &Value) -> serde_json::Result<String> {
    let hash = blake3::hash(&serde_json::to_vec(value)?).to_hex();
    Ok(hash.get(..16).unwrap_or_default().to_owned())
}

const CHECKSUM: &str = "checksum";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_in_sealed_text_is_noticed_and_text_without_a_checksum_is_believed() {
        let value = serde_json::json!({"secret": "abcdef", "site": "ucla", "token": null});
        let text = String::from_utf8(sealed(&value).unwrap()).unwrap();
        assert_eq!(unsealed::<Value>(&text).unwrap(), value);
        assert_eq!(unsealed::<Value>(&value.to_string()).unwrap(), value);
        for (at, letter) in text.char_indices().filter(|(_, letter)| letter.is_ascii_alphanumeric()) {
            let other = if letter == 'z' { 'y' } else { 'z' };
            let mut bad = text.clone();
            bad.replace_range(at..=at, &other.to_string());
            // A damaged name of the checksum is an unknown field, which no reader requests.
            let read = unsealed::<Value>(&bad);
            assert!(read.is_err() || read.unwrap() != value, "{bad}");
        }
    }
}
