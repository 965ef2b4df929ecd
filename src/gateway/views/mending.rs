//! Views that could not be written, brought back while the gateway runs.
//!
//! Nothing is known of a connection whose write failed, or of its file: it is opened again, looked at as at a start, and
//! brought up from the ledger; made again, if need be. Whoever has the file open opens it again then. That is tried until it
//! works or the gateway stops, with pauses that grow: room comes back when somebody makes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::super::GatewayFault;
use super::{Own, ViewsProgress, catch_up, unusable};
use crate::ledger::{Entry, Source};
use crate::limits;
use crate::views::{Views, delete};

/// What it takes.
pub(super) struct Mending {
    pub(super) path: PathBuf,
    pub(super) ledger: Source,
    pub(super) topic_id: String,
    pub(super) progress: Arc<ViewsProgress>,
}

impl Mending {
    /// Views that follow again; nothing if the gateway stops before. With `anew`, what is there is of no use: a file that
    /// has lost its journal holds rows that do not fit together, and nothing in it says so.
    pub(super) fn mend(
        &self,
        broken: Views,
        mut why: String,
        mut anew: bool,
        work: &Receiver<Vec<Entry>>,
    ) -> Option<Views> {
        drop(broken);
        let mut pause_ms = limits::VIEW_PAUSE_MS;
        loop {
            self.progress.fails(why);
            // The ledger has them.
            while work.try_recv().is_ok() {}
            match self.begin_anew(&mut anew).and_then(|()| self.bring_up()) {
                Ok(views) => return Some(views),
                Err(fault) => {
                    // Opened as if it were whole, and of no use when it is written to.
                    anew |= matches!(fault, GatewayFault::DamagedViews { .. });
                    why = fault.to_string();
                }
            }
            if !self.progress.rest(Duration::from_millis(pause_ms)) {
                return None;
            }
            pause_ms = (pause_ms * 2).min(limits::VIEW_PAUSE_MS_MAX);
        }
    }

    fn begin_anew(&self, anew: &mut bool) -> Result<(), GatewayFault> {
        if std::mem::take(anew)
            && let Err(fault) = delete(&self.path)
        {
            *anew = true;
            return Err(GatewayFault::Io { path: self.path.clone(), why: fault.to_string() });
        }
        Ok(())
    }

    /// Opens the views and applies what the ledger has; what becomes durable from then on is handed over again.
    fn bring_up(&self) -> Result<Views, GatewayFault> {
        let mut through = self.progress.lock().handed;
        loop {
            let mut go_on = |_, _| !self.progress.is_closing();
            // Made again only where nothing of them is of use: as long as others read the old file, it takes room as well.
            let is_near = |applied, _| applied > 0;
            let mut views = catch_up(&self.path, &self.ledger, &self.topic_id, through, is_near, &mut go_on)?;
            match self.progress.follows_again(through, Own::at(&self.path)) {
                Ok(handed) => {
                    let rest = self.ledger.entries(through + 1, handed).map_err(GatewayFault::Unread)?;
                    let rest = rest.collect::<Result<Vec<_>, _>>().map_err(GatewayFault::Unread)?;
                    views.apply(rest).map_err(|fault| unusable(&self.path, fault))?;
                    return Ok(views);
                }
                Err(handed) => through = handed,
            }
        }
    }
}
