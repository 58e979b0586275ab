//! The options of a site that are about its actions and its old files.
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use downburst_actions::{bytes, duration};
use downburst_ldm6::FeedType;
use downburst_model::FeedName;

use super::actions::Wanted;
use super::dead_letters::Keep;
use super::scour::Wanted as ScourWanted;
use super::task::Defaults;
use super::tools::feed_type;

/// Rules and limits, as the command line has them.
#[derive(Args, Debug)]
pub struct SiteArguments {
    /// Run the actions of these rules on products: LDM's pqact.conf, or YAML. May be given several times;
    /// SIGHUP has them read again.
    #[arg(long, value_name = "FILE")]
    actions: Vec<PathBuf>,
    /// Directory of relative paths in rules and of their programs; absent: data below --dir.
    #[arg(long, value_name = "DIR")]
    actions_dir: Option<PathBuf>,
    /// LDM's feed type of a feed whose name does not imply it, for pqact.conf. May be given several times.
    #[arg(long, value_name = "FEED=TYPE", value_parser = feed_type)]
    feed_type: Vec<(FeedName, FeedType)>,
    /// Failures after which a product goes to failed/ below --dir, unless a rule sets its own number.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    action_attempts: u32,
    /// Time after which a program of a rule is ended, unless the rule sets its own.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    action_time_limit: Duration,
    /// Report a rule to the hub when it is this far behind this site's log.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    action_lag: Duration,
    /// Time that failed products stay in failed/ below --dir.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    failed_age: Duration,
    /// The maximum size of failed/: 500MB, 20GB. The oldest products go first.
    #[arg(long, value_name = "BYTES", default_value = "1GB", value_parser = bytes)]
    failed_bytes: u64,
    /// Remove old files by these rules: LDM's scour.conf, or YAML. May be given several times; SIGHUP has
    /// them read again.
    #[arg(long, value_name = "FILE")]
    scour: Vec<PathBuf>,
    /// The interval between searches for old files.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    scour_every: Duration,
}

impl SiteArguments {
    /// What a site is started with.
    pub fn wanted(self) -> (Wanted, ScourWanted) {
        let actions = Wanted {
            files: self.actions,
            directory: self.actions_dir.clone(),
            feed_types: self.feed_type.into_iter().collect(),
            defaults: Defaults { time_limit: self.action_time_limit, attempts: self.action_attempts },
            lag: self.action_lag,
            keep_failed: Keep { age: self.failed_age, bytes: self.failed_bytes, letters: Keep::LETTERS },
        };
        let every = self.scour_every.max(Duration::from_secs(1));
        (actions, ScourWanted { files: self.scour, directory: self.actions_dir, every })
    }
}
