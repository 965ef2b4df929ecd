//! Tells those who listen what has become durable, as it does.
//!
//! Listeners take at their own pace. What has fallen out of the line for one that is slow is read from the ledger
//! instead, so nobody is waited for and nothing is kept for them without bound. So is what was not told in its place.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::ledger::{EntriesFault, Entry, Follower, Notice, Source};
use crate::limits;

/// An entry, and the stream it belongs to.
#[derive(Debug, Clone)]
pub struct Told {
    pub entry: Entry,
    pub stream_id: String,
    pub stream_seq: u64,
    pub kind: String,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(rename = "type")]
    kind: String,
    stream: Stream,
}

#[derive(Deserialize)]
struct Stream {
    stream_id: String,
    stream_seq: u64,
}

impl Told {
    /// Nothing if the text is no Wire event, which nothing in a ledger of ours is.
    pub fn of(entry: Entry) -> Option<Self> {
        let Wire { kind, stream: Stream { stream_id, stream_seq } } =
            serde_json::from_str(&entry.wire).ok()?;
        Some(Self { entry, stream_id, stream_seq, kind })
    }
}

/// A batch as it is passed along: taken apart by the first who hears it, not by the writer, and once for all.
#[derive(Debug, Default)]
struct Heard {
    entries: Mutex<Vec<Entry>>,
    told: OnceLock<Vec<Told>>,
}

impl Heard {
    fn new(entries: Vec<Entry>) -> Self {
        Self { entries: Mutex::new(entries), told: OnceLock::new() }
    }

    fn told(&self) -> &[Told] {
        self.told.get_or_init(|| {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *entries).into_iter().filter_map(Told::of).collect()
        })
    }
}

/// The line that listeners stand at.
#[derive(Debug, Clone)]
pub struct Hub {
    line: broadcast::Sender<Arc<Heard>>,
    ledger: Source,
}

impl Hub {
    pub(super) fn new(ledger: Source) -> Self {
        Self { line: broadcast::Sender::new(limits::HUB_BATCHES_MAX), ledger }
    }

    /// A listener that hears every entry from number `from` on. `head` tells what is durable now.
    pub fn listen(&self, from: u64, head: impl Fn() -> u64 + Send + Sync + 'static) -> Listener {
        // In this order: what becomes durable in between is both read and heard, and told once.
        let line = self.line.subscribe();
        let through = head();
        let ledger = self.ledger.clone();
        Listener {
            line,
            ledger,
            ready: Arc::default(),
            at: 0,
            next: from.max(1),
            through,
            head: Box::new(head),
            fault: None,
        }
    }
}

/// Hands entries on, and to those who listen.
pub(super) struct HubFollower<F> {
    pub(super) next: F,
    pub(super) hub: Hub,
}

impl<F: Follower> Follower for HubFollower<F> {
    fn durable(&mut self, entries: &[Entry]) -> Option<Notice> {
        let notice = self.next.durable(entries);
        if self.hub.line.receiver_count() > 0 {
            // Nobody left to hear it is no fault.
            let _ = self.hub.line.send(Arc::new(Heard::new(entries.to_vec())));
        }
        notice
    }

    fn idle(&mut self) -> Option<Notice> {
        self.next.idle()
    }
}

/// One who listens.
pub struct Listener {
    line: broadcast::Receiver<Arc<Heard>>,
    ledger: Source,
    /// What was heard or read last, and how much of it has been told. Shared with all who heard it: those who are
    /// slow must not each have a copy.
    ready: Arc<Heard>,
    at: usize,
    /// The next entry to tell.
    next: u64,
    /// Up to here the ledger is read; from there on the line is heard.
    through: u64,
    head: Box<dyn Fn() -> u64 + Send + Sync>,
    fault: Option<EntriesFault>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listener(next {})", self.next)
    }
}

impl Listener {
    /// Is there more to take without waiting?
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.told().is_empty()
    }

    /// Why there will be no further entry, where that is because the ledger could not be read back.
    pub fn fault(&self) -> Option<&EntriesFault> {
        self.fault.as_ref()
    }

    /// The next entry, when there is one; nothing when there will be none. Safe to stop waiting for at any time.
    pub async fn next(&mut self) -> Option<Told> {
        self.next_where(|_| true).await
    }

    /// The next entry that is wanted. The others are passed over without a copy: a thousand may listen for a stream
    /// each, and every one of them hears all.
    pub async fn next_where(&mut self, wanted: impl Fn(&Told) -> bool) -> Option<Told> {
        loop {
            if let Some(told) = self.ready.told().get(self.at) {
                self.at += 1;
                // Read and heard: told once.
                if told.entry.sequence < self.next {
                    continue;
                }
                self.next = told.entry.sequence + 1;
                if !wanted(told) {
                    continue;
                }
                return Some(told.clone());
            }
            // Not kept while waiting for more, which can be long.
            self.ready = Arc::default();
            self.at = 0;
            if self.next <= self.through {
                self.ready = match self.read().await {
                    Ok(ready) => ready,
                    Err(fault) => {
                        self.fault = Some(fault);
                        return None;
                    }
                };
                if self.ready.told().is_empty() {
                    return None;
                }
                continue;
            }
            match self.line.recv().await {
                Ok(heard) => match (heard.told().first(), heard.told().last()) {
                    (Some(first), Some(last)) if first.entry.sequence > self.next => {
                        self.through = last.entry.sequence;
                    }
                    _ => self.ready = heard,
                },
                Err(RecvError::Lagged(_)) => self.through = (self.head)(),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    async fn read(&self) -> Result<Arc<Heard>, EntriesFault> {
        let (ledger, from) = (self.ledger.clone(), self.next);
        let through = self.through.min(from + limits::HUB_READ_ENTRIES - 1);
        let read = move || {
            let entries = ledger.entries(from, through)?;
            entries.collect::<Result<Vec<_>, _>>().map(|entries| Arc::new(Heard::new(entries)))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|error| Err(EntriesFault::Io(std::io::Error::other(error))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{BatchBuilder, Log as _, MemoryLog};
    use crate::timestamp::Timestamp;

    struct Nobody;

    impl Follower for Nobody {
        fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
            None
        }
    }

    #[tokio::test]
    async fn whoever_listens_hears_every_entry_once_and_in_order_however_they_are_told() {
        let (mut log, mut batches) = (MemoryLog::new("gw_test"), Vec::new());
        let hub = Hub::new(Source::Memory(log.store().clone()));
        let mut listener = hub.listen(1, || 0);
        for n in 0..5 {
            let mut batch = BatchBuilder::new("gw_test", log.head(), None);
            for _ in 0..2 {
                let stream = serde_json::json!({"stream_id": "task:hs_1:attempt:1", "stream_seq": n});
                let wire = serde_json::json!({"type": "task.started", "stream": stream});
                batch.event(wire.to_string(), Timestamp::parse("2026-02-18T19:38:00Z").unwrap());
            }
            let batch = batch.seal().unwrap();
            log.append(log.head(), &batch).unwrap();
            batches.push(batch.entries().to_vec());
        }
        let mut follower = HubFollower { next: Nobody, hub };
        // The fourth is not told at all.
        for batch in [0, 2, 1, 4] {
            follower.durable(&batches[batch]);
        }
        for expected in 1..=log.head().sequence {
            assert_eq!(listener.next().await.unwrap().entry.sequence, expected);
        }
    }
}
