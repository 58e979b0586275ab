//! Rights of LDMs to request and push: those of sites that keep their LDM, in LDM's terms.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_hub::{SiteLine, SubscriptionLine};
use downburst_ldm6::{Accept, Access, Allow};
use downburst_model::{FeedName, IdFilter, Pattern, SiteName};

use crate::config::LdmAcceptLine;
use crate::routes::Routes;

/// The rules at one time.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) access: Arc<Access>,
    lines: Vec<Line>,
}

/// One rule: its hosts, and its text for comparison.
struct Line {
    host: Pattern,
    site: Option<SiteName>,
    feed: Option<FeedName>,
    /// Older products of the feed are not sent to the site.
    max_age_us: Option<i64>,
    text: String,
}

impl Rules {
    /// The rules of these sites and feeds, and of the hosts that may push.
    pub(super) fn of(routes: &Routes, sites: Vec<SiteLine>, accept: &[LdmAcceptLine]) -> Self {
        let mut sites: Vec<SiteLine> =
            sites.into_iter().filter(|site| site.active && site.kept_ldm.ldm_host.is_some()).collect();
        sites.sort_by(|one, other| {
            (one.kept_ldm.ldm_order, &one.site).cmp(&(other.kept_ldm.ldm_order, &other.site))
        });
        let (mut access, mut lines) = (Access::default(), Vec::new());
        for (number, site) in (0..).zip(&sites) {
            allow(routes, number, site, &mut access, &mut lines);
        }
        for line in accept {
            match accepted(line) {
                Ok(accept) => {
                    let text = format!("ACCEPT {} {}", line.feeds, line.pattern);
                    let host = accept.host.clone();
                    lines.push(Line { host, site: None, feed: None, max_age_us: None, text });
                    access.accept.push(accept);
                }
                Err(sentence) => tracing::warn!("{sentence}; this line accepts nothing"),
            }
        }
        Self { access: Arc::new(access), lines }
    }

    /// The site under which a host is counted: the first one with a rule for it.
    pub(super) fn site(&self, names: &[String]) -> Option<SiteName> {
        self.meant(names).find_map(|line| line.site.clone())
    }

    /// The feeds that a host may request, with the maximum age of products; if several lines apply, the longest age
    /// counts.
    pub(super) fn feeds(&self, names: &[String]) -> BTreeMap<FeedName, Option<i64>> {
        let mut feeds: BTreeMap<FeedName, Option<i64>> = BTreeMap::new();
        for line in self.meant(names) {
            let Some(feed) = &line.feed else { continue };
            let longest = |known: &mut Option<i64>| {
                *known = known.zip(line.max_age_us).map(|(one, other)| one.max(other))
            };
            feeds.entry(feed.clone()).and_modify(longest).or_insert(line.max_age_us);
        }
        feeds
    }

    /// The texts of all rules for a host: if they are unchanged, its rights are.
    pub(super) fn said(&self, names: &[String]) -> Vec<String> {
        self.meant(names).map(|line| line.text.clone()).collect()
    }

    fn meant(&self, names: &[String]) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| names.iter().any(|name| line.host.matches(name)))
    }
}

/// Adds the rights of a site's LDM: its subscriptions.
fn allow(routes: &Routes, number: u32, site: &SiteLine, access: &mut Access, lines: &mut Vec<Line>) {
    let Some(host) = site.kept_ldm.ldm_host.as_deref().and_then(|host| usable(&site.site, host)) else {
        return;
    };
    let handled = downburst_hub::handling(site);
    for wanted in &site.subscriptions {
        let feeds = routes.types(&wanted.feed);
        if feeds.is_none() || !site.may_take(&wanted.feed) {
            continue;
        }
        let max_age_us = handled.iter().find(|it| it.feed == wanted.feed).and_then(|it| it.max_age_us);
        for IdFilter { pattern, not_pattern } in granted(&site.site, wanted) {
            let Some(ok) = usable(&site.site, &pattern) else { continue };
            let not = not_pattern.as_deref().map(|not| usable(&site.site, not));
            if matches!(not, Some(None)) {
                continue;
            }
            let text = format!("ALLOW {number} {feeds} {pattern} {not_pattern:?} {max_age_us:?}");
            let (known_as, feed) = (Some(site.site.clone()), Some(wanted.feed.clone()));
            lines.push(Line { host: host.clone(), site: known_as, feed, max_age_us, text });
            let ok = Some(ok).filter(|_| pattern != ALL);
            access.allow.push(Allow { site: number, feeds, host: host.clone(), ok, not: not.flatten() });
        }
    }
}

