//! What people do over HTTP: in whose name, what the body says, and waiting until the ledger has it.

use super::call::Call;
use super::endpoint::LOOK_FIRST;
use super::problem::{Kind, Problem};
use crate::callers::{Caller, Role};
use crate::contract::Finding;
use crate::engine::{Asking, EngineFault};
use crate::gates::Reason;
use crate::json::{Document, read};
use crate::limits;
use serde_json::{Value as Json, json};

impl Call {
    /// In whose name the caller acts.
    pub(super) fn asking(&self) -> Result<Asking, Problem> {
        self.caller().map(asking)
    }

    /// Reads the body of an act into its type, or says everything that is wrong with it.
    pub(super) async fn act<T>(
        &mut self,
        ask: impl FnOnce(&Document<'_>) -> Result<T, Vec<Finding>>,
    ) -> Result<T, Problem> {
        let bytes = self.json_body().await?;
        let document = read(&bytes, limits::ACT).map_err(|fault| Problem::from(&fault))?;
        ask(&document).map_err(|findings| invalid(&findings))
    }
}

/// Who acts, as the ledger knows them: an operator is a person, nobody else is.
pub(super) fn asking(caller: &Caller) -> Asking {
    let name = caller.name().as_str();
    match caller.role() {
        Role::Operator => Asking::person_of(name, caller.standing().principal()),
        Role::Harness => Asking::harness(name),
        Role::Orchestrator | Role::Agent | Role::Auditor | Role::Admin => Asking::token(name),
    }
}

/// The first thing that is wrong as the problem, and all of them in `faults`.
pub(super) fn invalid(findings: &[Finding]) -> Problem {
    let all: Vec<Json> = findings
        .iter()
        .map(|finding| json!({"pointer": finding.pointer, "message": finding.message, "hint": finding.hint}))
        .collect();
    let problem = match findings.first() {
        None => return Problem::new(Kind::ActInvalid, "the body is not valid"),
        Some(first) => {
            let problem = Problem::new(Kind::ActInvalid, &first.message).at(&first.pointer);
            match &first.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        }
    };
    problem.with("faults", all)
}

/// Asks the engine, off the threads that serve: it answers when what was done is durable.
pub(super) async fn done<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, EngineFault> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(act).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fault)) => Err(Problem::from(fault).hint(LOOK_FIRST)),
        Err(_) => Err(Problem::new(Kind::NotDurable, "the act could not be done").hint(LOOK_FIRST)),
    }
}

/// Reasons as a Decision shows them.
pub(super) fn reasons_to_json(reasons: &[Reason]) -> Json {
    serde_json::to_value(reasons).unwrap_or_default()
}
