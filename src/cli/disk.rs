//! What to do about a disk that a workspace cannot be written to.

use std::io;
use std::path::Path;

use crate::limits;
use crate::os::files;

/// The remedy, if it is the disk that is in the way; nothing if it can be written to.
pub(super) fn remedy(root: &Path) -> Option<String> {
    let memory = root.join("memory");
    let place = if memory.is_dir() { memory.as_path() } else { root };
    let free = files::free_bytes(place).unwrap_or(u64::MAX);
    let tried = files::probe(&place.join(".probe.start"), limits::PROBE_BYTES);
    in_words(&place.display().to_string(), free, tried.err().map(|error| error.kind()))
}

fn in_words(place: &str, free_bytes: u64, tried: Option<io::ErrorKind>) -> Option<String> {
    match tried {
        Some(io::ErrorKind::ReadOnlyFilesystem) => Some(format!(
            "{place} is on a file system that is mounted read-only: mount it for writing (findmnt -T {place} names it), \
             or give another --workspace"
        )),
        Some(io::ErrorKind::PermissionDenied) => Some(format!(
            "this user may not write to {place}: start as the user it belongs to, or give it to this one with chown"
        )),
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Some(full(place, free_bytes)),
        _ if free_bytes < limits::START_ROOM_BYTES_MIN => Some(full(place, free_bytes)),
        _ => None,
    }
}

fn full(place: &str, free_bytes: u64) -> String {
    format!(
        "the disk of {place} is full ({} KiB are free): make room (df -h {place} names the disk), then start again; what was \
         decided is kept. Old bodies are dropped with: handoffd ledger purge --older-than 90d",
        free_bytes / 1024
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_in_the_way_is_named_with_what_to_do() {
        let plenty = limits::START_ROOM_BYTES_MIN;
        for (free, tried, expected) in [
            (plenty, None, None),
            (plenty, Some(io::ErrorKind::Other), None),
            (plenty - 1, None, Some("the disk of memory is full (4095 KiB are free): make room")),
            (
                0,
                Some(io::ErrorKind::StorageFull),
                Some("the disk of memory is full (0 KiB are free): make room"),
            ),
            (
                plenty,
                Some(io::ErrorKind::QuotaExceeded),
                Some("the disk of memory is full (4096 KiB are free)"),
            ),
            (
                plenty,
                Some(io::ErrorKind::ReadOnlyFilesystem),
                Some("memory is on a file system that is mounted read-only"),
            ),
            (
                plenty,
                Some(io::ErrorKind::PermissionDenied),
                Some("this user may not write to memory: start as"),
            ),
        ] {
            let told = in_words("memory", free, tried);
            assert_eq!(told.is_some(), expected.is_some(), "{tried:?}");
            assert!(
                expected.is_none_or(|begin| told.is_some_and(|told| told.starts_with(begin))),
                "{tried:?}"
            );
        }
    }

    #[test]
    fn a_disk_that_can_be_written_to_is_not_in_the_way_and_nothing_is_left_on_it() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(remedy(directory.path()), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
