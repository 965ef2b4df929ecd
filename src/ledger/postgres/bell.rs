//! Hears that others may have appended.

use std::time::Duration;

use super::link::Link;
use super::tail::listening;
use super::{Database, serving};
use crate::ledger::Bell;
use crate::limits;

/// Listens for notifications. They are hints, and while there are none it rings every so often all the same.
pub(super) struct PostgresBell {
    database: Database,
    link: Option<Link>,
    /// The entry that was told of last.
    told: u64,
}

impl PostgresBell {
    pub(super) fn new(database: &Database) -> Self {
        Self { database: database.clone(), link: None, told: 0 }
    }
}

impl Bell for PostgresBell {
    fn wait(&mut self) -> Option<u64> {
        const POLL: Duration = Duration::from_millis(limits::PG_POLL_MS);
        let (database, kept) = (self.database.clone(), self.link.take());
        let heard = database.wait(async {
            let link = match kept.filter(|link| !link.is_closed()) {
                Some(link) => link,
                None => {
                    let mut link = listening(&database).await?;
                    serving::say_so(&mut link).await?;
                    link
                }
            };
            // Whether it was the bell or the time, the number tells.
            let _ = tokio::time::timeout(POLL, link.bell()).await;
            Ok(link)
        });
        let Ok(link) = heard else {
            // Nothing can be heard: ring, so that somebody notices.
            std::thread::sleep(POLL);
            return None;
        };
        let told = link.told();
        self.link = Some(link);
        let hint = (told > self.told && told != u64::MAX).then_some(told);
        self.told = self.told.max(hint.unwrap_or(0));
        hint
    }
}
