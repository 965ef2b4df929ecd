//! What becomes of a handoff once it was decided: what people answer, what agents report, and what ends by itself.

use super::*;

/// What an agent says of its work.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Claimed,
    Started,
    Artifact,
    Blocked,
    Completed,
    Failed { code: &'static str, critical: bool },
    Cancelled,
}

/// Who may do it: the target and whoever its route names, or in somebody's name those whom that person signed for, under
/// any of the names that the route has for them.
fn doers(known: &Known, route: Option<&Json>, spec: &Json) -> BTreeSet<String> {
    let target = known.target.iter().cloned();
    if is_delegated(spec) == Some(true) {
        let fallback = field(spec, "routing.fallbackAgentId").text().map(str::to_owned);
        target.chain(fallback).flat_map(|id| names(route.into_iter(), &id)).collect()
    } else {
        target.chain(route.into_iter().flat_map(agents)).collect()
    }
}

impl Model {
    /// Somebody answers what waits. Nobody is no person.
    pub(crate) fn answer(
        &mut self,
        handoff_id: &str,
        yes: bool,
        by: Option<&Human>,
        spec: &Json,
        now: Timestamp,
    ) -> Settled {
        let Some(waiting) = self.waiting.get(handoff_id).cloned() else {
            return Settled::Refused("APPROVAL_NOT_WAITING");
        };
        let Some(by) = by else { return Settled::Refused("APPROVAL_NOT_HUMAN") };
        if self.is_over(&waiting, now) {
            return Settled::Refused("APPROVAL_EXPIRED");
        }
        if !yes {
            return Settled::Decided(self.end_waiting(handoff_id, "POLICY_APPROVAL_REJECTED"));
        }
        let known = self.handoffs[handoff_id].clone();
        let asked = known.accepted.clone().unwrap();
        let principal = field(&asked.spec, "authorship.envelope.principal.id").text().map(str::to_owned);
        let declared = || self.routes.values().filter_map(|route| route.declared.as_ref());
        // Who hands it over, and whoever may do it.
        let mut ends = doers(&known, self.routes[&asked.route].declared.as_ref(), &asked.spec);
        ends.extend(known.source.clone());
        let ends = ends.iter().flat_map(|end| names(declared(), end));
        if ends.chain(principal).any(|id| by.goes_by(&id)) {
            return Settled::Refused("APPROVAL_OWN");
        }
        if waiting.yes.iter().any(|other| other.is(by)) {
            return Settled::Refused("APPROVAL_TWICE");
        }
        if *spec != asked.spec {
            return Settled::OtherTaskSpec;
        }
        let rules = self.rules();
        let verdict = judge(spec, &rules, &Submitter::Agent(known.source.unwrap()), now);
        let mut codes = verdict.codes.clone();
        let (cover, people) = self.moving(spec, &verdict, &rules, now, &mut codes);
        let passing = ["POLICY_FROZEN", "POLICY_CANARY_FULL"];
        if !codes.is_empty() && codes.iter().all(|code| passing.contains(code)) {
            return Settled::Held(codes);
        }
        let mut waiting = waiting;
        waiting.needed = waiting.needed.max(people);
        waiting.yes.push(by.clone());
        if codes.is_empty() && waiting.yes.len() < waiting.needed {
            let pass = Pass::Waits(waiting.until);
            self.waiting.insert(handoff_id.to_owned(), waiting);
            let (decision, attempt) = ("needs_approval", asked.attempt);
            return Settled::Decided(Answer { decision, codes, attempt, replayed: false, pass });
        }
        self.waiting.remove(handoff_id);
        let decision = decide(&codes, 0);
        let accepted = self.handoffs.get_mut(handoff_id).unwrap().accepted.as_mut().unwrap();
        (accepted.decision, accepted.codes) = (decision, codes.clone());
        accepted.state = if decision == "allowed" { State::Available } else { State::Over };
        (accepted.touched, accepted.remade) = (now, self.routes[&asked.route].remade);
        let mut pass = Pass::None;
        if decision == "allowed" {
            pass = Pass::Dispatch(self.until(&verdict, spec));
            self.goes_out(handoff_id, &asked.route, &asked.mode, cover.as_deref(), now);
        }
        Settled::Decided(Answer { decision, codes, attempt: asked.attempt, replayed: false, pass })
    }

    fn is_over(&self, waiting: &Waiting, now: Timestamp) -> bool {
        waiting.until <= now || self.epoch.is_some_and(|since| waiting.asked < since)
    }

    fn end_waiting(&mut self, handoff_id: &str, code: &'static str) -> Answer {
        self.waiting.remove(handoff_id);
        let accepted = self.handoffs.get_mut(handoff_id).unwrap().accepted.as_mut().unwrap();
        let codes = BTreeSet::from([code]);
        let decision = decide(&codes, 0);
        (accepted.decision, accepted.codes, accepted.state) = (decision, codes.clone(), State::Over);
        Answer { decision, codes, attempt: accepted.attempt, replayed: false, pass: Pass::None }
    }

