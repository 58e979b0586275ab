use bytes::BufMut;

use super::*;
use crate::wire::record::{record, record_begin};
use crate::wire::rpc::call;
use crate::{FeedType, Ident, ProductSpec, Timestamp};

fn info(size: u32) -> ProductInfo {
    ProductInfo { size, ident: Ident::new("s/00000").unwrap(), ..ProductInfo::default() }
}

fn product(size: u32) -> Vec<u8> {
    let mut body = call(7, 6, HEREIS);
    info(size).encode(&mut body);
    body.put_bytes(0xab, size as usize);
    body.put_bytes(0, padding(size as usize));
    record(&body).to_vec()
}

/// Parses a stream that arrives in parts, with the bytes of each product joined.
fn heard(stream: &[u8], split: usize) -> Result<Vec<String>, Garbled> {
    let mut listener = Listener::default();
    let (mut said, mut bytes) = (Vec::new(), 0);
    for part in stream.chunks(split) {
        listener.push(Bytes::copy_from_slice(part))?;
        while let Some(heard) = listener.next()? {
            match heard {
                Heard::Bytes(more) => bytes += more.len(),
                Heard::End => said.push(format!("{} bytes", std::mem::take(&mut bytes))),
                Heard::Begin { data: Data::Product(info), .. } => {
                    said.push(format!("product {}", info.ident))
                }
                Heard::Begin { data: Data::Block { number, .. }, .. } => said.push(format!("block {number}")),
                Heard::Call { call, version, .. } => said.push(format!("{call:?} of {}", version.number())),
                Heard::Reply { xid, .. } => said.push(format!("reply {xid}")),
                Heard::Refused { answer, .. } => said.push(format!("refused {:?}", &answer[8..])),
            }
        }
    }
    Ok(said)
}

#[test]
fn products_and_calls_are_heard_however_they_are_split() {
    let mut stream = product(5);
    stream.extend(product(0));
    stream.extend(record(&call(8, 6, NULLPROC)));
    let mut block = call(9, 5, BLKDATA);
    block.put_bytes(0, 16);
    block.put_u32(3);
    block.put_u32(2);
    block.put_slice(&[1, 2, 0, 0]);
    stream.extend(record(&block));
    for split in [1, 2, 3, 5, 44, 45, 46, 47, 48, 1_000] {
        let told = heard(&stream, split).unwrap();
        let wanted =
            ["product s/00000", "5 bytes", "product s/00000", "0 bytes", "Null of 6", "block 3", "2 bytes"];
        assert_eq!(told, wanted, "in parts of {split}");
    }
}

#[test]
fn fragments_may_end_anywhere_within_a_product() {
    let whole = product(6);
    for cut in 1..whole.len() - 4 {
        let body = &whole[4..];
        let mut stream = (cut as u32).to_be_bytes().to_vec();
        stream.extend(&body[..cut]);
        stream.extend(record(&body[cut..]));
        assert_eq!(heard(&stream, 10_000).unwrap(), ["product s/00000", "6 bytes"], "cut at {cut}");
    }
}

#[test]
fn a_product_that_ends_early_is_told_from_one_that_goes_on() {
    let mut body = call(7, 6, HEREIS);
    info(100).encode(&mut body);
    body.put_bytes(1, 50);
    assert_eq!(heard(&record(&body), 10_000), Err(Garbled::CutShort));
    assert_eq!(heard(&record_begin(&body, 50), 10_000).unwrap(), ["product s/00000"], "more may come");
}

#[test]
fn what_can_not_be_done_is_answered_with_the_reason() {
    let refusal = |version, procedure| heard(&record(&call(1, version, procedure)), 100).unwrap().remove(0);
    let words = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        format!("refused {bytes:?}")
    };
    assert_eq!(refusal(7, FEEDME), words(&[1, 0, 0, 0, 2, 5, 6]), "the versions that are spoken");
    assert_eq!(refusal(6, 2), words(&[1, 0, 0, 0, 3]));
    assert_eq!(refusal(5, IS_ALIVE), words(&[1, 0, 0, 0, 3]));
    assert_eq!(refusal(6, FEEDME), words(&[1, 0, 0, 0, 4]), "without its arguments");
    let mut other_program = call(1, 6, NULLPROC);
    other_program[15] ^= 1;
    assert_eq!(heard(&record(&other_program), 100).unwrap(), [words(&[1, 0, 0, 0, 1])]);
}

#[test]
fn messages_classes_and_what_waits_are_bounded() {
    let mut class = ProductClass { from: Timestamp::ZERO, to: Timestamp::ZERO, specs: Vec::new() };
    class.specs = vec![ProductSpec::new(FeedType::ANY, "x").unwrap(); 33];
    let mut body = call(1, 6, NOTIFYME);
    class.encode(&mut body);
    assert!(heard(&record(&body), 10_000).unwrap()[0].starts_with("refused"), "33 specs");

    let long = vec![0; MESSAGE_LIMIT_BYTES + 1];
    let mut body = call(1, 6, NOTIFYME);
    body.put_slice(&long);
    assert_eq!(heard(&record_begin(&body, 1), 100_000), Err(Garbled::Long));

    let mut listener = Listener::default();
    listener.push(Bytes::from(vec![0; WAITING_LIMIT_BYTES])).unwrap();
    assert_eq!(listener.push(Bytes::from_static(&[0])), Err(Garbled::Flood));
}
