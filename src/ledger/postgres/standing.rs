//! How a server and a ledger in it stand: asked whenever nothing is appended, and when an append was refused.

use super::link::{self, Link};
use super::log::not_durable;
use super::{PostgresFault, closing, losses, reading};
use crate::ledger::AppendFault;
use crate::ledger::chain::Head;
use crate::ledger::closing::{Closing, parse};
use crate::timestamp::Timestamp;

const STANDING: &str = "select pg_is_in_recovery(), current_setting('fsync'), closed, epoch_since, \
     current_setting('synchronous_standby_names') <> '' from handoffd_ledger";

#[derive(Debug)]
pub(super) struct Standing {
    /// Why the server is not to be used.
    fault: Option<&'static str>,
    closed: Option<String>,
    epoch_since: Option<String>,
    /// A commit waits for a standby.
    pub(super) has_standby: bool,
}

impl Standing {
    pub(super) async fn ask(link: &mut Link) -> Result<Self, PostgresFault> {
        let row = link.the_row(STANDING).await?;
        let fault = if row.get(0)? {
            Some("the database has become a standby")
        } else if row.get::<&str>(1)? == "off" {
            Some(link::FSYNC_OFF)
        } else {
            None
        };
        Ok(Self { fault, closed: row.get(2)?, epoch_since: row.get(3)?, has_standby: row.get(4)? })
    }

    /// Nothing that it says is to be believed.
    pub(super) fn server(&self) -> Result<(), AppendFault> {
        self.fault.map_or(Ok(()), |why| Err(not_durable(why)))
    }

    /// Only who knows the mark may append to a ledger that is closed.
    pub(super) fn closed(&self, mark: Option<&str>) -> Result<(), AppendFault> {
        if self.closed.as_deref() == mark {
            return Ok(());
        }
        let no_longer = || "it is no longer closed as it was".to_owned();
        Err(AppendFault::Closed(self.closed.as_deref().map_or_else(no_longer, closing::sentence)))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Has somebody said that what is left counts?
    pub(super) fn is_settled(&self) -> bool {
        let closing = self.closed.as_deref().and_then(parse);
        matches!(closing, Some(Closing::Settled { .. }))
    }

    /// Was an entry of that time given up, if it is not there?
    pub(super) fn gave_up(&self, time: Option<Timestamp>) -> bool {
        losses::is_given_up(self.epoch_since.as_deref(), time)
    }
}

/// Why an append was refused.
pub(super) async fn why_refused(
    link: &mut Link,
    topic_id: &str,
    after: Head,
    mark: Option<&str>,
) -> Result<AppendFault, PostgresFault> {
    let standing = Standing::ask(link).await?;
    if let Err(fault) = standing.server() {
        return Ok(fault);
    }
    // First what is gone: somebody may have closed the ledger for that very reason.
    let there = reading::has(link, topic_id, after).await?;
    let (head, _) = reading::head(link, topic_id).await?;
    Ok(if !there {
        AppendFault::HeadGone { after, found: head }
    } else if let Err(fault) = standing.closed(mark) {
        fault
    } else if head == after {
        not_durable("the ledger was opened or closed just now")
    } else {
        AppendFault::Conflict { head }
    })
}
