//! What the ledger says of push configs: that somebody is to be told, and no longer is. Never where, nor with what.

use std::sync::Arc;

use super::{EngineFault, EngineHandle};
use crate::proof::Digest;
use crate::wire::{Kind, Payload, Sender, SenderClass};

/// What is recorded of a push config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushFact {
    Created { push_id: String, task_id: String, url: Digest },
    Removed { push_id: String, reason: &'static str },
}

impl PushFact {
    fn kind(&self) -> Kind {
        match self {
            Self::Created { .. } => Kind::PushCreated,
            Self::Removed { .. } => Kind::PushRemoved,
        }
    }

    /// Members in the order of their names.
    fn write(&self, payload: &mut Payload<'_, '_>) {
        match self {
            Self::Created { push_id, task_id, url } => {
                payload.text("push_id", push_id);
                payload.text("task_id", task_id);
                payload.text("url_digest", &url.to_string());
            }
            Self::Removed { push_id, reason } => {
                payload.text("push_id", push_id);
                payload.text("reason", reason);
            }
        }
    }
}

impl EngineHandle {
    /// Puts a fact in line, in the name of `sender`, where there is a place for it.
    pub fn note_push(
        &self,
        fact: PushFact,
        sender: Arc<str>,
        done: impl FnOnce(Result<(), EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        let place = self.take_place()?;
        let note = move |sequencer: &mut super::sequencer::Sequencer,
                         batch: &mut crate::ledger::BatchBuilder<'_>| {
            let _held = &place;
            // A harness has no voice in the gateway's own stream.
            let sender = Sender::parse(&sender).filter(|sender| sender.class() != SenderClass::Runner);
            let sender = sender.unwrap_or(Sender::System);
            sequencer.note_own(fact.kind(), sender, batch, |payload| fact.write(payload)).map(drop)
        };
        self.ask(note, done)
    }
}
