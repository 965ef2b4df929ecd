//! What is asked of the sequencer beside decisions: events that agents report, and what operators do.
//!
//! An act runs on the sequencer's thread, in ledger order, and whoever asked is answered when all it wrote is
//! durable. It can be run again, should what it was built on turn out to be gone.

use super::record::Decided;
use super::sequencer::Sequencer;
use super::standing::Standing;
use super::{EngineFault, EngineHandle};
use crate::authorization::Person;
use crate::ledger::BatchBuilder;
use crate::wire::Sender;

/// Who does something: a person, or an administrator's token, which is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    name: String,
    person: Option<Person>,
    is_harness: bool,
}

impl Asking {
    /// A named operator, and the principal that the person also is.
    pub fn person_of(name: &str, principal: Option<&str>) -> Self {
        let person = Person::of(Sender::Human(name), principal);
        Self { name: name.to_owned(), person, is_harness: false }
    }

    /// Somebody who is no person.
    pub fn token(name: &str) -> Self {
        Self { name: name.to_owned(), person: None, is_harness: false }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A registered harness.
    pub fn harness(name: &str) -> Self {
        Self { name: name.to_owned(), person: None, is_harness: true }
    }

    /// The person, if it is one.
    pub fn person(&self) -> Option<&Person> {
        self.person.as_ref()
    }

    /// As whom the ledger knows it.
    pub(super) fn sender(&self) -> Sender<'_> {
        match &self.person {
            Some(_) => Sender::Human(&self.name),
            None if self.is_harness => Sender::Runner(&self.name),
            None => Sender::System,
        }
    }
}

pub(super) trait Act: Send {
    /// Does it, and keeps the answer. After a fault it may have been done in part.
    fn run(&mut self, sequencer: &mut Sequencer, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault>;

    /// The decision that it made, if it made one.
    fn decided(&self) -> Option<&Decided> {
        None
    }

    /// Gives the answer, or says why there is none.
    fn tell(self: Box<Self>, durable: Result<(), EngineFault>);
}

struct Asked<T, R, D> {
    /// Is it done only by a gateway whose rules are those in force?
    ruled: bool,
    run: R,
    answer: Option<Result<T, EngineFault>>,
    done: D,
}

impl<T, R, D> Act for Asked<T, R, D>
where
    T: Send,
    R: FnMut(&mut Sequencer, &mut BatchBuilder<'_>) -> Result<T, EngineFault> + Send,
    D: FnOnce(Result<T, EngineFault>) + Send,
{
    fn run(&mut self, sequencer: &mut Sequencer, batch: &mut BatchBuilder<'_>) -> Result<(), EngineFault> {
        let agreed = if self.ruled { sequencer.agree() } else { Ok(()) };
        let answer = agreed.and_then(|()| sequencer.at_one_time(|sequencer| (self.run)(sequencer, batch)));
        let done = answer.as_ref().map(|_| ()).map_err(EngineFault::clone);
        self.answer = Some(answer);
        done
    }

    fn tell(self: Box<Self>, durable: Result<(), EngineFault>) {
        let Self { answer, done, .. } = *self;
        done(durable.and_then(|()| answer.unwrap_or(Err(EngineFault::Stopped))));
    }
}

impl EngineHandle {
    /// Puts an act in line, where decisions stand; `done` hears of it when it is durable. It is never turned away
    /// because the line is long: a flood of handoffs must not keep anybody from stopping them.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        run: impl FnMut(&mut Sequencer, &mut BatchBuilder<'_>) -> Result<T, EngineFault> + Send + 'static,
        done: impl FnOnce(Result<T, EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        self.send_act(Box::new(Asked { ruled: true, run, answer: None, done }))
    }

    /// The same for what does not rest on the rules: whatever they are, it is done.
    pub(super) fn ask_whatever<T: Send + 'static>(
        &self,
        run: impl FnMut(&mut Sequencer, &mut BatchBuilder<'_>) -> Result<T, EngineFault> + Send + 'static,
        done: impl FnOnce(Result<T, EngineFault>) + Send + 'static,
    ) -> Result<(), EngineFault> {
        self.send_act(Box::new(Asked { ruled: false, run, answer: None, done }))
    }

    /// The same, and waits.
    pub(super) fn ask_whatever_and_wait<T: Send + 'static>(
        &self,
        run: impl FnMut(&mut Sequencer, &mut BatchBuilder<'_>) -> Result<T, EngineFault> + Send + 'static,
    ) -> Result<T, EngineFault> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.ask_whatever(run, move |answer| drop(sender.send(answer)))?;
        receiver.recv().unwrap_or(Err(EngineFault::Stopped))
    }

    /// The same, and waits.
    pub(super) fn ask_and_wait<T: Send + 'static>(
        &self,
        run: impl FnMut(&mut Sequencer, &mut BatchBuilder<'_>) -> Result<T, EngineFault> + Send + 'static,
    ) -> Result<T, EngineFault> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.ask(run, move |answer| drop(sender.send(answer)))?;
        receiver.recv().unwrap_or(Err(EngineFault::Stopped))
    }

    /// What is in force by the ledger, with what is being written.
    pub(super) fn standing<T>(&self, look: impl FnOnce(&Standing) -> T) -> T {
        look(&self.shared.shown.standing())
    }
}
