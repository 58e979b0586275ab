use downburst_model::Pattern;

use crate::FeedType;
use crate::class::{MOST_SPECS, ProductClass, ProductSpec};
use crate::product::ProductInfo;

/// The rights of hosts to request and to push products: the lines of a server's configuration, in their order.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// For each feed, the first site with a line for it that matches the host decides.
    pub allow: Vec<Allow>,
    /// The lines that match the host add up.
    pub accept: Vec<Accept>,
}

/// Hosts that may request feeds.
#[derive(Clone, Debug)]
pub struct Allow {
    /// Number of the site. Lines of one site are consecutive and add up.
    pub site: u32,
    /// The feeds.
    pub feeds: FeedType,
    /// Matches the name of the host, in lower case, or its address.
    pub host: Pattern,
    /// Identifiers that the host may request; none means all.
    pub ok: Option<Pattern>,
    /// Identifiers that the host may not request.
    pub not: Option<Pattern>,
}

/// Hosts that may push feeds.
#[derive(Clone, Debug)]
pub struct Accept {
    /// The feeds.
    pub feeds: FeedType,
    /// Identifiers that are accepted.
    pub pattern: Pattern,
    /// Matches the name of the host, in lower case, or its address.
    pub host: Pattern,
}

/// The rights of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights(Vec<Right>);

#[derive(Clone, Debug)]
struct Right {
    feeds: FeedType,
    ok: Option<Pattern>,
    not: Option<Pattern>,
}

impl Access {
    /// The rights of a host, with all its `names`, to request products.
    pub(crate) fn asking(&self, names: &[String]) -> Rights {
        let (mut rights, mut decided) = (Vec::new(), FeedType::NONE);
        for site in self.allow.chunk_by(|line, next| line.site == next.site) {
            let before = decided;
            for line in site.iter().filter(|line| knows(&line.host, names)) {
                let feeds = line.feeds.without(before);
                decided = decided.with(feeds);
                rights.push(Right { feeds, ok: line.ok.clone(), not: line.not.clone() });
            }
        }
        Rights(rights)
    }

    /// The rights of a host to push products.
    pub(crate) fn pushing(&self, names: &[String]) -> Rights {
        let lines = self.accept.iter().filter(|line| knows(&line.host, names));
        Rights(
            lines
                .map(|line| Right { feeds: line.feeds, ok: Some(line.pattern.clone()), not: None })
                .collect(),
        )
    }
}

impl Rights {
    /// Returns the class without the feeds that the host has no right to.
    pub(crate) fn reduce(&self, class: &ProductClass) -> ProductClass {
        let feeds = self.0.iter().fold(FeedType::NONE, |feeds, right| feeds.with(right.feeds));
        let specs = class
            .specs
            .iter()
            .map(|spec| ProductSpec { feeds: spec.feeds.common(feeds), pattern: spec.pattern.clone() });
        let specs = specs.filter(|spec| !spec.feeds.is_none()).take(MOST_SPECS as usize).collect();
        ProductClass { specs, ..class.clone() }
    }

    pub(crate) fn permit(&self, info: &ProductInfo) -> bool {
        let ident = info.ident.text();
        let matches = |pattern: &Option<Pattern>| pattern.as_ref().map(|pattern| pattern.matches(&ident));
        self.0.iter().any(|right| {
            right.feeds.meets(info.feed)
                && matches(&right.ok) != Some(false)
                && matches(&right.not) != Some(true)
        })
    }

    /// True if the host may push the product under every one of its feed types for which it has lines: a
    /// product of several types can't bypass the patterns of one of them.
    pub(crate) fn admit(&self, info: &ProductInfo) -> bool {
        let ident = info.ident.text();
        let matches = |pattern: &Option<Pattern>| pattern.as_ref().map(|pattern| pattern.matches(&ident));
        let all = |known: FeedType, right: &Right| known.with(right.feeds.common(info.feed));
        let rights = || self.0.iter();
        let granted = rights().filter(|it| matches(&it.ok) != Some(false) && matches(&it.not) != Some(true));
        let granted = granted.fold(FeedType::NONE, all);
        !granted.is_none() && granted.holds(rights().fold(FeedType::NONE, all))
    }
}

