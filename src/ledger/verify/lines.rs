//! A file, line by line, in bounded memory.

use std::io::{self, BufRead, Read as _};

/// How much of a line is held at once. An event line of the longest Wire text has about a third of it.
pub(super) const PART_BYTES_MAX: usize = 64 * 1024;

/// What is held of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, or the last part; the `\n` is taken off.
    Line,
    /// There is more to come.
    More,
    /// All there is, but no `\n` at the end.
    Unended,
    /// Nothing: the file ended with the line before.
    End,
}

pub(super) struct Lines<R> {
    reader: R,
    text: Vec<u8>,
    /// Bytes of this line that were held before and are let go.
    gone: usize,
    part: Part,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, text: Vec::new(), gone: 0, part: Part::End, number: 0, offset: 0 }
    }

    /// Lets go of the line that is held, to its end, and takes the next one.
    pub(super) fn begin(&mut self) -> io::Result<Part> {
        while self.part == Part::More {
            self.more(self.text.len())?;
        }
        self.text.clear();
        self.gone = 0;
        self.part = self.fill()?;
        // A file that ends is reported at its last line, not at one that is not there.
        if self.part != Part::End {
            self.number += 1;
        }
        Ok(self.part)
    }

    /// Lets go of the first `used` bytes and takes more of the same line.
    pub(super) fn more(&mut self, used: usize) -> io::Result<Part> {
        self.text.drain(..used.min(self.text.len()));
        self.gone += used;
        self.part = match self.fill()? {
            Part::End => Part::Unended,
            part => part,
        };
        Ok(self.part)
    }

    fn fill(&mut self) -> io::Result<Part> {
        let room = PART_BYTES_MAX.saturating_sub(self.text.len());
        let read = self.reader.by_ref().take(room as u64).read_until(b'\n', &mut self.text)?;
        self.offset += read as u64;
        if read > 0 && self.text.last() == Some(&b'\n') {
            self.text.pop();
            Ok(Part::Line)
        } else if read == room {
            Ok(Part::More)
        } else if self.text.is_empty() {
            Ok(Part::End)
        } else {
            Ok(Part::Unended)
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The column, from 1, of a place in what is held.
    pub(super) fn column(&self, at: usize) -> usize {
        self.gone + at + 1
    }

    /// The number of the line that is held, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the file up to the end of what is held.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}
