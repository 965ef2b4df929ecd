//! A route: its stage, the gates it has passed, its canary, and what a rollback does to it.

use serde_json::Value as Json;

use handoffd::timestamp::Timestamp;

use crate::gates::reaches;

#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Route {
    /// As it counts; nothing if the table does not have it.
    pub(crate) declared: Option<Json>,
    previous: Option<Json>,
    /// What a rollback brought back, over the table's.
    pub(crate) pinned: Option<Json>,
    pub(crate) stage: usize,
    /// Gates passed, from G0 on.
    pub(crate) passed: usize,
    pub(crate) canary: Option<Canary>,
    pub(crate) blocked: bool,
    /// How often it has become another route, for which nothing counts that was before.
    pub(crate) remade: usize,
    /// What it was last, each time that it became another one.
    pub(crate) former: Vec<Json>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Canary {
    pub(crate) done: u64,
    pub(crate) holder: Option<(String, Timestamp)>,
}

pub(crate) const STAGES: [&str; 3] = ["dev", "simulated", "live"];
pub(crate) const CANARY_OF: u64 = 2;

/// How live work ended.
pub(crate) enum End<'e> {
    Completed,
    Failed {
        code: &'e str,
        critical: bool,
    },
    /// By its source.
    Cancelled {
        begun: bool,
    },
    Silent,
}

fn declared_stage(definition: &Json) -> usize {
    usize::from(definition["stage"] == "simulated")
}

/// What the gates have tried: with another one of these they have all to be passed again.
fn tried(definition: &Json) -> [&Json; 3] {
    ["capability", "primaryAgentId", "profile"].map(|name| &definition[name])
}

impl Route {
    /// The table was loaded, or a pin was lifted.
    pub(crate) fn declare(&mut self, table: Option<&Json>) {
        let Some(table) = table else {
            if let Some(last) = self.declared.take() {
                self.set_back(last.clone());
                if self.pinned.is_none() {
                    self.previous = Some(last);
                }
            }
            return;
        };
        let definition = self.pinned.clone().unwrap_or_else(|| table.clone());
        if self.declared.as_ref() == Some(&definition) {
            return;
        }
        match self.declared.clone() {
            None => {
                self.stage = declared_stage(&definition);
                if self.previous.as_ref() == Some(&definition) {
                    self.previous = None;
                }
            }
            Some(before) => self.redefine(before, &definition),
        }
        self.declared = Some(definition);
        self.settle();
    }

    fn redefine(&mut self, before: Json, definition: &Json) {
        if tried(&before) != tried(definition) {
            self.set_back(before.clone());
        } else if declared_stage(definition) > declared_stage(&before) && self.pinned.is_none() {
            self.stage = self.stage.max(1);
        }
        if self.pinned.is_none() {
            self.previous = Some(before);
        }
    }

    fn set_back(&mut self, was: Json) {
        self.former.push(was);
        (self.stage, self.passed, self.canary) = (0, 0, None);
        self.remade += 1;
    }

    /// Simulated work needs G1, or a route that is declared for it.
    fn settle(&mut self) {
        let declared = self.declared.as_ref().map_or(0, declared_stage);
        if self.stage == 1 && declared == 0 && self.passed < 2 {
            self.stage = 0;
        }
    }

    /// A gate was passed, and recorded.
    pub(crate) fn pass(&mut self, gate: usize) {
        self.passed = gate + 1;
        if gate == 1 && self.stage == 0 {
            self.stage = 1;
        }
        if gate == 4 {
            (self.stage, self.canary) = (2, Some(Canary { done: 0, holder: None }));
        }
        self.settle();
    }

    pub(crate) fn roll_back(&mut self, block: bool) {
        self.stage = self.stage.min(1);
        self.canary = None;
        self.blocked |= block;
        self.passed = self.passed.min(3);
        if self.pinned.is_none()
            && let (Some(current), Some(restored)) = (self.declared.clone(), self.previous.clone())
        {
            self.previous = None;
            self.pinned = Some(restored.clone());
            if tried(&current) != tried(&restored) {
                self.set_back(current);
            }
            self.declared = Some(restored);
        }
        self.settle();
    }

    /// Has it come far enough for work of this mode?
    pub(crate) fn reaches(&self, mode: &str) -> bool {
        let needed = STAGES.iter().position(|stage| *stage == mode).unwrap();
        self.stage >= needed && (needed < 2 || self.passed == 5)
    }

    /// Why it does not take work of this mode, as far as that can be read.
    pub(crate) fn refuses(&self, mode: Option<&str>) -> Vec<&'static str> {
        let mut codes = Vec::new();
        if self.blocked {
            codes.push("A2A_ROUTE_BLOCKED");
        }
        let Some(mode) = mode else { return codes };
        let taken = self.canary.as_ref().is_some_and(|canary| canary.holder.is_some());
        if !self.reaches(mode) {
            codes.push("POLICY_STAGE_NOT_REACHED");
        } else if mode == "live" && taken {
            codes.push("POLICY_CANARY_FULL");
        }
        codes
    }

    /// Live work ended. True if the route must be rolled back for it.
    pub(crate) fn landed(&mut self, handoff_id: &str, claimer: Option<&str>, end: &End<'_>) -> bool {
        let in_canary = self.canary.is_some();
        let stranger =
            claimer.is_some_and(|agent| !self.declared.as_ref().is_some_and(|route| reaches(route, agent)));
        let calls = self.stage == 2
            && match end {
                End::Cancelled { begun } => *begun && in_canary,
                _ if stranger => true,
                End::Completed => false,
                End::Failed { code, critical } => {
                    *critical
                        || in_canary
                        || code.starts_with("POLICY_")
                        || code.starts_with("EXECUTION_SCHEMA_")
                }
                End::Silent => in_canary,
            };
        if let Some(canary) = &mut self.canary
            && canary.holder.as_ref().is_some_and(|(holder, _)| holder == handoff_id)
        {
            canary.holder = None;
            match end {
                End::Completed => canary.done += 1,
                End::Failed { .. } | End::Silent | End::Cancelled { begun: true } => canary.done = 0,
                End::Cancelled { begun: false } => {}
            }
            if canary.done >= CANARY_OF {
                self.canary = None;
            }
        }
        calls
    }
}
