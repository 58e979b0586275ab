//! The mapping between the hub's feeds and LDM's feed types.
use std::sync::Arc;

use downburst_ldm6::{FeedType, ProductInfo};
use downburst_log::ProductLog as _;
use downburst_model::{FeedName, Pattern};

use super::hub::Feed;

/// The feeds that have feed types of LDM, by name.
#[derive(Default)]
pub(super) struct Routes(Vec<Route>);

/// A feed with its feed types.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) types: FeedType,
    pattern: Option<Pattern>,
    pub(super) feed: Arc<dyn Feed>,
}

impl Routes {
    /// The routes of these feeds.
    pub(super) fn of(feeds: Vec<Arc<dyn Feed>>) -> Self {
        let route = |feed: Arc<dyn Feed>| {
            let (types, pattern) = routed(&*feed)?;
            Some(Route { types, pattern, feed })
        };
        Self(feeds.into_iter().filter_map(route).collect())
    }

    /// The feed that a product belongs to: the first of its type whose pattern it matches.
    pub(super) fn of_product(&self, info: &ProductInfo) -> Option<&Arc<dyn Feed>> {
        let ident = info.ident.text();
        let matches = |route: &&Route| {
            route.types.meets(info.feed)
                && route.pattern.as_ref().is_none_or(|pattern| pattern.matches(&ident))
        };
        self.0.iter().find(matches).map(|route| &route.feed)
    }

    /// The feeds that hold products of these types.
    pub(super) fn holding(&self, types: FeedType) -> impl Iterator<Item = &Route> {
        self.0.iter().filter(move |route| route.types.meets(types))
    }

    /// LDM's types of a feed.
    pub(super) fn types(&self, feed: &FeedName) -> FeedType {
        let found = self.0.iter().find(|route| route.feed.log().feed() == feed);
        found.map_or(FeedType::NONE, |route| route.types)
    }
}

/// The types and pattern of a feed. The agent checks both; a feed with invalid ones here has no route.
fn routed(feed: &dyn Feed) -> Option<(FeedType, Option<Pattern>)> {
    let (types, pattern) = feed.types()?;
    let name = feed.log().feed();
    let types: FeedType = match types.parse() {
        Ok(types) => types,
        Err(error) => {
            tracing::warn!(feed = %name, "{error}; LDM peers neither bring nor get its products");
            return None;
        }
    };
    match pattern.as_deref().filter(|pattern| *pattern != ".*").map(Pattern::parse).transpose() {
        Ok(pattern) => Some((types, pattern)),
        Err(error) => {
            tracing::warn!(feed = %name, "{error}; LDM peers neither bring nor get its products");
            None
        }
    }
}
