use super::*;

const ENTROPY: Entropy = [5; 32];

fn site() -> SiteName {
    SiteName::parse("unl").unwrap()
}

fn token(secret: &str) -> Token {
    Token::parse(&format!("dbt1.{}.{secret}\n", "AB".repeat(32))).unwrap()
}

fn enrolled(secret: &str) -> Credentials {
    Credentials::enrolled(site(), "ab".repeat(32), secret.to_owned())
}

fn shown(credentials: &Credentials) -> String {
    match credentials.proof() {
        Proof::Credential { secret, .. } => secret,
        Proof::Token { .. } => panic!("a token is shown"),
    }
}

/// The credentials after a restart.
fn kept(credentials: &Credentials) -> Credentials {
    CredentialsRecord::from(credentials).into()
}

#[test]
fn tokens_are_read_and_bad_ones_refused_with_what_to_do() {
    let ca = "ab".repeat(32);
    let short = format!("dbt1.{}.s", "ab".repeat(31));
    let table = [
        (format!("dbt1.{ca}.s"), true),
        (format!(" dbt1.{}.s\n", ca.to_uppercase()), true),
        (format!("dbt2.{ca}.s"), false),
        (format!("dbt1.{ca}."), false),
        (format!("dbt1.{ca}.s.t"), false),
        (format!("dbt1.{}.s", "xy".repeat(32)), false),
        (short, false),
        (String::new(), false),
    ];
    for (text, is_good) in table {
        match Token::parse(&text) {
            Ok(token) => assert!(is_good && token.ca_sha256 == ca, "{text}"),
            Err(sentence) => assert!(!is_good && sentence.contains("copy the whole token"), "{text}"),
        }
    }
}

#[test]
fn a_token_is_shown_until_the_hub_accepted_it() {
    let mut held = Credentials::enrolling(&token("one"), &ENTROPY);
    assert!(matches!(held.proof(), Proof::Token { .. }) && held.is_new());
    assert!(!held.refused(), "it has nothing else to show");
    assert!(held.accepted(&site()) && !held.accepted(&site()), "what changed has to be kept");
    assert_eq!((shown(&held), held.is_new()), ("05".repeat(32), false));
    let anew = held.enrolling_anew(&token("two"), &[6; 32]);
    assert!(anew.is_new() && anew.site() == Some(&site()));
    assert_ne!((anew.current(), anew.token_sha256()), (held.current(), held.token_sha256()));
}

#[test]
fn a_hub_at_a_new_address_is_noted_once() {
    let mut held = enrolled("a");
    assert_eq!(["h:1", "h:1", "h:2"].map(|address| held.hub_is_at(address)), [true, false, true]);
    assert_eq!(kept(&held), held);
}

#[test]
fn after_a_crash_one_of_the_two_is_taken() {
    let first = enrolled("a");
    let (offering, sha256) = first.offering(&sha256_hex(b"a"), &ENTROPY);
    let mut crashed = kept(&offering);
    assert_eq!(shown(&crashed), "a", "the hub may not know the other one");
    assert!(crashed.refused(), "or it may, and the first one's time may be over");
    assert_eq!(sha256_hex(shown(&crashed).as_bytes()), sha256);
    assert_eq!(crashed.offering(&sha256_hex(b"a"), &[1; 32]).1, sha256, "what was offered is offered again");
    assert!(offering.showing(&"00".repeat(32)).is_none());
    let (showing, secret) = offering.showing(&sha256).unwrap();
    let mut later = kept(&showing);
    assert_eq!(shown(&later), secret);
    assert!(later.refused(), "a hub that was restored knows the first one alone");
    assert!(later.accepted(&site()));
    assert_eq!(shown(&kept(&later)), "a");
}

#[test]
fn what_one_connection_to_a_hub_changed_another_one_takes_up() {
    let (one, mut other) = (enrolled("a"), enrolled("a"));
    let (offering, sha256) = one.offering(&sha256_hex(b"a"), &ENTROPY);
    assert!(!other.take_up(Some(kept(&offering))), "what was offered may not be known to the hub");
    assert!(!other.take_up(None), "it can't be read");
    let (showing, secret) = offering.showing(&sha256).unwrap();
    assert!(other.take_up(Some(kept(&showing))) && !other.take_up(Some(kept(&showing))));
    assert_eq!(shown(&other), secret);
}

#[test]
fn one_thing_is_kept_after_the_other_and_the_hub_asks_again() {
    let mut exchange = CredentialsExchange::new(enrolled("a"));
    let wanted = |exchange: &mut CredentialsExchange| exchange.wanted(sha256_hex(b"a"));
    assert!(matches!(wanted(&mut exchange), Next::Order(CredentialsOrder::TakeTurn)));
    let turn = || CredentialsAnswer::Turn { kept: None, entropy: ENTROPY };
    assert!(matches!(exchange.answer(turn()), Next::Order(CredentialsOrder::Keep(_))));
    assert!(exchange.is_busy() && matches!(wanted(&mut exchange), Next::Nothing));
    assert!(matches!(exchange.answer(CredentialsAnswer::Kept(Ok(()))), Next::Tell(_)));
    assert!(!exchange.is_busy());
    assert!(matches!(exchange.answer(CredentialsAnswer::Kept(Ok(()))), Next::Nothing), "nothing was kept");
    exchange.end();
    assert!(matches!(exchange.answer(turn()), Next::Order(CredentialsOrder::EndTurn)), "too late");
}

#[test]
fn nothing_secret_is_printed() {
    let (held, token) = (enrolled("a-secret"), token("a-secret"));
    assert!(!format!("{held:?} {token:?}").contains("a-secret"));
}
