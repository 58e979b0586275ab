use std::fmt;

use serde::Deserialize;

/// The login at the server of an announced address: a user with a password, or a token.
#[derive(Clone, Deserialize, PartialEq, Eq)]
pub struct Credentials {
    /// The user of HTTP's basic authentication (RFC 7617).
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// A bearer token (RFC 6750), in place of user and password.
    pub token: Option<String>,
}

/// The login as a request carries it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Login<'a> {
    /// User and password.
    Basic(&'a str, &'a str),
    /// A bearer token.
    Bearer(&'a str),
}

/// A server that is asked: one that differs in any of these is another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server<'a> {
    /// The address's scheme, in lower case.
    pub scheme: &'a str,
    /// Its host, without port, in lower case.
    pub host: &'a str,
    /// Its port, also where it is the scheme's usual one.
    pub port: u16,
}

impl Credentials {
    /// # Errors
    /// They are neither a user with a password nor a token, or of characters that no header takes; one sentence,
    /// without them.
    pub fn check(&self) -> Result<(), String> {
        let texts = [&self.user, &self.password, &self.token];
        if texts.into_iter().flatten().any(|it| it.len() > LONGEST || it.chars().any(char::is_control)) {
            return Err(format!(
                "a part of `credentials` has more than {LONGEST} bytes, or control characters"
            ));
        }
        match self.login() {
            Some(Login::Basic(user, _)) if user.contains(':') => {
                Err("the user of `credentials` has a colon, which ends it in a header".to_owned())
            }
            Some(Login::Bearer(token)) if !token.bytes().all(|it| it.is_ascii_graphic()) => {
                Err("the token of `credentials` has characters that no header takes".to_owned())
            }
            Some(_) => Ok(()),
            None => Err("`credentials` are neither a user with a password nor a token".to_owned()),
        }
    }

    /// The login for the next server on the way from the announced one. Only the announced server gets it, and without
    /// encryption only where private networks are allowed.
    pub fn for_server(
        &self,
        announced: Server<'_>,
        next: Server<'_>,
        allows_private: bool,
    ) -> Option<Login<'_>> {
        let is_safe = next.scheme == "https" || allows_private;
        self.login().filter(|_| is_safe && next == announced)
    }

    fn login(&self) -> Option<Login<'_>> {
        match (&self.user, &self.password, &self.token) {
            (Some(user), Some(password), None) => Some(Login::Basic(user, password)),
            (None, None, Some(token)) => Some(Login::Bearer(token)),
            _ => None,
        }
    }
}

/// A secret is in no log.
impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Credentials")
    }
}

const LONGEST: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: Server<'static> = Server { scheme: "https", host: "data.example", port: 443 };

    fn read(text: &str) -> Credentials {
        serde_json::from_str(text).unwrap()
    }

    fn basic() -> Credentials {
        read(r#"{"user": "unl", "password": "sesame"}"#)
    }

    #[test]
    fn only_the_announced_server_gets_them() {
        let found = basic();
        assert!(found.for_server(THERE, THERE, false) == Some(Login::Basic("unl", "sesame")));
        for other in [
            Server { host: "other.example", ..THERE },
            Server { port: 8443, ..THERE },
            Server { scheme: "http", port: 80, ..THERE },
        ] {
            for allows_private in [false, true] {
                assert!(found.for_server(THERE, other, allows_private).is_none(), "{other:?}");
            }
        }
    }

    #[test]
    fn they_are_encrypted_unless_private_networks_are_allowed() {
        let plain = Server { scheme: "http", port: 80, ..THERE };
        let token = read(r#"{"token": "abc"}"#);
        assert!(token.for_server(plain, plain, false).is_none());
        assert!(token.for_server(plain, plain, true) == Some(Login::Bearer("abc")));
    }

    #[test]
    fn others_are_refused_without_being_shown() {
        assert_eq!(basic().check(), Ok(()));
        assert_eq!(read(r#"{"token": "a.b-c~d+/="}"#).check(), Ok(()));
        let long = format!(r#"{{"token": "{}"}}"#, "sesame".repeat(1_000));
        for wrong in [
            "{}",
            r#"{"user": "sesame"}"#,
            r#"{"user": "unl", "password": "sesame", "token": "sesame"}"#,
            r#"{"user": "a:sesame", "password": "sesame"}"#,
            r#"{"user": "a", "password": "sesame\r\nHost: x"}"#,
            r#"{"token": "a sesame"}"#,
            r#"{"token": "sesäme"}"#,
            &long,
        ] {
            let refused = read(wrong).check().unwrap_err();
            assert!(refused.contains("credentials") && !refused.contains("sesame"), "{refused}");
        }
        assert_eq!(format!("{:?}", basic()), "Credentials");
    }
}
