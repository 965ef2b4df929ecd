//! `handoffd policy`: table tests of the workspace's policies; the set in force is in `policy_set.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::client::ClientFlags;
use super::policy_set::{Answer, show};
use super::printer::{DIM, GREEN, RED};
use super::{Context, Exit, Failure};
use crate::cases::{CaseResult, Expectation, Suite};
use crate::limits;
use crate::os::files;
use crate::policy::{PolicySet, plain};

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd policy test
  handoffd policy show
  handoffd policy approve \\
      sha256:7777777777777777777777777777777777777777777777777777777777777777 \\
      --reason 'the new route was reviewed'
  handoffd policy reject \\
      sha256:7777777777777777777777777777777777777777777777777777777777777777 \\
      --reason 'nobody asked for it'

A changed set waits where [policy] approval = \"operator\". Answering is for a person: put an operator's token into HANDOFFD_TOKEN.";

/// Test policies, show the set in force, and answer to a changed one that waits.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    Test(Test),
    /// Show the set in force, how the last load went, and what waits
    Show,
    /// Approve a changed set that waits; it is then in force
    Approve(Answer),
    /// Reject it; it stays out of force until the files change
    Reject(Answer),
}

/// Run table tests: TaskSpecs changed in a few places, and what must come of them.
///
/// A case is a TaskSpec, a JSON merge patch, a time, and the decision and codes that must come of it; the format is
/// docs/schemas/policy-test.schema.json.
///
/// Exit: 0 all pass, 1 one failed, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Case files; all of policies/tests/*.json if none is given
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Run only the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

impl PolicyCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        match self {
            Self::Test(test) => test.run(context),
            Self::Show => show(context, client),
            Self::Approve(answer) => answer.give(context, client, "approve"),
            Self::Reject(answer) => answer.give(context, client, "reject"),
        }
    }
}

impl Test {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let policies = context.workspace.load_policies()?;
        let root = context.workspace.root();
        let paths = if self.files.is_empty() { shipped(root)? } else { self.files.clone() };
        let (mut passed, mut failed) = (0, 0);
        let mut reports = Vec::new();
        for path in &paths {
            for report in self.run_file(path, root, &policies)? {
                if report.passed() {
                    passed += 1;
                } else {
                    failed += 1;
                }
                reports.push(report);
            }
        }
        if context.printer.is_json() {
            let cases: Vec<Json> = reports.iter().map(Report::to_json).collect();
            context.printer.value(&json!({"passed": passed, "failed": failed, "cases": cases}));
        } else {
            for report in &reports {
                context.printer.line(&report.to_text());
            }
            let style = if failed == 0 { GREEN } else { RED };
            context.printer.line(&format!("\n{style}{passed} passed, {failed} failed{style:#}"));
        }
        if passed + failed == 0 {
            return Err(Failure::new("no case matches the filter"));
        }
        Ok(if failed == 0 { Exit::Done } else { Exit::Refused })
    }

    fn run_file(&self, path: &Path, root: &Path, policies: &PolicySet) -> Result<Vec<Report>, Failure> {
        let failure = |why: String| Failure(format!("{}: {why}", path.display()));
        let text = files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max)
            .map_err(|error| failure(plain(&error)))?;
        let read = |file: &str| {
            files::read_bounded(&root.join(file), limits::WORKSPACE_FILE.bytes_max)
                .map_err(|error| format!("{file}: {}", plain(&error)))
        };
        let suite = Suite::parse(&text, &read).map_err(failure)?;
        let wanted = |name: &str| self.filter.as_deref().is_none_or(|filter| name.contains(filter));
        suite
            .file
            .cases
            .iter()
            .filter(|case| wanted(&case.name))
            .map(|case| {
                let result = suite.run(case, policies, &read);
                let result = result.map_err(|why| failure(format!("case `{}`: {why}", case.name)))?;
                Ok(Report { name: case.name.clone(), expected: case.expect.clone(), result })
            })
            .collect()
    }
}

/// The case files of a workspace.
fn shipped(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let directory = root.join("policies/tests");
    let entries = fs::read_dir(&directory)
        .map_err(|error| Failure(format!("{}: {}; name a case file", directory.display(), plain(&error))))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    if paths.is_empty() {
        return Err(Failure(format!("{}: has no case files", directory.display())));
    }
    Ok(paths)
}

struct Report {
    name: String,
    expected: Expectation,
    result: CaseResult,
}

impl Report {
    fn passed(&self) -> bool {
        self.expected == self.result.found
    }

    fn to_json(&self) -> Json {
        let side = |side: &Expectation| json!({"decision": side.decision, "codes": side.codes});
        json!({
            "name": self.name,
            "passed": self.passed(),
            "expected": side(&self.expected),
            "found": side(&self.result.found),
            "reasons": self.result.reasons,
        })
    }

    /// One line for a case that passed; for one that failed, what was expected and what came instead.
    fn to_text(&self) -> String {
        if self.passed() {
            return format!("{GREEN}pass{GREEN:#}  {}", self.name);
        }
        let Expectation { decision, codes } = &self.result.found;
        let mut lines = vec![format!("{RED}FAIL{RED:#}  {}", self.name)];
        if *decision == self.expected.decision {
            lines.push(format!("        decision {decision}"));
        } else {
            lines.push(format!("      {RED}- decision {}{RED:#}", self.expected.decision));
            lines.push(format!("      {GREEN}+ decision {decision}{GREEN:#}"));
        }
        for code in self.expected.codes.union(codes) {
            lines.push(match (self.expected.codes.contains(code), codes.contains(code)) {
                (true, false) => format!("      {RED}- {code}{RED:#}"),
                (false, true) => format!("      {GREEN}+ {code}{GREEN:#}"),
                _ => format!("        {code}"),
            });
        }
        for reason in &self.result.reasons {
            lines.push(format!("        {DIM}{} at {}: {}{DIM:#}", reason.code, reason.path, reason.message));
        }
        lines.join("\n")
    }
}
