//! What people do in a history: they answer, grant, freeze, move phases, promote routes and take them back.

use super::*;

impl Both {
    pub(super) fn answer(&mut self) {
        let waiting: Vec<String> = self.model.waiting.keys().cloned().collect();
        let Some(handoff_id) = (!waiting.is_empty()).then(|| self.chance.one(&waiting).clone()) else {
            return;
        };
        let mut spec = self.model.handoffs[&handoff_id].accepted.as_ref().unwrap().spec.clone();
        if self.chance.percent(8) {
            spec["intent"]["input"]["amount"] = json!(999);
        }
        let yes = self.chance.percent(85);
        let by = self.chance.one(&PEOPLE).clone();
        let human = !self.chance.percent(6);
        let ask = ApprovalAsk {
            answer: if yes { Said_::Approve } else { Said_::Reject },
            reason: "seen".to_owned(),
        };
        let text = String::from_utf8(crate::gates::canonical(&spec)).unwrap();
        let asking = if human { asking(&by) } else { Asking::token("admin") };
        self.note(format!("answer {handoff_id}: {yes} by {by:?}, human {human}"));
        let now = self.now();
        let answering = Answering { handoff_id: handoff_id.clone(), ask, task_spec: text.into(), by: asking };
        let found = match self.engine.answer(answering).unwrap() {
            Ok(decided) => Settled::Decided(said(&decided)),
            Err(Unanswered::Fault(fault)) => Settled::Refused(fault.code()),
            Err(Unanswered::Held(reasons)) => {
                Settled::Held(reasons.iter().map(|reason| reason.code.as_str()).collect())
            }
            Err(Unanswered::OtherTaskSpec) => Settled::OtherTaskSpec,
        };
        let expected = self.model.answer(&handoff_id, yes, human.then_some(&by), &spec, now);
        self.model.tick(now);
        if let Settled::Decided(answer) = &found {
            *self
                .tally
                .entry(match answer.decision {
                    "allowed" => "approved",
                    _ => "not approved",
                })
                .or_default() += 1;
        }
        self.same(found, expected);
    }

    pub(super) fn grant(&mut self) {
        let some = |chance: &mut Chance, all: &[&str]| -> Vec<String> {
            let mut names: Vec<String> =
                all.iter().filter(|_| chance.percent(75)).map(|&name| name.to_owned()).collect();
            if names.is_empty() {
                names.push(all[0].to_owned());
            }
            names
        };
        let chance = &mut self.chance;
        let by = chance.one(&PEOPLE).clone();
        let terms = Terms {
            agents: some(chance, &["worker", "worker-dr", "helper", "hand"]),
            channels: if chance.percent(30) { some(chance, &town::CHANNELS) } else { Vec::new() },
            expires_at: self.clock.read().plus_seconds(*chance.one(&[60, 600, 6_000])),
            intent_hash: chance.percent(5).then(|| Digest::of(b"another")),
            modes: some(chance, &["live", "simulated", "dev"])
                .iter()
                .map(|word| Mode::from_word(word).unwrap())
                .collect(),
            operations: some(chance, &town::OPERATIONS),
            principal: (*chance.one(&town::PRINCIPALS)).to_owned(),
            route_key: chance.percent(20).then(|| (*chance.one(&town::ROUTES)).to_owned()),
            uses: u32::try_from(1 + chance.below(3)).unwrap(),
        };
        let now = self.now();
        self.note(format!("grant by {by:?}: {terms:?}"));
        let made = self.engine.grant(terms.clone(), asking(&by)).unwrap();
        let own = by.name == terms.principal
            || by.principal == Some(terms.principal.as_str())
            || terms.agents.iter().any(|agent| by.goes_by(agent));
        self.same(made.is_err(), own);
        if let Ok(made) = made {
            let grant = Grant {
                principal: terms.principal,
                agents: terms.agents,
                operations: terms.operations,
                modes: terms.modes.iter().map(|mode| mode.as_str().to_owned()).collect(),
                channels: terms.channels,
                route: terms.route_key,
                intent: terms.intent_hash.map(|hash| hash.to_string()),
                expires: terms.expires_at,
                uses: terms.uses,
                made_by: by.clone(),
                made_at: now,
                revoked: false,
            };
            self.model.grants.insert(made.held.grant.authorization_ref.to_string(), grant);
        }
        self.model.tick(now);
    }

    pub(super) fn revoke(&mut self) {
        let names: Vec<String> = self.model.grants.keys().cloned().collect();
        let Some(name) = (!names.is_empty()).then(|| self.chance.one(&names).clone()) else { return };
        self.note(format!("revoke {name}"));
        let found = self.engine.revoke_grant(name.clone(), None, rita()).unwrap().is_ok();
        let grant = self.model.grants.get_mut(&name).unwrap();
        let expected = !std::mem::replace(&mut grant.revoked, true);
        self.same(found, expected);
    }

    pub(super) fn freeze(&mut self) {
        let scope = match self.chance.below(5) {
            0 => FreezeScope::ALL,
            1 | 2 => FreezeScope::mode(*self.chance.one(&[Mode::Dev, Mode::Simulated, Mode::Live])),
            _ => {
                let key = self.chance.one(&town::ROUTES);
                FreezeScope::route(key)
            }
        };
        let named = (scope.route_key.clone(), scope.mode.map(|mode| mode.as_str().to_owned()));
        self.note(format!("freeze {named:?}"));
        let ask = FreezeAsk { scope, reason: "stop".to_owned() };
        let found = self.engine.freeze(ask, rita()).unwrap().held_before;
        let expected = !self.model.freezes.insert(named);
        self.same(found, expected);
    }

