//! The dry run of a rollback plan: the rollback is carried out on a copy of the route as if it were live.

use std::sync::Arc;

use super::canary::mode_allowed;
use super::plan::{Act, Plan, PlanForm, PlanTrigger};
use super::record::RouteRecord;
use super::rollback::{RollbackAsk, RollbackBy, RollbackPlan, RollbackStep, plan_rollback};
use super::stage::Stage;
use crate::contract::Mode;
use crate::json::printable;
use crate::wire::{Fact, Sender, StreamId};

/// What a dry run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    pub steps: Vec<DryStep>,
}

/// A step of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryStep {
    pub step: String,
    pub outcome: DryOutcome,
    /// Why it would be skipped or failed, or who does it.
    pub why: Option<String>,
}

/// What would come of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryOutcome {
    Done,
    Skipped,
    /// For people: it is shown, and nothing is done.
    ByHand,
    Failed,
}

impl DryRun {
    pub fn succeeded(&self) -> bool {
        self.steps.iter().all(|step| step.outcome != DryOutcome::Failed)
    }
}

impl DryOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::ByHand => "by_hand",
            Self::Failed => "failed",
        }
    }
}

/// Carries a plan out on a copy of the route, as if it were live, and shows what each step comes to.
///
/// It fails if the plan leaves out a trigger of the standard, does not demote, or if the route would still take live work
/// afterwards.
pub fn dry_run(record: &RouteRecord, plan: &Plan) -> DryRun {
    let mut copy = record.clone();
    Arc::make_mut(&mut copy.0).stage = Stage::Live;
    let mut run = DryRun { steps: Vec::new() };
    let blocks = match &plan.form {
        PlanForm::Structured { steps, .. } => steps.iter().any(|step| step.act == Act::Block),
        PlanForm::Document => false,
    };
    let ask = RollbackAsk {
        by: RollbackBy::Operator("dry run".to_owned()),
        block: Some(blocks),
        reason: "dry run".to_owned(),
        code: None,
        handoff_id: None,
    };
    let rollback = plan_rollback(&copy, &ask, &[]);
    match &plan.form {
        PlanForm::Document => {
            for taken in &rollback.steps {
                run.gateway(taken.step, &rollback);
            }
        }
        PlanForm::Structured { triggers, steps, .. } => {
            for needed in
                [PlanTrigger::CriticalFailure, PlanTrigger::PolicyViolation, PlanTrigger::WrongRouting]
            {
                if !triggers.contains(&needed) {
                    run.failed("triggers", format!("`{}` is not among them", needed.as_str()));
                }
            }
            for step in steps {
                match step.act {
                    Act::Demote => run.gateway(RollbackStep::Demote, &rollback),
                    Act::Block => run.gateway(RollbackStep::Block, &rollback),
                    Act::Restore => run.gateway(RollbackStep::Restore, &rollback),
                    Act::Mark => run.gateway(RollbackStep::Mark, &rollback),
                    Act::Notify | Act::Manual => {
                        let who = step.who.as_deref().map(printable);
                        run.push(step.act.as_str(), DryOutcome::ByHand, who);
                    }
                }
            }
            if !steps.iter().any(|step| step.act == Act::Demote) {
                run.failed("demote", "the plan does not demote the route".to_owned());
            }
        }
    }
    rehearse(&mut copy, &rollback);
    if mode_allowed(&copy, Mode::Live).is_ok() || copy.epoch != rollback.epoch || copy.stage != rollback.to {
        run.failed("verify", "the route would still take live work".to_owned());
    } else {
        run.push("verify", DryOutcome::Done, None);
    }
    run
}

/// Lets the copy take what the rollback would write.
fn rehearse(copy: &mut RouteRecord, rollback: &RollbackPlan) {
    let Some(at) = copy.declared.as_ref().map(|declared| declared.at) else { return };
    for event in rollback.events() {
        let payload = event.payload();
        copy.take(&Fact {
            kind: event.kind(),
            sender: Sender::System,
            stream: StreamId::Route { route_key: "dry run" },
            sequence: u64::MAX,
            at,
            payload: &payload,
        });
    }
}

impl DryRun {
    fn gateway(&mut self, step: RollbackStep, rollback: &RollbackPlan) {
        let why = rollback.steps.iter().find(|taken| taken.step == step).and_then(|taken| taken.why.clone());
        let outcome = if why.is_some() { DryOutcome::Skipped } else { DryOutcome::Done };
        self.push(step.as_str(), outcome, why);
    }

    fn failed(&mut self, step: &str, why: String) {
        self.push(step, DryOutcome::Failed, Some(why));
    }

    fn push(&mut self, step: &str, outcome: DryOutcome, why: Option<String>) {
        self.steps.push(DryStep { step: step.to_owned(), outcome, why });
    }
}
