//! The location of each hub's state in the site's directory.
use downburst_model::Origin;

/// The index of the hub, among the addresses of a site's hubs, that has the site's own state directory; the others
/// have one each below it. `first` is the address of the site's first hub ever, `has_own` is true for a hub with a
/// directory of its own. A hub is known by its address; if the first hub is no longer listed, a hub at a new
/// address is taken for it.
pub fn hub_at_home<'a>(
    hubs: impl IntoIterator<Item = &'a str> + Clone,
    first: Option<&str>,
    has_own: impl Fn(&str) -> bool,
) -> Option<usize> {
    let at_home = hubs.clone().into_iter().position(|hub| Some(hub) == first);
    at_home.or_else(|| hubs.into_iter().position(|hub| !has_own(hub)))
}

/// The host name of a hub, in the form that an LDM appends to the origins of products; `None` if it is not a valid
/// origin. `address` is `HOST:PORT`.
pub fn host_of(address: &str) -> Option<Origin> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    Origin::parse(host.trim_matches(['[', ']'])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hub_is_known_by_its_address_or_as_the_only_one_without_a_directory() {
        let at_home = |hubs: &[&str], first| hub_at_home(hubs.iter().copied(), first, |hub| hub == "b:1");
        assert_eq!(at_home(&["a:1", "c:1"], None), Some(0), "a new site");
        assert_eq!(at_home(&["b:1", "a:1"], Some("a:1")), Some(1), "in any order");
        assert_eq!(at_home(&["b:1"], Some("a:1")), None, "the other hub keeps its place");
        assert_eq!(at_home(&["b:1", "moved:1"], Some("a:1")), Some(1), "at a new address");
    }

    #[test]
    fn a_hub_is_called_by_its_host() {
        let host = |address| host_of(address).map(|host| host.as_str().to_owned());
        assert_eq!(host("hub.example:7370").as_deref(), Some("hub.example"));
        assert_eq!(host("[2001:db8::1]:7370").as_deref(), Some("2001:db8::1"));
        assert_eq!(host("two\nlines:7370"), None);
    }
}