    /// Time has passed: who waited for too long, who holds the canary's slot for too long, whose lease has ended.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        let over: Vec<String> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| self.is_over(waiting, now))
            .map(|(handoff_id, _)| handoff_id.clone())
            .collect();
        for handoff_id in over {
            self.end_waiting(&handoff_id, "POLICY_APPROVAL_EXPIRED");
        }
        let silent: Vec<String> = self
            .routes
            .values()
            .filter_map(|route| route.canary.as_ref()?.holder.as_ref())
            .filter(|(_, since)| since.plus_seconds(WAIT_S) <= now)
            .map(|(holder, _)| holder.clone())
            .collect();
        for handoff_id in silent {
            self.ends(&handoff_id, &End::Silent);
        }
        for accepted in self.handoffs.values_mut().filter_map(|known| known.accepted.as_mut()) {
            let held = matches!(accepted.state, State::Claimed | State::Working | State::Blocked);
            let live = accepted.mode == "live";
            if !held
                || accepted.touched.plus_seconds(WAIT_S) > now
                || (live && accepted.state == State::Blocked)
            {
                continue;
            }
            accepted.touched = now;
            if live {
                accepted.state = State::Blocked;
            } else {
                (accepted.state, accepted.claimer) = (State::Available, None);
            }
        }
    }

    fn ends(&mut self, handoff_id: &str, end: &End<'_>) {
        let accepted = self.handoffs.get_mut(handoff_id).unwrap().accepted.as_mut().unwrap();
        accepted.state = State::Over;
        self.waiting.remove(handoff_id);
        let (route, claimer) = (accepted.route.clone(), accepted.claimer.clone());
        let record = self.routes.get_mut(&route).unwrap();
        if accepted.mode == "live" && record.landed(handoff_id, claimer.as_deref(), end) {
            self.roll_back(&route, true);
        }
    }

    /// An agent reports. False if that is not taken in.
    pub(crate) fn report(
        &mut self,
        handoff_id: &str,
        agent: &str,
        as_source: bool,
        what: &Said,
        now: Timestamp,
    ) -> bool {
        // The source takes back, whoever works reports; a token is for one of the two.
        if as_source != matches!(what, Said::Cancelled) {
            return false;
        }
        let rules = self.rules();
        let Some(known) = self.handoffs.get(handoff_id) else { return false };
        let Some(accepted) = known.accepted.clone() else { return false };
        let halted = self.is_frozen(Some(&accepted.route), Some(&accepted.mode))
            || self.routes.get(&accepted.route).is_some_and(|route| route.blocked);
        let record = &self.routes[&accepted.route];
        // Live work is for those whom the gates have tried, not for whoever is on the route by now.
        let untried = accepted.mode == "live" && record.remade != accepted.remade;
        let route = match untried {
            true => Some(&record.former[accepted.remade]),
            false => rules.routes.get(&accepted.route),
        };
        let may_claim = if untried && is_delegated(&accepted.spec) != Some(true) {
            known.target.iter().any(|target| names(route.into_iter(), target).contains(agent))
        } else {
            doers(known, route, &accepted.spec).contains(agent)
        };
        let reports = accepted.claimer.as_deref() == Some(agent);
        use State::{Available, Blocked, Claimed, Over, Working};
        let state = accepted.state;
        let (may, next) = match what {
            Said::Claimed => (may_claim && state == Available && !halted, Claimed),
            Said::Started => (reports && matches!(state, Claimed | Blocked) && !halted, Working),
            Said::Artifact => (reports && state == Working && !halted, Working),
            Said::Blocked => (reports && matches!(state, Claimed | Working) && !halted, Blocked),
            Said::Completed => (reports && state == Working && !halted, Over),
            Said::Failed { .. } => (reports && matches!(state, Claimed | Working | Blocked) && !halted, Over),
            Said::Cancelled => (known.source.as_deref() == Some(agent) && state != Over, Over),
        };
        if !may {
            return false;
        }
        let accepted_by = accepted.claimer.clone();
        let accepted = self.handoffs.get_mut(handoff_id).unwrap().accepted.as_mut().unwrap();
        (accepted.state, accepted.touched) = (next, now);
        match what {
            Said::Claimed => accepted.claimer = Some(agent.to_owned()),
            Said::Completed => self.ends(handoff_id, &End::Completed),
            Said::Failed { code, critical } => {
                self.ends(handoff_id, &End::Failed { code, critical: *critical })
            }
            Said::Cancelled => self.ends(handoff_id, &End::Cancelled { begun: accepted_by.is_some() }),
            _ => {}
        }
        true
    }
}
