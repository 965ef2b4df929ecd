//! `handoffd evidence convert`: A2A packets to bounded visibility evidence.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};

use super::{Context, Exit, Failure, read_input};
use crate::evidence::{Limits, Mode, convert};

/// Convert A2A packets into evidence.
#[derive(Debug, Subcommand)]
pub(super) enum EvidenceCommand {
    Convert(Convert),
}

/// Say what was visible in A2A packets: the K1-A handoff and G4-A discovery objects.
///
/// Prints {"ok": {events, lossiness, digests}} or {"error": {kind, message}} for each packet: indented for one, a
/// line each for several.
///
/// Exit: 0 all converted, 1 one was refused, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Convert {
    /// Packet files; `-` is standard input. A file that ends in .jsonl has a packet on each line
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What happens when a packet lacks what its event needs: refuse it, or fill in and count
    #[arg(long, value_enum, default_value = "strict")]
    mode: ModeName,

    /// Every file has a packet on each line
    #[arg(long)]
    lines: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeName {
    Strict,
    Lenient,
}

/// What a file of packets may weigh when read as a whole.
const BYTES_MAX: usize = 256 * 1024 * 1024;

impl EvidenceCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Convert(convert) => convert.run(context),
        }
    }
}

impl Convert {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let texts =
            self.files.iter().map(|path| read_input(path, BYTES_MAX)).collect::<Result<Vec<_>, _>>()?;
        let mut packets: Vec<&[u8]> = Vec::new();
        let mut several = self.files.len() > 1;
        for (path, text) in self.files.iter().zip(&texts) {
            if self.lines || path.extension().is_some_and(|extension| extension == "jsonl") {
                several = true;
                packets
                    .extend(text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()));
            } else {
                packets.push(text);
            }
        }
        let mode = match self.mode {
            ModeName::Strict => Mode::Strict,
            ModeName::Lenient => Mode::Lenient,
        };
        let mut exit = Exit::Done;
        for packet in packets {
            let answer = answer(packet, mode);
            if answer.get("error").is_some() {
                exit = Exit::Refused;
            }
            if several {
                context.printer.line(&answer.to_string());
            } else {
                context.printer.value(&answer);
            }
        }
        Ok(exit)
    }
}

fn answer(packet: &[u8], mode: Mode) -> Json {
    match convert(packet, mode, &Limits::default()) {
        Ok(conversion) => json!({"ok": conversion}),
        Err(error) => json!({"error": error}),
    }
}