/// The part of a request within the site's rights. An LDM's rights have one pattern to include and one to exclude.
/// If request and limit have different patterns to include, no single one expresses both, and the pair gives nothing.
fn granted(site: &SiteName, wanted: &SubscriptionLine) -> Vec<IdFilter> {
    let wish = IdFilter { pattern: wanted.pattern.clone(), not_pattern: wanted.not_pattern.clone() };
    let Some(limits) = &wanted.within else { return vec![wish] };
    let both = limits.iter().filter_map(|limit| {
        let pattern = match (wish.pattern.as_str(), limit.pattern.as_str()) {
            (ALL, only) | (only, ALL) => only.to_owned(),
            (one, other) if one == other => one.to_owned(),
            (one, other) => {
                let step = "subscribe it to .* or to the limit's pattern";
                tracing::warn!(%site, "LDM can't express products that match both {one} and {other}; {step}");
                return None;
            }
        };
        let not_pattern = match (&wish.not_pattern, &limit.not_pattern) {
            (Some(one), Some(other)) => Some(format!("({one})|({other})")),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        Some(IdFilter { pattern, not_pattern })
    });
    both.collect()
}

/// Every identifier.
const ALL: &str = ".*";

fn usable(site: &SiteName, pattern: &str) -> Option<Pattern> {
    Pattern::parse(pattern)
        .inspect_err(
            |error| tracing::warn!(%site, pattern, "{error}; the LDM of the site gets nothing by it"),
        )
        .ok()
}

fn accepted(line: &LdmAcceptLine) -> Result<Accept, String> {
    Ok(Accept {
        feeds: line.feeds.parse().map_err(|error| format!("{error}"))?,
        pattern: Pattern::parse(&line.pattern).map_err(|error| error.to_string())?,
        host: Pattern::parse(&line.host).map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Hub as _;
    use crate::tests::rig::TestHub;

    fn filter(pattern: &str, not_pattern: Option<&str>) -> IdFilter {
        IdFilter { pattern: pattern.to_owned(), not_pattern: not_pattern.map(str::to_owned) }
    }

    /// A hub with the feeds IDS and GRIDS, and their routes.
    fn hub() -> (Arc<TestHub>, Routes) {
        let hub = TestHub::new("hub.example", &[("IDS", "IDS", None), ("GRIDS", "NGRID", None)]);
        let routes = Routes::of(hub.feeds());
        (hub, routes)
    }

    fn names(host: &str) -> Vec<String> {
        vec![host.to_owned(), "192.0.2.7".to_owned()]
    }

    #[test]
    fn a_host_has_the_subscriptions_of_the_sites_that_know_it() {
        let (hub, routes) = hub();
        hub.subscribe("ucla", "IDS", ".*");
        hub.subscribe("ucsd", "GRIDS", "^Y");
        hub.sites.lock().unwrap()[1].kept_ldm.ldm_host = Some(r"\.ucsd\.example$".to_owned());
        let rules = Rules::of(&routes, hub.sites(), &[]);
        let feeds = |host: &str| rules.feeds(&names(host)).into_keys().collect::<Vec<_>>();
        assert_eq!(feeds("ldm.ucsd.example"), ["GRIDS", "IDS"].map(|name| FeedName::parse(name).unwrap()));
        assert_eq!(feeds("ldm.example"), [FeedName::parse("IDS").unwrap()]);
        assert_eq!(
            rules.site(&names("ldm.ucsd.example")).unwrap().as_str(),
            "ucla",
            "the first that knows it"
        );
        assert_ne!(rules.said(&names("ldm.ucsd.example")), rules.said(&names("ldm.example")));
    }

    #[test]
    fn sites_that_are_off_or_have_no_ldm_give_no_rights() {
        let (hub, routes) = hub();
        hub.subscribe("ucla", "IDS", ".*");
        hub.subscribe("ucsd", "IDS", ".*");
        hub.subscribe("mit", "HDS", ".*");
        hub.sites.lock().unwrap()[0].active = false;
        hub.sites.lock().unwrap()[1].kept_ldm.ldm_host = None;
        let rules = Rules::of(&routes, hub.sites(), &[]);
        assert!(rules.access.allow.is_empty() && rules.said(&names("ldm.example")).is_empty());
    }

    #[test]
    fn of_several_ages_the_longest_counts_and_none_is_the_longest() {
        let (hub, routes) = hub();
        for (site, age) in [("a", Some(5)), ("b", Some(9))] {
            hub.subscribe(site, "IDS", ".*");
            let mut sites = hub.sites.lock().unwrap();
            sites.last_mut().unwrap().subscriptions[0].max_age_us = age;
        }
        let age =
            || Rules::of(&routes, hub.sites(), &[]).feeds(&names("x"))[&FeedName::parse("IDS").unwrap()];
        assert_eq!(age(), Some(9));
        hub.subscribe("c", "IDS", ".*");
        assert_eq!(age(), None);
    }

    #[test]
    fn a_request_within_limits_has_one_pattern_or_none() {
        let site = SiteName::parse("ucla").unwrap();
        let (hub, _) = hub();
        hub.subscribe("ucla", "IDS", "^W");
        let mut wanted = hub.sites()[0].subscriptions[0].clone();
        assert_eq!(granted(&site, &wanted), [filter("^W", None)], "no limit");
        wanted.within = Some(vec![filter(".*", Some("^X")), filter("^W", None), filter("^S", None)]);
        assert_eq!(granted(&site, &wanted), [filter("^W", Some("^X")), filter("^W", None)]);
        wanted.not_pattern = Some("^WZ".to_owned());
        wanted.within = Some(vec![filter(".*", Some("^X"))]);
        assert_eq!(granted(&site, &wanted), [filter("^W", Some("(^WZ)|(^X)"))]);
    }

    #[test]
    fn lines_of_accept_are_compared_and_faulty_ones_accept_nothing() {
        let (_, routes) = hub();
        let line = |pattern: &str| LdmAcceptLine {
            feeds: "EXP".to_owned(),
            pattern: pattern.to_owned(),
            host: "^ldm".to_owned(),
        };
        let rules = Rules::of(&routes, Vec::new(), &[line("^rtstats"), line("(")]);
        assert_eq!(rules.access.accept.len(), 1);
        assert_eq!(rules.said(&names("ldm.example")), ["ACCEPT EXP ^rtstats"]);
        assert!(rules.said(&names("www.example")).is_empty());
        assert_eq!(rules.site(&names("ldm.example")), None);
    }
}
