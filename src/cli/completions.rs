//! `handoffd completions`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Arguments, Context, Exit, Failure};

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "handoffd", &mut script);
        context.printer.raw(&script);
        Ok(Exit::Done)
    }
}
