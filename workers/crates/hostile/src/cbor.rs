//! CBOR bodies that our encoders never write: ranges that are reversed or overlap, numbers out of range,
//! texts that are not UTF-8.
use crate::dice::Dice;

/// The body with one to three of its values replaced; lengths of arrays are kept.
pub(crate) fn bent(body: &[u8], dice: &mut Dice) -> Vec<u8> {
    let items = items(body);
    let bends = 1 + dice.below(3);
    let places: Vec<u64> = (0..bends).map(|_| dice.below(items.len() as u64)).collect();
    let mut bent = Vec::with_capacity(body.len());
    for (number, item) in items.iter().enumerate() {
        match places.contains(&(number as u64)) {
            true => bent.extend(other(item, dice)),
            false => bent.extend(item.bytes),
        }
    }
    bent
}

/// A value of any shape.
pub(crate) fn anything(dice: &mut Dice, depth: u64) -> Vec<u8> {
    match dice.below(if depth == 0 { 4 } else { 6 }) {
        0 => head(0, dice.throw() >> dice.below(64)),
        1 => head(1, dice.throw() >> dice.below(64)),
        2 => [head(3, 4), b"text".to_vec()].concat(),
        3 => vec![0xf6],
        _ => {
            let count = dice.below(8);
            let parts = (0..count).flat_map(|_| anything(dice, depth - 1)).collect();
            [head(4, count), parts].concat()
        }
    }
}

/// One value, or the head of an array.
struct Item<'a> {
    major: u8,
    bytes: &'a [u8],
}

fn other(item: &Item<'_>, dice: &mut Dice) -> Vec<u8> {
    match item.major {
        0 | 1 => head(dice.below(2) as u8, u64::MAX >> dice.below(64)),
        // The last is half of a surrogate pair, which is invalid in a text.
        3 => match dice.below(3) {
            0 => head(3, 0),
            1 => [head(3, 3), b"a\0\n".to_vec()].concat(),
            _ => [head(3, 3), vec![0xed, 0xa0, 0x80]].concat(),
        },
        2 => [head(2, 3), vec![0; 3]].concat(),
        7 => head(0, dice.throw()),
        _ => item.bytes.to_vec(),
    }
}

/// Cuts a body of definite lengths into its heads and values.
fn items(mut body: &[u8]) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    while let Some((major, length)) = measure(body) {
        let (bytes, rest) = body.split_at(length.min(body.len()));
        items.push(Item { major, bytes });
        body = rest;
    }
    items
}

fn measure(body: &[u8]) -> Option<(u8, usize)> {
    let first = *body.first()?;
    let (major, low) = (first >> 5, first & 31);
    let wide = match low {
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => 0,
    };
    let argument =
        body.get(1..=wide).unwrap_or_default().iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let argument = if wide == 0 { u64::from(low) } else { argument };
    let content = if matches!(major, 2 | 3) { usize::try_from(argument).unwrap_or(usize::MAX) } else { 0 };
    Some((major, (1 + wide).saturating_add(content)))
}

fn head(major: u8, argument: u64) -> Vec<u8> {
    let major = major << 5;
    match argument {
        0..24 => vec![major | argument as u8],
        _ => [&[major | 27], argument.to_be_bytes().as_slice()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::RangeSet;

    use super::*;

    #[test]
    fn a_body_is_cut_into_all_of_its_values() {
        let body = minicbor::to_vec((1_u8, "text", vec![5_u64, u64::MAX], None::<u8>, true)).unwrap();
        let majors: Vec<u8> = items(&body).iter().map(|item| item.major).collect();
        assert_eq!(majors, [4, 0, 3, 4, 0, 0, 7, 7]);
        assert_eq!(items(&body).iter().flat_map(|item| item.bytes).copied().collect::<Vec<u8>>(), body);
    }

    #[test]
    fn bent_ranges_still_decode_and_some_are_reversed() {
        let ranges: RangeSet = [(5, 9), (20, 30)].into_iter().collect();
        let body = minicbor::to_vec(&ranges).unwrap();
        let decoded =
            (0..100).filter(|n| minicbor::decode::<RangeSet>(&bent(&body, &mut Dice::new(1, *n))).is_ok());
        assert!(decoded.count() > 30);
    }
}
