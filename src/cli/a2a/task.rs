//! `handoffd a2a get` and `handoffd a2a cancel`.

use clap::Args;

use super::super::{Context, Exit};
use super::{exit_of, show, state};
use crate::a2a::client::{Client, ClientFault};

/// Show a task as it is.
#[derive(Debug, Args)]
pub(super) struct Get {
    /// The id of the task
    #[arg(value_name = "ID")]
    id: String,

    /// How many of the last messages to show; without it, all
    #[arg(long, value_name = "COUNT")]
    history: Option<u32>,
}

/// Cancel a task. Exit: 0 canceled, 1 it has ended already.
#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// The id of the task
    #[arg(value_name = "ID")]
    id: String,
}

impl Get {
    pub(super) fn run(&self, context: &Context, client: &Client<'_>) -> Result<Exit, ClientFault> {
        let task = client.get(&self.id, self.history)?;
        show::answer(context, &task);
        Ok(exit_of(state(&task)))
    }
}

impl Cancel {
    pub(super) fn run(&self, context: &Context, client: &Client<'_>) -> Result<Exit, ClientFault> {
        let task = client.cancel(&self.id)?;
        show::answer(context, &task);
        // Canceled is what was asked for.
        Ok(match state(&task) {
            Some("canceled") => Exit::Done,
            other => exit_of(other),
        })
    }
}