fn knows(host: &Pattern, names: &[String]) -> bool {
    names.iter().any(|name| host.matches(&name.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ident, Timestamp};

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn allow(feeds: &str, host: &str, ok: Option<&str>, not: Option<&str>) -> Allow {
        let (ok, not) = (ok.map(pattern), not.map(pattern));
        Allow { site: 0, feeds: feeds.parse().unwrap(), host: pattern(host), ok, not }
    }

    fn names(name: &str) -> Vec<String> {
        vec![name.to_owned(), "192.0.2.7".to_owned()]
    }

    fn product(feed: &str, ident: &str) -> ProductInfo {
        let ident = Ident::new(ident.to_owned()).unwrap();
        ProductInfo { feed: feed.parse().unwrap(), ident, ..ProductInfo::default() }
    }

    #[test]
    fn the_first_line_that_knows_the_host_decides_for_each_feed() {
        let lines = [
            allow("WMO", r"\.edu$", None, Some("^SECRET")),
            allow("ANY", r"^192\.0\.2\.", Some("^A"), None),
            allow("ANY", ".*", None, None),
        ];
        let allow = (0..).zip(lines).map(|(site, line)| Allow { site, ..line }).collect();
        let access = Access { allow, accept: Vec::new() };
        let rights = access.asking(&names("IDD.Unl.edu"));
        assert!(rights.permit(&product("IDS", "open")) && !rights.permit(&product("IDS", "SECRET 1")));
        assert!(rights.permit(&product("NGRID", "A1")) && !rights.permit(&product("NGRID", "B1")));
    }

    #[test]
    fn lines_of_a_site_add_up() {
        let lines = [allow("NGRID", "a", Some("^A"), None), allow("NGRID", "a", Some("^B"), None)];
        let later = Allow { site: 1, ..allow("NGRID", ".*", None, None) };
        let access = Access { allow: lines.into_iter().chain([later]).collect(), accept: Vec::new() };
        let rights = access.asking(&names("a"));
        assert!(["A1", "B1"].iter().all(|ident| rights.permit(&product("NGRID", ident))));
        assert!(!rights.permit(&product("NGRID", "C1")), "the second site comes too late");
    }

    #[test]
    fn a_class_keeps_what_its_host_may_have() {
        let access = Access { allow: vec![allow("WMO", "a", None, None)], accept: Vec::new() };
        let specs = ["ANY", "NGRID"].map(|feeds| ProductSpec::new(feeds.parse().unwrap(), ".*").unwrap());
        let class = ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs: specs.to_vec() };
        let reduced = access.asking(&names("a")).reduce(&class);
        assert_eq!(reduced.specs.len(), 1);
        assert_eq!(reduced.specs[0].feeds.to_string(), "WMO");
        assert!(access.asking(&names("b")).reduce(&class).is_empty());
    }

    #[test]
    fn lines_for_pushes_add_up() {
        let accept = |feeds: &str, ids: &str| Accept {
            feeds: feeds.parse().unwrap(),
            pattern: pattern(ids),
            host: pattern(".*"),
        };
        let access =
            Access { allow: Vec::new(), accept: vec![accept("EXP", "^rtstats"), accept("EXP", "^test")] };
        let rights = access.pushing(&names("a"));
        assert!(rights.permit(&product("EXP", "rtstats-6")) && rights.permit(&product("EXP", "test")));
        assert!(!rights.permit(&product("EXP", "other")) && !rights.permit(&product("IDS", "test")));
    }

    #[test]
    fn a_product_of_several_types_passes_no_line_that_its_identifier_does_not() {
        let right = |feeds: &str, ids: &str| Right {
            feeds: feeds.parse().unwrap(),
            ok: Some(pattern(ids)),
            not: None,
        };
        let rights = Rights(vec![right("NGRID", "^mine"), right("HDS", "^other")]);
        assert!(rights.admit(&product("NGRID", "mine")) && rights.admit(&product("NGRID|IDS", "mine")));
        for (feed, ident) in [("NGRID|HDS", "mine"), ("ANY", "mine"), ("IDS", "mine"), ("NGRID", "other")] {
            assert!(!rights.admit(&product(feed, ident)), "{feed} {ident}");
        }
    }
}
