//! `handoffd a2a send` and the message that `stream` sends too.

use std::path::PathBuf;

use clap::Args;

use super::super::{Context, Exit, Failure, body_failure, read_task_spec};
use super::{exit_of, show, state};
use crate::a2a::client::{Client, ClientFault};
use crate::a2a::{Message, Part};
use crate::json;
use crate::limits;
use crate::os::random;

/// Send a message, and show the task that it makes.
///
/// A file goes as a data part: a TaskSpec, to hand work over. The answer comes when somebody has to act or the task
/// has ended, or after the few seconds that the agent waits.
#[derive(Debug, Args)]
pub(super) struct Send {
    #[command(flatten)]
    pub(super) message: Outgoing,

    /// Do not wait: show the task as it is now
    #[arg(long)]
    no_wait: bool,
}

/// Send a message, and follow its task to the end.
///
/// A stream that is cut goes on behind the last event that was seen. With --json each event is one line.
#[derive(Debug, Args)]
pub(super) struct StreamMessage {
    #[command(flatten)]
    pub(super) message: Outgoing,
}

/// What is sent.
#[derive(Debug, Args)]
pub(super) struct Outgoing {
    /// A JSON file, such as a TaskSpec; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "text")]
    file: Option<PathBuf>,

    /// Text to send with the file, or instead of it
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Go on with this task, which asked for input
    #[arg(long, value_name = "ID")]
    task: Option<String>,

    /// The messageId; the same one again returns the same task. Without it, a new one
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
}

impl Outgoing {
    pub(super) fn read(&self) -> Result<Message, Failure> {
        let mut parts: Vec<Part> = self.text.iter().map(Part::text).collect();
        if let Some(path) = &self.file {
            let bytes = read_task_spec(path)?;
            let document =
                json::read(&bytes, limits::TASK_SPEC).map_err(|fault| body_failure(path, &fault))?;
            parts.push(Part::data(document.root().to_json()));
        }
        let message_id = match &self.message_id {
            Some(id) => id.clone(),
            None => {
                let bytes = random::secret_bytes::<16>()?;
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("msg_{}", hex.concat())
            }
        };
        let mut message = Message::from_user(&message_id, parts);
        message.task_id.clone_from(&self.task);
        Ok(message)
    }
}

impl Send {
    pub(super) fn run(
        &self,
        context: &Context,
        client: &Client<'_>,
        message: &Message,
    ) -> Result<Exit, ClientFault> {
        let answer = client.send(message, !self.no_wait)?;
        show::answer(context, &answer);
        Ok(exit_of(state(&answer)))
    }
}
