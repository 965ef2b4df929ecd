//! Rollback plans: structured ones (`*.json`) and documents (`*.md`).
//!
//! A structured plan is held to `docs/schemas/rollback-plan.schema.json`. A document must say what triggers a rollback
//! and how to revert: a heading with a word that begins with `trigger`, `gatilho` or `dispar`, another one with a word
//! that begins with `revert` or `revers`, and something below each. That is all that can be told of prose, and more than
//! that it exists.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::contract::{Compiled, Instance, embedded_schema};
use crate::json::printable;
use crate::limits;
use crate::policy::{ReferenceFault, ReferenceFile, References, Section};

/// The text of the schema of structured plans.
pub const ROLLBACK_PLAN_SCHEMA: &str = include_str!("../../docs/schemas/rollback-plan.schema.json");

/// How a word of a heading begins that says what triggers a rollback, in English and Portuguese.
const TRIGGER_STEMS: [&str; 3] = ["trigger", "gatilho", "dispar"];
/// How a word of a heading begins that says how to revert.
const REVERT_STEMS: [&str; 2] = ["revert", "revers"];

/// A rollback plan that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub plan_ref: String,
    pub form: PlanForm,
}

/// In which form it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanForm {
    Structured {
        triggers: Vec<PlanTrigger>,
        steps: Vec<PlanStep>,
        verification: Vec<String>,
    },
    /// Prose for people; the gateway's acts are those of every rollback.
    Document,
}

/// What calls for a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanTrigger {
    CriticalFailure,
    PolicyViolation,
    WrongRouting,
    CanaryFailure,
    Operator,
}

/// A step of a structured plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanStep {
    pub act: Act,
    pub who: Option<String>,
    pub description: Option<String>,
}

/// All that a plan can ask for. The gateway runs nobody's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    Demote,
    Block,
    Restore,
    Mark,
    Notify,
    Manual,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanFault {
    /// Neither the route nor the handoff of G3 names one.
    None,
    Reference {
        plan_ref: String,
        fault: ReferenceFault,
    },
    /// A structured plan that is not one.
    NotAPlan {
        plan_ref: String,
        why: String,
    },
    /// A document that does not say when.
    NoTrigger {
        plan_ref: String,
    },
    /// A document that does not say how.
    NoRevert {
        plan_ref: String,
    },
}

/// Reads the plan at a path of the workspace.
pub fn read_plan(references: &References, plan_ref: Option<&str>) -> Result<Plan, PlanFault> {
    let plan_ref = plan_ref.ok_or(PlanFault::None)?;
    match references.resolve(plan_ref) {
        Ok(file) => Plan::read(plan_ref, file),
        Err(fault) => Err(PlanFault::Reference { plan_ref: plan_ref.to_owned(), fault }),
    }
}

impl Plan {
    /// Reads a plan of what is kept of its file.
    pub fn read(plan_ref: &str, file: &ReferenceFile) -> Result<Self, PlanFault> {
        let plan_ref = plan_ref.to_owned();
        if let Some(text) = &file.json {
            return match structured(text) {
                Ok(form) => Ok(Self { plan_ref, form }),
                Err(why) => Err(PlanFault::NotAPlan { plan_ref, why }),
            };
        }
        let sections = file.outline.as_deref().unwrap_or_default();
        if !says(sections, &TRIGGER_STEMS) {
            Err(PlanFault::NoTrigger { plan_ref })
        } else if !says(sections, &REVERT_STEMS) {
            Err(PlanFault::NoRevert { plan_ref })
        } else {
            Ok(Self { plan_ref, form: PlanForm::Document })
        }
    }
}

impl Act {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Demote => "demote",
            Self::Block => "block",
            Self::Restore => "restore",
            Self::Mark => "mark",
            Self::Notify => "notify",
            Self::Manual => "manual",
        }
    }
}

impl PlanTrigger {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CriticalFailure => "critical-failure",
            Self::PolicyViolation => "policy-violation",
            Self::WrongRouting => "wrong-routing",
            Self::CanaryFailure => "canary-failure",
            Self::Operator => "operator",
        }
    }
}

fn structured(text: &[u8]) -> Result<PlanForm, String> {
    #[derive(Deserialize)]
    struct Written {
        triggers: Vec<WrittenTrigger>,
        steps: Vec<PlanStep>,
        verification: Vec<String>,
    }
    #[derive(Deserialize)]
    struct WrittenTrigger {
        when: PlanTrigger,
    }
    let document = crate::json::read(text, limits::WORKSPACE_FILE).map_err(|fault| fault.to_string())?;
    if let Some(finding) = schema().findings(Instance::Document(document.root())).into_iter().next() {
        let at = if finding.pointer.is_empty() { "/" } else { &finding.pointer };
        return Err(format!("{} at {}", finding.message, printable(at)));
    }
    let Written { triggers, steps, verification } =
        serde_json::from_value(document.root().to_json()).map_err(|error| error.to_string())?;
    Ok(PlanForm::Structured {
        triggers: triggers.into_iter().map(|trigger| trigger.when).collect(),
        steps,
        verification,
    })
}

fn schema() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| embedded_schema(ROLLBACK_PLAN_SCHEMA))
}

fn says(sections: &[Section], stems: &[&str]) -> bool {
    sections.iter().any(|section| {
        let heading = section.heading.to_lowercase();
        let mut words = heading.split(|c: char| !c.is_alphanumeric());
        section.has_text && words.any(|word| stems.iter().any(|stem| word.starts_with(stem)))
    })
}

impl PlanFault {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::None => {
                "give the route a `rollbackPlanRef`, or have the handoff of G3 name a `rollback.planRef`"
            }
            Self::Reference { .. } => "put the plan into the workspace, at the path that names it",
            Self::NotAPlan { .. } => {
                "see `docs/schemas/rollback-plan.schema.json` and `docs/examples/rollback-plan.json`"
            }
            Self::NoTrigger { .. } => {
                "add a section `## Triggers` (or `## Gatilhos`) that says what calls for a rollback"
            }
            Self::NoRevert { .. } => "add a section `## Revert` (or `## Reversão`) that says how to go back",
        }
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "the route has no rollback plan"),
            Self::Reference { plan_ref, fault } => {
                write!(f, "the rollback plan `{}` {fault}", printable(plan_ref))
            }
            Self::NotAPlan { plan_ref, why } => {
                write!(f, "the rollback plan `{}` cannot be used: {why}", printable(plan_ref))
            }
            Self::NoTrigger { plan_ref } => {
                write!(f, "the rollback plan `{}` does not say what triggers it", printable(plan_ref))
            }
            Self::NoRevert { plan_ref } => {
                write!(f, "the rollback plan `{}` does not say how to revert", printable(plan_ref))
            }
        }
    }
}
