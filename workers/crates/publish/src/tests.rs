//! An outlet before brokers that are none.
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use downburst_wis2::{Broker, Message};

use super::*;

fn broker(port: u16) -> Broker {
    Broker::parse(&format!("mqtt://node@127.0.0.1:{port}")).unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A listener that answers the first packet of each connection with these bytes.
fn answering(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut begin = [0; 512];
            let _ = stream.read(&mut begin);
            let _ = stream.write_all(answer);
            let _ = stream.read(&mut begin);
        }
    });
    port
}

#[test]
fn a_place_without_a_broker_is_one_sentence() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let outlet = Outlet::start(broker(port), || ()).unwrap();
    until("a fault", || outlet.fault().contains("takes no connection at port"));
    let message = Message { id: String::new(), topic: "t".to_owned(), payload: Vec::new() };
    assert!(!outlet.send(1, &message) && outlet.answers().is_empty() && !outlet.is_over());
}

#[test]
fn refusals_and_noise_are_sentences() {
    for (answer, part) in [
        (&[0x20, 3, 0, 135, 0][..], "refuses user node: not authorized"),
        (&[0x20, 3, 0, 134, 0], "refuses user node: bad user name or password"),
        (&[0xff; 40], "is no broker of MQTT 5"),
    ] {
        let outlet = Outlet::start(broker(answering(answer)), || ()).unwrap();
        until("a fault", || !outlet.fault().is_empty());
        assert!(outlet.fault().contains(part), "{}", outlet.fault());
    }
}

#[test]
fn a_missing_password_is_a_sentence_and_the_outlet_ends_while_it_waits() {
    let with = Broker { password_file: Some("/nowhere/password".into()), ..broker(1) };
    let outlet = Outlet::start(with, || ()).unwrap();
    until("a fault", || outlet.fault().contains("/nowhere/password can't be read"));
    let encrypted = Broker { is_encrypted: true, ca_file: Some("/nowhere/ca.pem".into()), ..broker(1) };
    let second = Outlet::start(encrypted, || ()).unwrap();
    until("a fault", || second.fault().contains("certificates in /nowhere/ca.pem"));
}

#[test]
fn answers_that_were_not_asked_for_end_the_connection_alone() {
    let outlet = Outlet::start(broker(answering(&[0x20, 3, 0, 0, 0, 0x40, 2, 0, 9])), || ()).unwrap();
    until("a fault", || outlet.fault().contains("the connection ended"));
    assert!(!outlet.is_over());
}
