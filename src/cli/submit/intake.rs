//! Where TaskSpecs come from: files, standard input, or the lines of either; as many at a time as one request takes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::super::{Failure, body_failure, read_task_spec};
use crate::json;
use crate::limits;
use crate::policy::plain;

/// One TaskSpec, or why it cannot be read.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) body: Result<Vec<u8>, String>,
}

pub(super) struct Intake<'f> {
    files: std::slice::Iter<'f, PathBuf>,
    files_all: usize,
    lines: Option<Lines>,
    is_lines: bool,
    /// In bytes of what is read by lines, if that is known, and otherwise in files.
    bytes: u64,
    bytes_all: u64,
}

/// A file that is read line by line.
struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    number: u64,
}

impl<'f> Intake<'f> {
    pub(super) fn new(files: &'f [PathBuf], is_lines: bool) -> Self {
        let bytes_all = if is_lines { files.iter().map(|path| bytes_of(path)).sum() } else { 0 };
        Self { files: files.iter(), files_all: files.len(), lines: None, is_lines, bytes: 0, bytes_all }
    }

    /// How far it has come, of how much; of nothing if nobody knows.
    pub(super) fn progress(&self) -> (u64, u64) {
        if self.is_lines {
            (self.bytes, self.bytes_all)
        } else {
            ((self.files_all - self.files.len()) as u64, self.files_all as u64)
        }
    }

    /// The next ones; none at the end.
    pub(super) fn chunk(&mut self) -> Vec<Item> {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < limits::CLIENT_BATCH_HANDOFFS_MAX && bytes < limits::CLIENT_BATCH_BYTES_MAX {
            let Some(item) = self.next() else { break };
            bytes += item.body.as_ref().map_or(0, Vec::len);
            chunk.push(item);
        }
        chunk
    }

    fn next(&mut self) -> Option<Item> {
        if !self.is_lines {
            let path = self.files.next()?;
            let body = read_task_spec(path).and_then(|body| {
                json::read(&body, limits::TASK_SPEC).map_err(|fault| body_failure(path, &fault))?;
                Ok(body)
            });
            return Some(Item { name: path.display().to_string(), body: body.map_err(|Failure(why)| why) });
        }
        loop {
            let Some(lines) = &mut self.lines else {
                let path = self.files.next()?;
                match Lines::open(path) {
                    Ok(lines) => self.lines = Some(lines),
                    Err(error) => {
                        let name = path.display().to_string();
                        return Some(Item { body: Err(format!("{name}: {}", plain(&error))), name });
                    }
                }
                continue;
            };
            match lines.next(&mut self.bytes) {
                Some(item) => return Some(item),
                None => self.lines = None,
            }
        }
    }
}

fn bytes_of(path: &Path) -> u64 {
    // Standard input may be a file, and then its length is known.
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    path.metadata().map_or(0, |metadata| metadata.len())
}

impl Lines {
    fn open(path: &Path) -> io::Result<Self> {
        let reader: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(path)?))
        };
        Ok(Self { name: path.display().to_string(), reader, number: 0 })
    }

    /// The next line that is not empty. One that cannot be read to its end is the last.
    fn next(&mut self, bytes: &mut u64) -> Option<Item> {
        loop {
            let mut line = Vec::new();
            self.number += 1;
            let name = format!("{}, line {}", self.name, self.number);
            // Room for the line's end, which is not part of it.
            let bytes_max = limits::TASK_SPEC.bytes_max as u64 + 2;
            let read = (&mut self.reader).take(bytes_max).read_until(b'\n', &mut line);
            match read {
                Ok(0) => return None,
                Ok(count) => *bytes += count as u64,
                Err(error) => {
                    self.reader = Box::new(io::empty());
                    return Some(Item { body: Err(format!("{name}: {}", plain(&error))), name });
                }
            }
            if !line.ends_with(b"\n") && line.len() as u64 == bytes_max {
                *bytes += self.skip_line();
            }
            let body = line.trim_ascii();
            if body.is_empty() {
                continue;
            }
            let body = match json::read(body, limits::TASK_SPEC) {
                Ok(_) => Ok(body.to_vec()),
                Err(fault) => Err(body_failure(Path::new(&name), &fault).0),
            };
            return Some(Item { name, body });
        }
    }

    /// Reads on to the end of a line that is too long to keep.
    fn skip_line(&mut self) -> u64 {
        let mut skipped = 0;
        loop {
            let (count, ended) = match self.reader.fill_buf() {
                Ok([]) | Err(_) => return skipped,
                Ok(buffer) => match buffer.iter().position(|byte| *byte == b'\n') {
                    Some(at) => (at + 1, true),
                    None => (buffer.len(), false),
                },
            };
            self.reader.consume(count);
            skipped += count as u64;
            if ended {
                return skipped;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Result<String, String>> {
        let reader = Box::new(io::Cursor::new(text.to_owned()));
        let mut lines = Lines { name: "in".into(), reader, number: 0 };
        let mut bytes = 0;
        let items = std::iter::from_fn(|| lines.next(&mut bytes));
        let found = items.map(|item| item.body.map(|body| String::from_utf8(body).unwrap())).collect();
        assert_eq!(bytes, text.len() as u64);
        found
    }

    #[test]
    fn each_line_is_a_task_spec_and_empty_ones_are_none() {
        assert_eq!(
            lines("{}\n\n  {\"a\":1}\r\n{}"),
            [Ok("{}".into()), Ok("{\"a\":1}".into()), Ok("{}".into())]
        );
        assert!(lines("\n\n").is_empty());
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_the_next_one_is_read() {
        let long = format!("\"{}\"\n{{}}\n", "x".repeat(limits::TASK_SPEC.bytes_max * 2));
        for text in ["{\n{}\n", "{} {}\n{}\n", &long] {
            let found = lines(text);
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found[0].as_ref().is_err_and(|why| why.starts_with("in, line 1: ")), "{:?}", found[0]);
            assert_eq!(found[1], Ok("{}".into()));
        }
    }

    #[test]
    fn a_chunk_is_bounded_in_number_and_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        let files = vec![path.clone()];
        let sizes = |text: String| {
            #[expect(clippy::disallowed_methods, reason = "a test lays out files")]
            std::fs::write(&path, text).unwrap();
            let mut intake = Intake::new(&files, true);
            let sizes: Vec<usize> =
                std::iter::from_fn(|| Some(intake.chunk().len()).filter(|len| *len > 0)).collect();
            let (done, all) = intake.progress();
            assert_eq!(done, all);
            sizes
        };
        assert_eq!(sizes("{}\n".repeat(250)), [100, 100, 50]);
        let large = format!("\"{}\"\n", "x".repeat(200 * 1024));
        assert_eq!(sizes(large.repeat(7)), [6, 1]);
    }
}
