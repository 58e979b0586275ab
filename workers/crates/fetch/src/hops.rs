use crate::Limits;

/// One address that is asked on the way to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop<'a> {
    /// The address's scheme, in lower case.
    pub scheme: &'a str,
    /// Its host, without port, in lower case.
    pub host: &'a str,
}

/// Checks the next address: that of the announcement (`before` is `None`), or one to which a server redirects.
///
/// # Errors
/// It is not to be asked; one sentence.
pub fn next_hop(
    before: Option<Hop<'_>>,
    next: Hop<'_>,
    redirects: usize,
    limits: &Limits,
) -> Result<(), String> {
    if !["http", "https"].contains(&next.scheme) {
        return Err(format!("products are fetched by HTTP and HTTPS, not by {:?}", shown(next.scheme)));
    }
    let Some(before) = before else { return Ok(()) };
    if redirects > limits.redirects as usize {
        return Err(format!("the server redirects more than {} times", limits.redirects));
    }
    if before.scheme == "https" && next.scheme == "http" {
        return Err(format!("{} redirects from HTTPS to HTTP", shown(before.host)));
    }
    let is_named = limits.hosts.is_empty() || limits.hosts.iter().any(|host| host == next.host);
    if before.host == next.host || is_named {
        return Ok(());
    }
    Err(format!(
        "{} redirects to {}, which is none of the source's hosts",
        shown(before.host),
        shown(next.host)
    ))
}

/// A text of a stranger, short enough for a message.
fn shown(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Hop<'static> = Hop { scheme: "https", host: "cache.example" };

    fn limits(hosts: &[&str]) -> Limits {
        Limits { redirects: 2, hosts: hosts.iter().map(|&it| it.to_owned()).collect(), ..Limits::default() }
    }

    #[test]
    fn only_http_is_asked() {
        for (scheme, good) in [("http", true), ("https", true), ("ftp", false), ("file", false)] {
            let found = next_hop(None, Hop { scheme, ..HERE }, 0, &limits(&[]));
            assert_eq!(found.is_ok(), good, "{scheme}: {found:?}");
        }
    }

    #[test]
    fn redirects_are_few_and_stay_encrypted() {
        let there = Hop { host: "bucket.example", ..HERE };
        assert!(next_hop(Some(HERE), there, 2, &limits(&[])).is_ok());
        assert!(next_hop(Some(HERE), there, 3, &limits(&[])).unwrap_err().contains("2 times"));
        let plain = Hop { scheme: "http", ..there };
        assert!(next_hop(Some(HERE), plain, 1, &limits(&[])).unwrap_err().contains("from HTTPS"));
    }

    #[test]
    fn redirects_lead_to_named_hosts_where_some_are_named() {
        let there = Hop { host: "bucket.example", ..HERE };
        assert!(next_hop(Some(HERE), there, 1, &limits(&["bucket.example"])).is_ok());
        assert!(next_hop(Some(HERE), HERE, 1, &limits(&["other.example"])).is_ok(), "the same host");
        let refused = next_hop(Some(HERE), there, 1, &limits(&["other.example"])).unwrap_err();
        assert!(refused.contains("cache.example redirects to bucket.example"), "{refused}");
    }
}
