//! Closing a ledger for writing, so that a copy of it can take its place, and opening one again.

use super::link::{Committed, Link};
use super::{Database, PostgresFault};
use crate::ledger::closing::Closing;
use crate::ledger::closing::parse;

const CLOSED: &str = "select closed from handoffd_ledger";
const CLOSE: &str = "update handoffd_ledger set closed = $1";

/// What a mark says; a mark that nobody here wrote is a mark all the same.
pub(super) fn sentence(text: &str) -> String {
    parse(text).map_or_else(|| "it was closed by somebody else".to_owned(), |closing| closing.to_string())
}

impl Database {
    /// Why nothing may be appended; nothing if it may.
    pub fn closed(&self) -> Result<Option<Closing>, PostgresFault> {
        let text = self.ask(async |link| link.the_row(CLOSED).await?.get::<Option<String>>(0))?;
        match text {
            None => Ok(None),
            Some(text) => parse(&text).map(Some).ok_or_else(|| PostgresFault::Refused(sentence(&text))),
        }
    }

    /// Closes the ledger, or opens it. When it returns, every append either was before and is seen, or will find the
    /// mark.
    pub fn set_closed(&self, closing: Option<&Closing>) -> Result<(), PostgresFault> {
        let text = closing.map(Closing::to_text);
        self.wait(async {
            // A new connection: one that lay idle may have broken, and this is not done twice.
            let mut link = Link::make(&self.0.address).await?;
            mark(&mut link, text.as_deref()).await?;
            self.give_back(link);
            Ok(())
        })
    }
}

async fn mark(link: &mut Link, text: Option<&str>) -> Result<(), PostgresFault> {
    // Waits for those who are appending, and whoever comes later waits for the mark.
    link.batch("begin; lock table handoffd_entries in share mode").await?;
    link.change(CLOSE, &[&text]).await?;
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(()),
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}
