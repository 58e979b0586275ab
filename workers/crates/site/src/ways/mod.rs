//! The ways of one connection to a hub: by chains of relays, or directly (decision 55).
//!
//! The administrator of the site may give the chains; otherwise the hub does. A connection made by a worse way moves to
//! the best one: that is tried first, and only then does the session end, to be resumed by it. A way that can't be
//! opened where another can, or by which no session lasts, rests. At the administrator's chains a session that works is
//! not broken for a better way.
mod rests;
#[cfg(test)]
mod tests;

use downburst_model::Micros;
use downburst_session::{MOST_CHAINS, RelayChain, relay_chain};

use rests::Rests;

/// The ways of one connection.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    given: Given,
    /// The hub's last set.
    told: Vec<RelayChain>,
    /// True once the hub has told its set, or the lack of one, in this session.
    heard: bool,
    rests: Rests,
    taken: Option<Taken>,
    /// The way that is tried for a move.
    trial: Option<RelayChain>,
}

/// The source of the chains.
#[derive(Clone, Debug, Default)]
enum Given {
    #[default]
    ByHub,
    ByAdministrator {
        chains: Vec<RelayChain>,
        /// True if the site may not connect directly.
        relays_only: bool,
    },
}

/// The way of the present connection.
#[derive(Clone, Debug)]
struct Taken {
    way: RelayChain,
    since: Micros,
    /// True if its end says nothing of the way.
    leaves: bool,
}

impl Ways {
    /// Ways that the administrator chose; the direct one comes after them unless `relays_only`. Without chains, the hub
    /// chooses.
    pub fn chosen(chains: Vec<RelayChain>, relays_only: bool) -> Self {
        let by_hub = chains.is_empty();
        let given = if by_hub { Given::ByHub } else { Given::ByAdministrator { chains, relays_only } };
        Self { given, ..Self::default() }
    }

    /// The ways in the order in which to try them. Those that rest come last: nothing else leads there.
    pub fn order(&self, now: Micros) -> Vec<RelayChain> {
        let (chains, relays_only) = match &self.given {
            Given::ByHub => (&self.told, false),
            Given::ByAdministrator { chains, relays_only } => (chains, *relays_only),
        };
        let (mut resting, mut ways): (Vec<_>, Vec<_>) =
            chains.iter().cloned().partition(|way| self.rests.until(now, way).is_some());
        resting.sort_by_key(|way| self.rests.until(now, way));
        ways.extend((!relays_only).then(RelayChain::new));
        ways.extend(resting);
        ways
    }

    /// A connection stands by `way`; those before it in `tried` led nowhere.
    pub fn connected(&mut self, now: Micros, tried: &[RelayChain], way: &RelayChain) {
        tried.iter().take_while(|it| *it != way).for_each(|it| self.rests.begin(now, it));
        self.taken = Some(Taken { way: way.clone(), since: now, leaves: false });
        self.heard = false;
    }

    /// The connection is about to end for another reason than its way.
    pub fn leaves(&mut self) {
        if let Some(taken) = &mut self.taken {
            taken.leaves = true;
        }
    }

    /// The connection ended.
    pub fn ended(&mut self, now: Micros) {
        self.trial = None;
        let Some(Taken { way, since, leaves }) = self.taken.take() else { return };
        match now.since(since) < SHORT {
            true if !leaves && !way.is_empty() => self.rests.begin(now, &way),
            true => {}
            false => self.rests.end(&way),
        }
    }

    /// Takes the hub's set; returns a sentence for the log if it is another than before.
    pub fn told(&mut self, chains: &[String]) -> Option<String> {
        self.heard = true;
        let mut told = Vec::new();
        // The session has checked them.
        for chain in chains.iter().take(MOST_CHAINS).filter_map(|given| relay_chain(given).ok()) {
            if !told.contains(&chain) {
                told.push(chain);
            }
        }
        if told == self.told {
            return None;
        }
        self.told = told;
        let wish = self.told.first().map_or("directly".to_owned(), way_in_words);
        Some(match self.given {
            Given::ByHub => format!("the hub wants this site to connect {wish}"),
            Given::ByAdministrator { .. } => format!(
                "the hub wants this site to connect {wish}; the choice of its administrator (--via) stands"
            ),
        })
    }

    /// The subscriptions arrived: a hub that has told no ways by now has none.
    pub fn subscribed(&mut self) -> Option<String> {
        if self.heard { None } else { self.told(&[]) }
    }

    /// The way to try for a move, if one is due: to be opened while the session goes on.
    pub fn try_better(&mut self, now: Micros) -> Option<RelayChain> {
        let better = self.better(now)?;
        if self.trial.is_some() || self.rests.until(now, &better).is_some() {
            return None;
        }
        self.trial.clone_from(&Some(better.clone()));
        Some(better)
    }

    /// The tried way is open. True if the connection is to move to it: the hub may have changed its mind.
    pub fn opened(&mut self, now: Micros) -> bool {
        let tried = self.trial.take();
        let moves = tried.is_some() && tried == self.better(now);
        if moves {
            self.leaves();
        }
        moves
    }

    /// The tried way can't be opened.
    pub fn not_opened(&mut self, now: Micros) {
        if let Some(way) = self.trial.take() {
            self.rests.begin(now, &way);
        }
    }

    /// The time of the next trial after a rest.
    pub fn deadline(&self, now: Micros) -> Option<Micros> {
        self.taken.as_ref().filter(|_| self.trial.is_none() && matches!(self.given, Given::ByHub))?;
        let direct = RelayChain::new();
        self.told.iter().chain([&direct]).filter_map(|way| self.rests.until(now, way)).min()
    }

    /// The best way, if the present connection has another one and may move.
    fn better(&self, now: Micros) -> Option<RelayChain> {
        let taken = self.taken.as_ref().filter(|_| matches!(self.given, Given::ByHub))?;
        self.order(now).into_iter().next().filter(|best| *best != taken.way)
    }
}

/// A way as words.
pub fn way_in_words(way: &RelayChain) -> String {
    if way.is_empty() { "directly".to_owned() } else { format!("by the relay {}", way.join(", ")) }
}

/// A session that a relay spoils ends at its first products; one that is silent is given up after 9 s.
const SHORT: Micros = Micros::from_secs(60);
