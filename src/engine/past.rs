//! What has been claimed in entries that are no longer in memory.
//!
//! The views say whether a name was claimed, and by which entry; what was decided then is read from that entry.
//! INVARIANT (no read, no decision): whatever cannot be read is a fault to the caller, never "not claimed".

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;

use super::EngineFault;
use super::standing::{Told, told_by};
use crate::contract::Mode;
use crate::ledger::{Entry, Source};
use crate::limits;
use crate::views::{
    AskedClaim, Claimed, EntryFilter, EntryRow, FollowedViews, HandoffClaim, HandoffFilter, HandoffRow,
    KeyClaim, MessageClaim, Reader, Rebuild, ViewsFault,
};
use crate::wire::{Kind, State, StreamId};

/// What the sequencer asks when memory does not know. Asked from one thread only.
pub trait Past: Send {
    /// The last entry whose claims are in it. Never goes back.
    fn applied(&self) -> u64;

    /// How many names there may be.
    fn names_max(&self) -> Result<u64, EngineFault>;

    /// Tells every name that was claimed.
    fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), EngineFault>;

    fn handoff(&self, handoff_id: &str) -> Result<Option<HandoffClaim>, EngineFault>;

    fn key(&self, source_agent: &str, idempotency_key: &str) -> Result<Option<KeyClaim>, EngineFault>;

    /// The handoff that a message was spent on.
    fn message(&self, message_id: &str) -> Result<Option<String>, EngineFault>;

    /// Accepted mentions in a correlationId.
    fn mentions(&self, correlation_id: &str) -> Result<u32, EngineFault>;

    /// What a caller's messageId over A2A stands for.
    fn said(&self, caller: &str, message_id: &str) -> Result<Option<MessageClaim>, EngineFault>;

    /// A task that began without a TaskSpec.
    fn asked(&self, task_id: &str) -> Result<Option<AskedClaim>, EngineFault>;

    /// The entry of that number, from the ledger.
    fn entry(&self, sequence: u64) -> Result<Entry, EngineFault>;

    /// Live handoffs on a route that have not ended.
    fn in_flight(&self, route_key: &str) -> Result<Vec<String>, EngineFault>;

    /// The entries of a stream, in order.
    fn stream(&self, stream_id: &str) -> Result<Vec<Entry>, EngineFault>;

    /// The handoffs that were claimed and have not ended, and those that wait for a person.
    fn under_way(&self) -> Result<Vec<String>, EngineFault>;

    /// Those entries, in order, that say what is in force.
    fn standing(&self) -> Result<Vec<Entry>, EngineFault>;
}

/// The views and the ledger that they follow.
pub struct ViewsPast {
    views: Box<dyn FollowedViews>,
    /// With the opening it belongs to. Asked from one thread, and never from within a question.
    reader: RefCell<(u64, Reader)>,
    ledger: Source,
    gateway_stream: String,
}

impl ViewsPast {
    pub fn new(views: Box<dyn FollowedViews>, ledger: Source, topic_id: &str) -> Result<Self, ViewsFault> {
        let gateway_stream = StreamId::Gateway { topic_id }.to_string();
        let reader = RefCell::new((views.opening(), opened(&*views)?));
        Ok(Self { views, reader, ledger, gateway_stream })
    }

