//! Server-sent events out of a body, as it comes in.

use std::io::{self, Read};

use crate::limits;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The id that came with it; none if it has none of its own.
    pub(super) id: Option<String>,
    pub(super) data: String,
}

/// The events of a body.
pub(super) struct Events<R> {
    reader: R,
    /// What was read and is not a whole line yet.
    buffer: Vec<u8>,
    /// The last line ended in a carriage return, which a newline may still belong to.
    after_return: bool,
    id: Option<String>,
    data: Option<String>,
}

impl<R: Read> Events<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), after_return: false, id: None, data: None }
    }

    /// The next event; nothing when the body has ended. An event that was cut off is none.
    pub(super) fn next(&mut self) -> io::Result<Option<Event>> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                let id = self.id.take();
                if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
                    return Ok(Some(Event { id, data }));
                }
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
                "data" => match &mut self.data {
                    None => self.data = Some(value.to_owned()),
                    Some(data) => {
                        if data.len().saturating_add(value.len()) > limits::A2A_EVENT_BYTES_MAX {
                            return Err(too_large());
                        }
                        data.push('\n');
                        data.push_str(value);
                    }
                },
                // A comment has no name; `event` says what the data says too, and `retry` is ours to decide.
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next line without its end, which is a newline, a carriage return, or both.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut looked = 0;
        loop {
            if self.after_return && !self.buffer.is_empty() {
                self.after_return = false;
                if self.buffer.first() == Some(&b'\n') {
                    self.buffer.remove(0);
                }
            }
            let fresh = self.buffer.get(looked..).unwrap_or_default();
            if let Some(found) = fresh.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                let rest = self.buffer.split_off(looked + found);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.after_return = self.buffer.first() == Some(&b'\r');
                self.buffer.remove(0);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            looked = self.buffer.len();
            if looked > limits::A2A_EVENT_BYTES_MAX {
                return Err(too_large());
            }
            let mut chunk = [0; 8 * 1024];
            let read = match self.reader.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.buffer.extend(chunk.get(..read).unwrap_or_default());
        }
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an event is larger than is read")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes out in pieces of one size, and then ends or breaks.
    struct Pieces<'b> {
        bytes: &'b [u8],
        size: usize,
        breaks: bool,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let taken = self.size.min(self.bytes.len()).min(into.len());
            if taken == 0 && self.breaks {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let (now, rest) = self.bytes.split_at(taken);
            into[..taken].copy_from_slice(now);
            self.bytes = rest;
            Ok(taken)
        }
    }

    fn told(text: &str, size: usize) -> Vec<String> {
        let mut events = Events::new(Pieces { bytes: text.as_bytes(), size, breaks: false });
        let mut told = Vec::new();
        while let Some(event) = events.next().unwrap() {
            told.push(format!("{}={}", event.id.unwrap_or_default(), event.data));
        }
        told
    }

    #[test]
    fn events_are_the_same_however_they_are_cut_and_their_lines_end() {
        let text = ":hello\n\nid: 1\nevent: task\ndata: {\"a\":1}\n\ndata: two\ndata:lines\n\nid: 3\n\ndata\n\nid: 4\ndata: cut";
        for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace('\n', "\r")] {
            for size in [1, 2, 3, 7, 4096] {
                assert_eq!(told(&text, size), ["1={\"a\":1}", "=two\nlines"], "{size}");
            }
        }
    }

    #[test]
    fn a_broken_body_is_no_ended_one() {
        let mut events = Events::new(Pieces { bytes: b"data: 1\n\ndata: 2\n", size: 4, breaks: true });
        assert_eq!(events.next().unwrap().unwrap().data, "1");
        assert!(events.next().is_err());
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let long = format!("data: {}", "x".repeat(limits::A2A_EVENT_BYTES_MAX + 1));
        let mut events = Events::new(Pieces { bytes: long.as_bytes(), size: 4096, breaks: false });
        assert_eq!(events.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
        let line = format!("data: {}\n", "x".repeat(1 << 20));
        let many = line.repeat(limits::A2A_EVENT_BYTES_MAX / (1 << 20) + 1);
        let mut events = Events::new(Pieces { bytes: many.as_bytes(), size: 4096, breaks: false });
        assert_eq!(events.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