    pub(super) fn unfreeze(&mut self) {
        let all: Vec<_> = self.model.freezes.iter().cloned().collect();
        let Some((route_key, mode)) = (!all.is_empty()).then(|| self.chance.one(&all).clone()) else {
            return;
        };
        self.note(format!("unfreeze {route_key:?} {mode:?}"));
        let scope = FreezeScope {
            route_key: route_key.clone(),
            mode: mode.as_deref().map(|word| Mode::from_word(word).unwrap()),
        };
        assert!(self.engine.unfreeze(FreezeAsk { scope, reason: "on".to_owned() }, rita()).unwrap().is_ok());
        self.model.freezes.remove(&(route_key, mode));
    }

    pub(super) fn phase(&mut self) {
        let up = (self.model.phase + 1).min(2);
        let to = if self.chance.percent(75) { up } else { self.chance.below(3) };
        self.note(format!("phase {to}"));
        let ask = PhaseAsk { phase: Phase::ALL[to], reason: "on".to_owned() };
        let found = self.engine.move_phase(ask, rita()).unwrap().is_ok();
        let expected = to < self.model.phase || to == self.model.phase + 1;
        if expected {
            self.model.phase = to;
        }
        self.same(found, expected);
    }

    /// Has a route pass its next gate, with findings that could not be better.
    pub(super) fn promote(&mut self, key: &str) {
        let Some(record) = self.engine.route(key) else { return };
        let next = self.model.routes[key].passed;
        let head = self.engine.head();
        let decision =
            ContractDecision { handoff_id: "hs_contract".into(), sequence: head + 1, codes: Vec::new() };
        let answered = || Probe::Answered { status: 200 };
        let probes = Probes { primary: answered(), fallback: answered() };
        let outcome = |n: u64| SimulatedOutcome {
            handoff_id: format!("hs_simulated_{n}"),
            accepted: head + n,
            ended: head + n,
            end: SimulatedEnd::Completed { side_effects: Vec::new() },
        };
        let outcomes = [outcome(1), outcome(2), outcome(3)];
        let decisions = [decision];
        let plan = read_plan(self.files.references(), record.plan_ref());
        let mut runs = Vec::new();
        let mut record = record;
        // Somebody who is no agent of the route vouches for it and lets it go live; now and then an agent tries.
        let tries = next >= 3 && self.chance.percent(12);
        let by = if tries { self.chance.one(&PEOPLE[4..]).clone() } else { PEOPLE[0].clone() };
        let files = self.engine.policies_over(&self.files);
        let mut own = agents(self.model.routes[key].declared.as_ref().unwrap_or(&Json::Null));
        if next == 3 {
            own.extend(["router", "worker"].map(str::to_owned));
            let attached = Attached { run_id: Some("run-1".into()), ..Attached::default() };
            let principal = by.principal.map(str::to_owned);
            let evidence = ("hs_e2e_0001".to_owned(), attached, Voucher { principal, ..Voucher::default() });
            self.engine.attach_evidence(key.to_owned(), evidence, asking(&by)).unwrap().unwrap();
            record = self.engine.route(key).unwrap();
            runs.push(E2eHandoff {
                handoff_id: "hs_e2e_0001".into(),
                mode: Some(Mode::Simulated),
                completed: Some(self.engine.head()),
                source_agent: "router".into(),
                target_agent: "worker".into(),
                claimed_by: Some("worker".into()),
                e2e_actor: "human".into(),
                plan_ref: None,
            });
        }
        let findings = match next {
            0 => Findings::Contract(&decisions),
            1 => Findings::Routing(&probes),
            2 => Findings::Simulation(Simulation { needed: 3, outcomes: &outcomes }),
            3 => Findings::E2e { handoffs: &runs, names: files.names() },
            _ => {
                let operator = Some(Operator { name: by.name, principal: by.principal });
                Findings::Live { operator, names: files.names(), plan: &plan }
            }
        };
        let Ok(answer) = evaluate(&record, &findings) else { return };
        self.note(format!("promote {key}: gate {next} by {by:?}"));
        let rules = self.model.rules();
        let is_own = |agent: &String| names(rules.routes.values(), agent).iter().any(|name| by.goes_by(name));
        let expected = next < 3 || !own.iter().any(is_own);
        self.same(answer.outcome.passed, expected);
        if !expected {
            *self.tally.entry("gates withheld from agents").or_default() += 1;
            return;
        }
        self.engine.decide_gate(key.to_owned(), answer, self.engine.head(), asking(&by)).unwrap().unwrap();
        self.model.routes.get_mut(key).unwrap().pass(next);
        *self.tally.entry("gates passed").or_default() += 1;
    }

    pub(super) fn roll_back(&mut self) {
        let key = *self.chance.one(&town::ROUTES);
        let block = self.chance.percent(50);
        if self.engine.route(key).is_none() {
            return;
        }
        self.note(format!("roll back {key}, block {block}"));
        let ask = RollbackAsk {
            by: RollbackBy::Operator("rita".to_owned()),
            block: Some(block),
            reason: "back".to_owned(),
            code: None,
            handoff_id: None,
        };
        self.engine.roll_back(key.to_owned(), ask, false, rita()).unwrap().unwrap();
        self.model.roll_back(key, block);
        *self.tally.entry("rollbacks").or_default() += 1;
    }

    pub(super) fn lift(&mut self, key: &str) {
        if self.engine.route(key).is_none() {
            return;
        }
        self.note(format!("lift {key}"));
        let found = self.engine.lift(key.to_owned(), Lift::Both, "on".to_owned(), rita()).unwrap().is_ok();
        let expected = self.model.lift(key);
        self.same(found, expected);
    }
}
