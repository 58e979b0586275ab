//! The credentials of a connection.
use super::*;
use crate::{CredentialsAnswer, CredentialsOrder, Token};

#[test]
fn a_credential_that_another_connection_replaced_is_taken_up() {
    let mut rig = Rig::new(settings());
    (rig.refuses, rig.kept) = (Some(RefusalCode::Credential), Some(enrolled("another")));
    rig.connect();
    assert!(!rig.take_said().contains(&"refused".to_owned()));
    assert_eq!(rig.connection.credentials().current(), "another");
    rig.refuses = None;
    next_dial(&mut rig);
    rig.answer();
    rig.settle();
    assert_eq!(rig.take_said(), ["well as Serve"]);
}

#[test]
fn it_does_not_call_before_it_is_known_what_it_shows() {
    let mut rig = Rig::new(settings());
    rig.refuses = Some(RefusalCode::Credential);
    rig.settle();
    rig.take_said();
    rig.answer();
    // The disk is slow: the rig's own answer is omitted.
    while let Some(output) = rig.connection.poll(rig.now()) {
        match output {
            Output::Credentials(CredentialsOrder::Read) => break,
            Output::Write { stream, bytes } => {
                let now = rig.now();
                let hub = rig.hub.as_mut().unwrap();
                hub.handle(now, HubInput::Bytes { stream, bytes });
                let refused =
                    downburst_session::Refused { code: RefusalCode::Credential, sentence: "no".to_owned() };
                hub.handle(now, HubInput::Refuse(refused));
                while let Some(said) = hub.poll(now) {
                    if let downburst_session::HubOutput::Write { stream, bytes, .. } = said {
                        rig.connection.handle(now, Input::Bytes { stream, bytes });
                    }
                }
            }
            _ => {}
        }
    }
    rig.wait(Micros::from_secs(20));
    assert!(!rig.take_said().contains(&"dial".to_owned()), "what others kept is not known");
    rig.tell(Input::Credentials(CredentialsAnswer::Read(Some(enrolled("another")))));
    assert!(next_dial(&mut rig) <= SECOND);
}

#[test]
fn a_new_site_keeps_that_it_was_let_in_and_says_if_it_can_not() {
    let token = Token::parse(&format!("dbt1.{}.one", "ab".repeat(32))).unwrap();
    let mut rig = Rig::with(settings(), Credentials::enrolling(&token, &[3; 32]), Vec::new(), Role::Serve);
    rig.connect();
    assert_eq!(rig.take_said(), ["keep credentials", "well as Serve"]);
    rig.tell(Input::Credentials(CredentialsAnswer::Kept(Err("disk full".to_owned()))));
    rig.settle();
    assert_eq!(rig.take_said(), ["unkept: disk full"]);
}

fn kept_now(rig: &mut Rig) -> Credentials {
    let outputs = std::mem::take(&mut rig.outputs);
    let kept = outputs.into_iter().find_map(|output| match output {
        Output::Credentials(CredentialsOrder::Keep(credentials)) => Some(credentials),
        _ => None,
    });
    kept.expect("something is kept")
}

fn sha256(secret: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, secret.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_credential_is_kept_before_it_is_offered_and_before_it_is_shown() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    let of = sha256("secret");
    hub_says(&mut rig, HubInput::WantCredential(CredentialWanted { of }));
    assert_eq!(rig.take_said(), ["take the turn"]);
    rig.tell(Input::Credentials(CredentialsAnswer::Turn { kept: None, entropy: [9; 32] }));
    rig.settle();
    let offered = kept_now(&mut rig);
    assert_eq!(offered.current(), "secret", "until the hub keeps the other one");
    assert_eq!(rig.connection.credentials().current(), "secret");
    rig.tell(Input::Credentials(CredentialsAnswer::Kept(Ok(()))));
    rig.settle();
    let next = "09".repeat(32);
    hub_says(&mut rig, HubInput::KeepCredential(CredentialKept { sha256: sha256(&next), ends: None }));
    assert_eq!(kept_now(&mut rig).current(), next);
    assert_eq!(rig.connection.credentials().current(), "secret", "it is not on the disk yet");
    rig.tell(Input::Credentials(CredentialsAnswer::Kept(Ok(()))));
    rig.settle();
    assert_eq!(rig.connection.credentials().current(), next);
}

#[test]
fn what_can_not_be_kept_is_not_offered() {
    let mut rig = Rig::new(settings());
    rig.connect();
    let of = sha256("secret");
    hub_says(&mut rig, HubInput::WantCredential(CredentialWanted { of }));
    rig.tell(Input::Credentials(CredentialsAnswer::Turn { kept: None, entropy: [9; 32] }));
    rig.settle();
    kept_now(&mut rig);
    rig.tell(Input::Credentials(CredentialsAnswer::Kept(Err("disk full".to_owned()))));
    rig.settle();
    assert_eq!(rig.connection.credentials(), &enrolled("secret"));
    assert_eq!(rig.take_said(), Vec::<String>::new(), "the site goes on with what it has");
}

#[test]
fn the_turn_reveals_what_others_changed_and_the_site_connects_anew() {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.take_said();
    let of = sha256("secret");
    hub_says(&mut rig, HubInput::WantCredential(CredentialWanted { of }));
    rig.take_said();
    let kept = Some(enrolled("another"));
    rig.tell(Input::Credentials(CredentialsAnswer::Turn { kept, entropy: [9; 32] }));
    rig.settle();
    assert_eq!(rig.take_said(), ["away", "hang up"]);
    assert_eq!(rig.connection.credentials().current(), "another");
}