    /// A reader of the file that is followed now. INVARIANT (live claims): one of a file that took its place does not know
    /// what left memory since.
    fn reader(&self) -> Result<Ref<'_, Reader>, ViewsFault> {
        let opening = self.views.opening();
        if self.reader.borrow().0 != opening {
            let reader = opened(&*self.views)?;
            *self.reader.borrow_mut() = (opening, reader);
        }
        Ok(Ref::map(self.reader.borrow(), |(_, reader)| reader))
    }

    /// Asks the views. Whoever keeps them hears of damage: a question that met it meets it again until they are made again.
    fn ask<T>(&self, question: impl FnOnce(&Reader) -> Result<T, ViewsFault>) -> Result<T, EngineFault> {
        let opening = self.views.opening();
        let answer = self.reader().and_then(|reader| question(&reader));
        if let Err(ViewsFault::NeedsRebuild(Rebuild::Damaged(why))) = &answer {
            self.views.is_damaged(opening, why);
        }
        answer.map_err(unread)
    }

    /// Entries from one number through another.
    fn read(&self, from: u64, through: u64) -> Result<Vec<Entry>, EngineFault> {
        let entries: Result<Vec<Entry>, _> = self.ledger.entries(from, through).map_err(unread)?.collect();
        let entries = entries.map_err(unread)?;
        if entries.len() as u64 == through + 1 - from { Ok(entries) } else { Err(unread("it has gaps")) }
    }

    /// The handoffs that are in this state.
    fn in_state(&self, status: State) -> Result<Vec<String>, EngineFault> {
        let filter = HandoffFilter { status: Some(status), ..HandoffFilter::default() };
        let mut names = Vec::new();
        self.each(&filter, &mut |row| names.push(row.handoff_id))?;
        Ok(names)
    }

    /// Tells every handoff that the filter finds.
    fn each(&self, filter: &HandoffFilter<'_>, tell: &mut dyn FnMut(HandoffRow)) -> Result<(), EngineFault> {
        let mut cursor = None;
        loop {
            let page = self.ask(|reader| reader.handoffs(filter, cursor, limits::VIEW_PAGE_ROWS_MAX))?;
            page.rows.into_iter().for_each(&mut *tell);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Entries of these numbers, in order.
    fn read_all(&self, wanted: BTreeSet<u64>) -> Result<Vec<Entry>, EngineFault> {
        // Most of them were recorded together: one read for all that stand side by side.
        let mut entries = Vec::new();
        let mut wanted = wanted.into_iter().peekable();
        while let Some(from) = wanted.next() {
            let mut through = from;
            while let Some(next) = wanted.next_if(|next| *next == through + 1) {
                through = next;
            }
            entries.append(&mut self.read(from, through)?);
        }
        Ok(entries)
    }

    /// Tells entries, the newest first, until `tell` has enough.
    fn rows(
        &self,
        filter: &EntryFilter<'_>,
        tell: &mut dyn FnMut(EntryRow) -> bool,
    ) -> Result<(), EngineFault> {
        let mut cursor = None;
        loop {
            let page = self.ask(|reader| reader.entries(filter, cursor, limits::VIEW_PAGE_ROWS_MAX))?;
            for row in page.rows {
                if !tell(row) {
                    return Ok(());
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }
}

/// A reader of the file that has the views' name now. INVARIANT (live claims): what left memory is in it.
fn opened(views: &dyn FollowedViews) -> Result<Reader, ViewsFault> {
    // Asked before: what is applied meanwhile may be in it or not.
    let applied = views.applied();
    views.open()?.holds(applied)
}

impl std::fmt::Debug for ViewsPast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ViewsPast({:?})", self.ledger)
    }
}

fn unread(why: impl std::fmt::Display) -> EngineFault {
    EngineFault::NotDurable(format!("what was decided before could not be read: {why}"))
}

impl Past for ViewsPast {
    fn applied(&self) -> u64 {
        self.views.applied()
    }

    fn names_max(&self) -> Result<u64, EngineFault> {
        self.ask(|reader| reader.claims().names_max())
    }

    fn names(&self, tell: &mut dyn FnMut(Claimed<'_>)) -> Result<(), EngineFault> {
        self.ask(|reader| reader.claims().names(tell))
    }

    fn handoff(&self, handoff_id: &str) -> Result<Option<HandoffClaim>, EngineFault> {
        self.ask(|reader| reader.claims().handoff(handoff_id))
    }

    fn key(&self, source_agent: &str, idempotency_key: &str) -> Result<Option<KeyClaim>, EngineFault> {
        self.ask(|reader| reader.claims().key(source_agent, idempotency_key))
    }

    fn message(&self, message_id: &str) -> Result<Option<String>, EngineFault> {
        self.ask(|reader| reader.claims().message(message_id))
    }

    fn mentions(&self, correlation_id: &str) -> Result<u32, EngineFault> {
        self.ask(|reader| reader.claims().mentions(correlation_id))
    }

    fn said(&self, caller: &str, message_id: &str) -> Result<Option<MessageClaim>, EngineFault> {
        self.ask(|reader| reader.claims().said(caller, message_id))
    }

    fn asked(&self, task_id: &str) -> Result<Option<AskedClaim>, EngineFault> {
        self.ask(|reader| reader.claims().asked(task_id))
    }

    fn entry(&self, sequence: u64) -> Result<Entry, EngineFault> {
        self.read(sequence, sequence)?.pop().ok_or_else(|| unread("it has gaps"))
    }

    fn stream(&self, stream_id: &str) -> Result<Vec<Entry>, EngineFault> {
        let filter = EntryFilter { stream_id: Some(stream_id), ..EntryFilter::default() };
        let mut wanted = BTreeSet::new();
        self.rows(&filter, &mut |row| wanted.insert(row.sequence))?;
        self.read_all(wanted)
    }

    fn in_flight(&self, route_key: &str) -> Result<Vec<String>, EngineFault> {
        let mut names = Vec::new();
        for status in [State::Available, State::Claimed, State::Working, State::Blocked] {
            let filter =
                HandoffFilter { status: Some(status), route: Some(route_key), ..HandoffFilter::default() };
            self.each(&filter, &mut |row| {
                if row.current.mode.as_deref() == Some(Mode::Live.as_str()) {
                    names.push(row.handoff_id);
                }
            })?;
        }
        Ok(names)
    }

    fn under_way(&self) -> Result<Vec<String>, EngineFault> {
        let mut names = Vec::new();
        for status in [State::Claimed, State::Working, State::Blocked, State::Waiting] {
            names.append(&mut self.in_state(status)?);
        }
        Ok(names)
    }

    fn standing(&self) -> Result<Vec<Entry>, EngineFault> {
        let mut wanted = BTreeSet::new();
        let own = EntryFilter { stream_id: Some(&self.gateway_stream), ..EntryFilter::default() };
        let mut last = |row: EntryRow| {
            wanted.insert(row.sequence);
            false
        };
        self.rows(&own, &mut last)?;
        for kind in Kind::ALL.iter().copied() {
            let all = match told_by(kind) {
                Told::Nothing | Told::ByItsHandoff => continue,
                Told::ByTheLast => false,
                Told::ByAll | Told::ByAllCredentials => true,
            };
            let filter = EntryFilter { kind: Some(kind.as_str()), ..EntryFilter::default() };
            let mut tell = |row: EntryRow| {
                wanted.insert(row.sequence);
                all
            };
            self.rows(&filter, &mut tell)?;
        }
        // Those who wait for a person are told of by their own streams.
        for handoff_id in self.in_state(State::Waiting)? {
            let attempts = self.ask(|reader| reader.handoff(&handoff_id))?;
            wanted.extend(attempts.into_iter().flat_map(|detail| {
                let shown = detail.handoff.current.attempt;
                detail
                    .attempts
                    .into_iter()
                    .filter(move |(row, _)| row.attempt == shown)
                    .flat_map(|(_, all)| all)
            }));
        }
        self.read_all(wanted)
    }
}
