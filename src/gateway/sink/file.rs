//! A file of lines that begins anew when it is full: `path`, then `path.1`, `path.2` …, the oldest last.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::os::files;

#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    rotate_bytes: u64,
    keep: usize,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Which file it is: a log shipper's own rotation may put another one in its place.
    identity: (u64, u64),
    /// Up to the end of the last whole line.
    bytes: u64,
}

impl LineFile {
    pub(super) fn new(path: PathBuf, rotate_bytes: u64, keep: usize) -> Self {
        Self { path, rotate_bytes, keep, open: None }
    }

    /// Appends whole lines, and takes away from `lines` what is in the file. After an error the rest is still there,
    /// and half a line is not in the file, or is cut off before the next one.
    pub(super) fn write(&mut self, lines: &mut String) -> io::Result<()> {
        while !lines.is_empty() {
            let room = self.rotate_bytes.saturating_sub(self.opened()?.bytes);
            let part = first_lines(lines, room);
            // A line that is larger than a whole file has one for itself.
            if part.len() as u64 > room && self.opened()?.bytes > 0 {
                self.rotate()?;
                continue;
            }
            let open = self.opened()?;
            if let Err(error) = open.file.write_all(part.as_bytes()) {
                if open.file.set_len(open.bytes).is_err() {
                    self.open = None;
                }
                return Err(error);
            }
            open.bytes += part.len() as u64;
            let written = part.len();
            lines.drain(..written);
        }
        Ok(())
    }

    /// Makes what was written durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.open.as_ref().map_or(Ok(()), |open| open.file.sync_data())
    }

    /// The file that is at the path now.
    fn opened(&mut self) -> io::Result<&mut Open> {
        let at_path = std::fs::metadata(&self.path).ok().map(|file| (file.dev(), file.ino()));
        let open = match self.open.take() {
            Some(open) if at_path == Some(open.identity) => open,
            _ => Open::at(&self.path)?,
        };
        Ok(self.open.insert(open))
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        self.open = None;
        for n in (1..=self.keep).rev() {
            let from = if n == 1 { self.path.clone() } else { numbered(&self.path, n - 1) };
            match files::rename(&from, &numbered(&self.path, n)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o640).open(path)?;
        let metadata = file.metadata()?;
        let bytes = whole_lines(&mut file, metadata.len())?;
        // Half a line is what a crash left; it is written again.
        if bytes < metadata.len() {
            file.set_len(bytes)?;
        }
        Ok(Self { file, identity: (metadata.dev(), metadata.ino()), bytes })
    }
}

/// Where the last whole line ends.
fn whole_lines(file: &mut File, bytes: u64) -> io::Result<u64> {
    const WINDOW_BYTES: u64 = 64 * 1024;
    let mut end = bytes;
    while end > 0 {
        let begin = end.saturating_sub(WINDOW_BYTES);
        file.seek(SeekFrom::Start(begin))?;
        let mut window = Vec::new();
        (&mut *file).take(end - begin).read_to_end(&mut window)?;
        if let Some(at) = window.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// As many of the first lines as there is room for; at least one, for a line is never cut.
fn first_lines(lines: &str, room: u64) -> &str {
    let mut end = 0;
    for line in lines.split_inclusive('\n') {
        if end > 0 && (end + line.len()) as u64 > room {
            break;
        }
        end += line.len();
    }
    lines.get(..end).unwrap_or(lines)
}

/// `path.n`.
pub(super) fn numbered(path: &Path, n: usize) -> PathBuf {
    with_suffix(path, &format!(".{n}"))
}

/// A path with something behind its last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}
