//! The mark of a workspace whose ledger may not be appended to.

use std::io;

use super::{Files, GatewayFault};
use crate::ledger::{Closing, parse_closing};
use crate::os::files;

/// Why nothing may be appended to the ledger's files; nothing if it may.
pub fn closed(files_of: &Files) -> Result<Option<Closing>, GatewayFault> {
    let path = files_of.closed();
    let fault = |why: String| GatewayFault::Io { path: path.clone(), why };
    match files::read_bounded(&path, 64 * 1024) {
        Ok(bytes) => {
            let closing = std::str::from_utf8(&bytes).ok().and_then(parse_closing);
            // Whatever it says: it is there so that nothing is appended.
            closing.map(Some).ok_or_else(|| fault("says that the ledger is closed, and not why".to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// Closes the ledger's files, or opens them; durable when it returns.
pub(super) fn set_closed(files_of: &Files, closing: Option<&Closing>) -> Result<(), GatewayFault> {
    let path = files_of.closed();
    let done = match closing {
        Some(closing) => files::replace_private(&path, format!("{}\n", closing.to_text()).as_bytes()),
        None => files::remove(&path),
    };
    done.map_err(|error| GatewayFault::Io { path, why: error.to_string() })
}
