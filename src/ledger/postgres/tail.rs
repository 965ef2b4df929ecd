//! Following a ledger that others append to.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::link::Link;
use super::transaction::channel;
use super::{Database, PostgresFault, reading};
use crate::ledger::chain::Head;
use crate::ledger::entries::Entry;
use crate::limits;

/// A reader that stands at the end of a ledger and waits for more.
///
/// A notification is a hint to look, never what is told: whatever was missed while nobody listened is read at the next
/// look, and there is one at least every 250 ms.
#[derive(Debug)]
pub struct PostgresTail {
    database: Database,
    link: Option<Link>,
    /// The last entry that was handed out. Every look sees whether it is still there.
    last: Head,
}

impl PostgresTail {
    /// Stands behind `after`, an entry that is known to be in the ledger.
    pub fn new(database: &Database, after: Head) -> Self {
        Self { database: database.clone(), link: None, last: after }
    }

    /// The last entry that was handed out.
    pub fn head(&self) -> Head {
        self.last
    }

    /// Waits for entries and hands them out in order; none if there were none in that time.
    ///
    /// After a fault it can be asked again, and goes on where it was; a ledger that has lost its end has lost it, and the
    /// same fault comes again.
    pub fn wait(&mut self, at_most: Duration) -> Result<Vec<Entry>, PostgresFault> {
        let (database, last) = (self.database.clone(), self.last);
        let kept = self.link.take();
        let (link, entries) = database.wait(async {
            let until = Instant::now() + at_most;
            let kept = kept.filter(|link| !link.is_closed());
            let mut is_new = kept.is_none();
            let mut link = match kept {
                Some(link) => link,
                None => listening(&database).await?,
            };
            loop {
                let entries = match look(&mut link, database.topic_id(), last).await {
                    // It broke while nobody looked.
                    Err(PostgresFault::Unreachable(_)) if !is_new => {
                        link = listening(&database).await?;
                        is_new = true;
                        continue;
                    }
                    entries => entries?,
                };
                if !entries.is_empty() || Instant::now() >= until {
                    return Ok((link, entries));
                }
                let poll = Instant::now() + Duration::from_millis(limits::PG_POLL_MS);
                // Whether it was the bell or the time makes no difference.
                let _ = timeout_at(poll.min(until), link.bell()).await;
                is_new = false;
            }
        })?;
        self.link = Some(link);
        if let Some(entry) = entries.last() {
            self.last = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        }
        Ok(entries)
    }
}

pub(super) async fn listening(database: &Database) -> Result<Link, PostgresFault> {
    let link = Link::make(&database.0.address).await?;
    link.batch(&format!("listen {}", channel(database.topic_id()))).await?;
    Ok(link)
}

/// The entries behind `last`, each hashed onto the one before it.
pub(super) async fn look(link: &mut Link, topic_id: &str, last: Head) -> Result<Vec<Entry>, PostgresFault> {
    let found = reading::entries(link, last.sequence, u64::MAX, limits::PG_READ_ENTRIES + 1).await?;
    let mut found = found.into_iter().map(|(entry, _)| entry).peekable();
    // One read for the entry that is known and for what follows: there is no moment in between.
    let known = found.next_if(|entry| entry.sequence == last.sequence).map(|entry| entry.running_hash);
    let is_there =
        if last.sequence == 0 { last == Head::genesis(topic_id) } else { known == Some(last.running_hash) };
    if !is_there {
        let (head, _) = reading::head(link, topic_id).await?;
        return Err(PostgresFault::Gone { remembered: last.sequence, found: head.sequence });
    }
    let (mut entries, mut before) = (Vec::new(), last);
    for entry in found {
        if entry.sequence != before.sequence + 1 || !reading::follows(before.running_hash, &entry) {
            return Err(PostgresFault::Damaged { sequence: before.sequence + 1 });
        }
        before = Head { sequence: entry.sequence, running_hash: entry.running_hash };
        entries.push(entry);
    }
    Ok(entries)
}
