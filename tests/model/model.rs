//! The gateway in the plainest way: maps of what was claimed and said, and one decision after the other.

use std::collections::{BTreeMap, BTreeSet};

use handoffd::timestamp::Timestamp;
use serde_json::Value as Json;

use crate::gates::{
    Rules, Submitter, Verdict, Yes, agents, content, is_grave, judge, mention, names, sha256,
};
use crate::routes::{Canary, End, Route};
use crate::shape::{field, is_delegated};

mod life;

pub(crate) use life::Said;

pub(crate) const TOPIC: &str = "gw_model";
/// How long somebody may be silent: whoever is asked, whoever works, whoever holds the canary.
const WAIT_S: i64 = 900;

/// What somebody is told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Answer {
    pub(crate) decision: &'static str,
    pub(crate) codes: BTreeSet<&'static str>,
    pub(crate) attempt: u32,
    pub(crate) replayed: bool,
    pub(crate) pass: Pass,
}

/// What may be done with it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Pass {
    None,
    Dispatch(Option<Timestamp>),
    Withheld,
    Waits(Timestamp),
}

/// What somebody's answer to a handoff that waits comes to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Settled {
    Decided(Answer),
    Refused(&'static str),
    Held(BTreeSet<&'static str>),
    OtherTaskSpec,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Human {
    pub(crate) name: &'static str,
    pub(crate) principal: Option<&'static str>,
}

impl Human {
    pub(crate) fn goes_by(&self, id: &str) -> bool {
        self.name == id || self.principal == Some(id)
    }

    fn is(&self, other: &Self) -> bool {
        self.goes_by(other.name) || other.principal.is_some_and(|id| self.goes_by(id))
    }
}

#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) principal: String,
    pub(crate) agents: Vec<String>,
    pub(crate) operations: Vec<String>,
    pub(crate) modes: Vec<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) route: Option<String>,
    pub(crate) intent: Option<String>,
    pub(crate) expires: Timestamp,
    pub(crate) uses: u32,
    pub(crate) made_by: Human,
    pub(crate) made_at: Timestamp,
    pub(crate) revoked: bool,
}

/// What is known of a handoffId.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) source: Option<String>,
    pub(crate) cycle: String,
    pub(crate) target: Option<String>,
    parent: Option<String>,
    attempts: u32,
    pub(crate) accepted: Option<Accepted>,
}

#[derive(Clone)]
pub(crate) struct Accepted {
    decision: &'static str,
    codes: BTreeSet<&'static str>,
    pub(crate) attempt: u32,
    pub(crate) spec: Json,
    route: String,
    mode: String,
    pub(crate) state: State,
    pub(crate) claimer: Option<String>,
    touched: Timestamp,
    /// Which route it was decided for, of those that its route has been.
    remade: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum State {
    Waiting,
    Available,
    Claimed,
    Working,
    Blocked,
    Over,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Waiting {
    needed: usize,
    yes: Vec<Human>,
    asked: Timestamp,
    pub(crate) until: Timestamp,
}

#[derive(Clone, Default)]
pub(crate) struct Model {
    /// As the files have it.
    pub(crate) files: Rules,
    pub(crate) routes: BTreeMap<String, Route>,
    pub(crate) handoffs: BTreeMap<String, Known>,
    keys: BTreeMap<(String, String), (Vec<u8>, String)>,
    messages: BTreeSet<String>,
    cycles: BTreeMap<String, u32>,
    pub(crate) grants: BTreeMap<String, Grant>,
    pub(crate) waiting: BTreeMap<String, Waiting>,
    /// Everything, a mode, or a route.
    pub(crate) freezes: BTreeSet<(Option<String>, Option<String>)>,
    /// log-only, gated-read, gated-live.
    pub(crate) phase: usize,
    /// Candidates, would-allow, loops, duplicates, expired.
    pub(crate) counters: [u64; 5],
    shadows: BTreeMap<String, Vec<u8>>,
    pub(crate) epoch: Option<Timestamp>,
}

const EXPIRIES: [&str; 4] = [
    "POLICY_ENVELOPE_EXPIRED",
    "POLICY_MENTION_EXPIRED",
    "POLICY_AUTHORIZATION_EXPIRED",
    "POLICY_APPROVAL_EXPIRED",
];

/// The codes of D1 to D4, but for those that say that nothing is proven.
const VIOLATIONS: [&str; 28] = [
    "POLICY_REF_UNKNOWN",
    "POLICY_PRINCIPAL_DENIED",
    "POLICY_ALLOWLIST_EXCEEDED",
    "POLICY_AGENT_DENIED",
    "POLICY_CHANNEL_DENIED",
    "POLICY_TASK_DENIED",
    "POLICY_SCOPE_EXCEEDED",
    "POLICY_DELEGATE_MISMATCH",
    "POLICY_ENVELOPE_NOT_YET_VALID",
    "POLICY_ENVELOPE_EXPIRED",
    "POLICY_ENVELOPE_TTL_TOO_LONG",
    "POLICY_BINDING_MISMATCH",
    "POLICY_AUDIT_MISMATCH",
    "POLICY_RISK_UNDERSTATED",
    "POLICY_CONFIRMATION_REQUIRED",
    "POLICY_AUTHORIZATION_MISSING",
    "POLICY_AUTHORIZATION_UNKNOWN",
    "POLICY_AUTHORIZATION_EXPIRED",
    "POLICY_AUTHORIZATION_REVOKED",
    "POLICY_AUTHORIZATION_SPENT",
    "POLICY_AUTHORIZATION_SCOPE",
    "POLICY_MENTION_NOT_DELEGATED",
    "POLICY_MENTION_LOOP",
    "POLICY_MENTION_BOT_MISMATCH",
    "POLICY_MENTION_EXPIRED",
    "POLICY_MENTION_FROM_FUTURE",
    "POLICY_MENTION_DUPLICATE",
    "POLICY_MENTION_PHASE",
];

fn decide(codes: &BTreeSet<&'static str>, people: usize) -> &'static str {
    if codes.iter().any(|code| !EXPIRIES.contains(code)) {
        "denied"
    } else if !codes.is_empty() {
        "expired"
    } else if people > 0 {
        "needs_approval"
    } else {
        "allowed"
    }
}

impl Model {
    /// What counts: the files, and over their routes what rollbacks brought back.
    pub(crate) fn rules(&self) -> Rules {
        let mut rules = self.files.clone();
        for (key, route) in &mut rules.routes {
            if let Some(pinned) = self.routes.get(key).and_then(|route| route.pinned.clone()) {
                *route = pinned;
            }
        }
        rules
    }

    pub(crate) fn load(&mut self, files: Rules) {
        let keys: BTreeSet<String> = self.routes.keys().chain(files.routes.keys()).cloned().collect();
        for key in keys {
            self.routes.entry(key.clone()).or_default().declare(files.routes.get(&key));
        }
        self.files = files;
    }

    pub(crate) fn lift(&mut self, key: &str) -> bool {
        let route = self.routes.get_mut(key).unwrap();
        if !route.blocked && route.pinned.is_none() {
            return false;
        }
        (route.blocked, route.pinned) = (false, None);
        route.declare(self.files.routes.get(key));
        true
    }

    pub(crate) fn roll_back(&mut self, key: &str, block: bool) {
        self.routes.get_mut(key).unwrap().roll_back(block);
        for handoff_id in self.in_flight(key) {
            let known = self.handoffs.get_mut(&handoff_id).unwrap();
            known.accepted.as_mut().unwrap().state = State::Over;
        }
    }

    /// Live work under way, whatever its route has become since.
    pub(crate) fn in_flight(&self, key: &str) -> Vec<String> {
        let under_way = |known: &Known| {
            known.accepted.as_ref().is_some_and(|accepted| {
                let live = accepted.mode == "live" && accepted.route == key;
                live && accepted.decision == "allowed" && accepted.state != State::Over
            })
        };
        let found = self.handoffs.iter().filter(|(_, known)| under_way(known));
        found.map(|(handoff_id, _)| handoff_id.clone()).collect()
    }

    /// Decides a handoff at `now`. `judged_at` is when its verdict was made, under what is still in force.
    pub(crate) fn submit(
        &mut self,
        spec: &Json,
        submitter: &Submitter,
        judged_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Answer {
        let rules = self.rules();
        let judged = judged_at.map(|at| judge(spec, &rules, submitter, at));
        let verdict = judged
            .filter(|verdict| verdict.until.is_none_or(|until| now < until))
            .unwrap_or_else(|| judge(spec, &rules, submitter, now));
        let text = |path: &str| field(spec, path).text().map(str::to_owned);
        let mut codes = verdict.codes.clone();
        let own = !codes.contains("A2A_SOURCE_MISMATCH");
        let Some(handoff_id) = text("handoffId").filter(|_| own) else {
            let decision = decide(&codes, 0);
            return Answer { decision, codes, attempt: 1, replayed: false, pass: Pass::None };
        };
        let source = text("source.agentId");
        let key = source.clone().zip(text("audit.idempotencyKey"));
        if let Some((content_then, handoff)) = key.as_ref().and_then(|key| self.keys.get(key)) {
            if *content_then == content(spec) {
                return self.again(&handoff.clone(), &verdict, spec, now);
            }
            codes.insert("A2A_IDEMPOTENCY_CONFLICT");
        }
        let cycle = text("correlationId").unwrap_or_else(|| TOPIC.to_owned());
        let before = self.handoffs.get(&handoff_id);
        let attempt = before.map_or(0, |known| known.attempts) + 1;
        if before
            .is_some_and(|known| known.accepted.is_some() || known.source != source || known.cycle != cycle)
        {
            codes.insert("A2A_HANDOFF_REUSED");
        }
        let message = mention(spec, "messageId").map(str::to_owned);
        if message.as_ref().is_some_and(|message| self.messages.contains(message)) {
            codes.insert("POLICY_MENTION_DUPLICATE");
        }
        self.lineage(spec, &rules, (&cycle, message.is_some()), &mut codes);
        let (cover, people) = self.moving(spec, &verdict, &rules, now, &mut codes);
        let decision = decide(&codes, people);
        let accepted = matches!(decision, "allowed" | "needs_approval");

        if let Some(message) = &message {
            self.observe(spec, message, &codes, people, verdict.proven);
        }
        if !accepted {
            let target = text("target.agentId");
            let parent = text("parentHandoffId");
            let fresh = Known { source, cycle, target, parent, attempts: attempt, accepted: None };
            self.handoffs.entry(handoff_id).or_insert(fresh).attempts = attempt;
            return Answer { decision, codes, attempt, replayed: false, pass: Pass::None };
        }
        let (route, mode) = (text("routing.routeKey").unwrap(), text("mode").unwrap());
        self.keys.insert(key.unwrap(), (content(spec), handoff_id.clone()));
        if let Some(message) = message {
            self.messages.insert(message);
            *self.cycles.entry(cycle.clone()).or_default() += 1;
        }
        let pass = if decision == "allowed" {
            self.goes_out(&handoff_id, &route, &mode, cover.as_deref(), now);
            Pass::Dispatch(self.until(&verdict, spec))
        } else {
            let until =
                verdict.until.map_or(now.plus_seconds(WAIT_S), |end| end.min(now.plus_seconds(WAIT_S)));
            let waiting = Waiting { needed: people, yes: Vec::new(), asked: now, until };
            self.waiting.insert(handoff_id.clone(), waiting);
            Pass::Waits(until)
        };
        let state = if decision == "allowed" { State::Available } else { State::Waiting };
        let remade = self.routes[&route].remade;
        let known = Known {
            source,
            cycle,
            target: text("target.agentId"),
            parent: text("parentHandoffId"),
            attempts: attempt,
            accepted: Some(Accepted {
                decision,
                codes: BTreeSet::new(),
                attempt,
                spec: spec.clone(),
                route,
                mode,
                state,
                claimer: None,
                touched: now,
                remade,
            }),
        };
        self.handoffs.insert(handoff_id, known);
        Answer { decision, codes, attempt, replayed: false, pass }
    }

    /// The decision as it stands, for the same key with the same content.
    fn again(&self, handoff_id: &str, verdict: &Verdict, spec: &Json, now: Timestamp) -> Answer {
        let accepted = self.handoffs[handoff_id].accepted.as_ref().unwrap();
        let halted = self.is_frozen(Some(&accepted.route), Some(&accepted.mode))
            || self.routes.get(&accepted.route).is_some_and(|route| route.blocked);
        let may_go = verdict.codes.is_empty()
            && self.void(spec).is_empty()
            && self.is_granted_still(spec, now)
            && accepted.state != State::Over
            // It may have happened.
            && !(accepted.mode == "live" && accepted.state == State::Blocked)
            && !halted
            && self
                .routes
                .get(&accepted.route)
                .is_some_and(|route| route.reaches(&accepted.mode) && route.remade == accepted.remade);
        let pass = match accepted.decision {
            "allowed" if may_go => Pass::Dispatch(self.until(verdict, spec)),
            "allowed" => Pass::Withheld,
            "needs_approval" => {
                self.waiting.get(handoff_id).map_or(Pass::Withheld, |waiting| Pass::Waits(waiting.until))
            }
            _ => Pass::None,
        };
        let Accepted { decision, codes, attempt, .. } = accepted.clone();
        Answer { decision, codes, attempt, replayed: true, pass }
    }

    /// Until when all that lets it go out holds: the grant that it names is part of that.
    fn until(&self, verdict: &Verdict, spec: &Json) -> Option<Timestamp> {
        let named = field(spec, "authorship.risk.authorizationRef").text();
        let grant = named.and_then(|name| self.grants.get(name));
        verdict.until.into_iter().chain(grant.map(|grant| grant.expires)).min()
    }

    /// A grant whose uses are used up has done what it was for; one that was taken back or has ended carries nothing more.
    fn is_granted_still(&self, spec: &Json, now: Timestamp) -> bool {
        let Some(name) = field(spec, "authorship.risk.authorizationRef").text() else { return true };
        let against = self.against_grant(name, spec, &self.rules(), now);
        against.iter().all(|code| *code == "POLICY_AUTHORIZATION_SPENT")
    }

    /// What cannot be read of a handoff stops it by no freeze that names it; everything is everything.
    fn is_frozen(&self, route: Option<&str>, mode: Option<&str>) -> bool {
        self.freezes.iter().any(|(of_route, of_mode)| {
            of_route.as_deref().is_none_or(|key| Some(key) == route)
                && of_mode.as_deref().is_none_or(|word| Some(word) == mode)
        })
    }

    /// What a restored ledger makes void.
    fn void(&self, spec: &Json) -> Vec<&'static str> {
        // By the sender's word, which may be two minutes ahead of the ledger.
        let Some(since) = self.epoch.map(|since| since.plus_seconds(120)) else { return Vec::new() };
        let mut codes = Vec::new();
        let issued = field(spec, "authorship.envelope.ttl.issuedAt").instant();
        if is_delegated(spec) == Some(true) && issued.is_some_and(|at| at < since) {
            codes.push("POLICY_ENVELOPE_EXPIRED");
        }
        if mention(spec, "observedAt").and_then(Timestamp::parse).is_some_and(|at| at < since) {
            codes.push("POLICY_MENTION_EXPIRED");
        }
        codes
    }

    fn class<'s>(&self, spec: &'s Json) -> Option<&'s str> {
        let class = field(spec, "authorship.risk.classification").text();
        class.filter(|_| is_delegated(spec) == Some(true))
    }

    fn lets_through(&self, spec: &Json) -> bool {
        self.class(spec).is_some_and(|class| self.phase == 2 || (self.phase == 1 && !is_grave(class)))
    }

    /// What depends on state that moves; the grant that covers it, and how many people must still say yes.
    fn moving(
        &self,
        spec: &Json,
        verdict: &Verdict,
        rules: &Rules,
        now: Timestamp,
        codes: &mut BTreeSet<&'static str>,
    ) -> (Option<String>, usize) {
        let text = |path: &str| field(spec, path).text();
        codes.extend(self.void(spec));
        let (key, mode) = (text("routing.routeKey"), text("mode"));
        if let Some(key) = key.filter(|key| rules.routes.contains_key(*key)) {
            codes.extend(self.routes[key].refuses(mode));
        }
        if self.is_frozen(key, mode) {
            codes.insert("POLICY_FROZEN");
        }
        if mention(spec, "messageId").is_some() && !self.lets_through(spec) {
            codes.insert("POLICY_MENTION_PHASE");
        }
        if !verdict.codes.is_empty() {
            return (None, 0);
        }
        // One that is named has to cover the work, whoever's yes that needs.
        let mut cover = None;
        if let Some(name) = text("authorship.risk.authorizationRef") {
            let against = self.against_grant(name, spec, rules, now);
            if against.is_empty() {
                cover = Some(name.to_owned());
            }
            codes.extend(against);
        }
        if verdict.yes == Yes::Nobodys {
            return (None, 0);
        }
        let route = &rules.routes[text("routing.routeKey").unwrap()];
        let approvers = usize::from(route["approvers"] == 2) + 1;
        let people = match text("mode") {
            Some("live") if cover.is_some() && approvers == 1 => 0,
            Some("live") => approvers,
            _ => 0,
        };
        (cover, people)
    }

    fn against_grant(&self, name: &str, spec: &Json, rules: &Rules, now: Timestamp) -> Vec<&'static str> {
        let Some(grant) = self.grants.get(name) else { return vec!["POLICY_AUTHORIZATION_UNKNOWN"] };
        let text = |path: &str| field(spec, path).text().unwrap_or_default().to_owned();
        let mut codes = Vec::new();
        if grant.revoked {
            codes.push("POLICY_AUTHORIZATION_REVOKED");
        }
        if grant.expires <= now || self.epoch.is_some_and(|since| grant.made_at < since) {
            codes.push("POLICY_AUTHORIZATION_EXPIRED");
        }
        if grant.uses == 0 {
            codes.push("POLICY_AUTHORIZATION_SPENT");
        }
        let channel = mention(spec, "channel").map(str::to_owned);
        let fallback = field(spec, "routing.fallbackAgentId").text();
        let made_by_an_end = ["source.agentId", "target.agentId"]
            .iter()
            .map(|end| text(end))
            .chain(fallback.map(str::to_owned))
            .flat_map(|end| names(rules.routes.values(), &end))
            .any(|name| grant.made_by.goes_by(&name));
        let covers = is_delegated(spec) == Some(true)
            && grant.principal == text("authorship.envelope.principal.id")
            && !made_by_an_end
            && grant.agents.contains(&text("target.agentId"))
            && fallback.is_none_or(|fallback| grant.agents.iter().any(|agent| agent == fallback))
            && grant.operations.contains(&text("intent.operation"))
            && (grant.channels.is_empty()
                || channel.is_some_and(|channel| grant.channels.contains(&channel)))
            && grant.modes.contains(&text("mode"))
            && grant.route.as_ref().is_none_or(|key| *key == text("routing.routeKey"))
            && grant.intent.as_ref().is_none_or(|hash| *hash == sha256(&spec["intent"]));
        if !covers {
            codes.push("POLICY_AUTHORIZATION_SCOPE");
        }
        codes
    }

    fn lineage(
        &self,
        spec: &Json,
        rules: &Rules,
        (cycle, by_mention): (&str, bool),
        codes: &mut BTreeSet<&'static str>,
    ) {
        let text = |path: &str| field(spec, path).text().map(str::to_owned);
        if by_mention && self.cycles.get(cycle).is_some_and(|mentions| *mentions >= 8) {
            codes.insert("POLICY_LOOP_DETECTED");
        }
        let Some(parent) = text("parentHandoffId") else { return };
        let leads_here = |known: &&Known| {
            known.accepted.as_ref().is_some_and(|accepted| accepted.decision == "allowed")
                && known.cycle == cycle
                && known.target == text("source.agentId")
        };
        let Some(parent) = self.handoffs.get(&parent).filter(leads_here) else {
            codes.insert("A2A_PARENT_INVALID");
            return;
        };
        let mut chain = vec![parent];
        while let Some(next) = chain.last().unwrap().parent.as_ref().and_then(|id| self.handoffs.get(id)) {
            chain.push(next);
        }
        let target = text("target.agentId").map(|target| names(rules.routes.values(), &target));
        let stands = |agent: &Option<String>, names: &BTreeSet<String>| {
            agent.as_ref().is_some_and(|agent| names.contains(agent))
        };
        let comes_back = target.is_some_and(|names| {
            let mut near = chain.iter().take(9);
            near.any(|known| stands(&known.source, &names) || stands(&known.target, &names))
        });
        if chain.len() > 8 || (by_mention && comes_back) {
            codes.insert("POLICY_LOOP_DETECTED");
        }
    }

    /// A mention was judged: what is counted, and whether the phase falls.
    fn observe(
        &mut self,
        spec: &Json,
        message: &str,
        codes: &BTreeSet<&'static str>,
        people: usize,
        proven: bool,
    ) {
        let mut but_the_phase = codes.clone();
        let held_back = but_the_phase.remove("POLICY_MENTION_PHASE");
        let violated = VIOLATIONS.iter().any(|code| but_the_phase.contains(code));
        let mut would_be = decide(&but_the_phase, people);
        if held_back && let Some(content_then) = self.shadows.get(message) {
            if *content_then == content(spec) {
                return;
            }
            but_the_phase.insert("POLICY_MENTION_DUPLICATE");
            would_be = "denied";
        }
        let would_pass = matches!(would_be, "allowed" | "needs_approval");
        let has = |wanted: &str| but_the_phase.contains(wanted);
        let counted = [
            true,
            would_pass,
            has("POLICY_MENTION_LOOP") || has("POLICY_LOOP_DETECTED"),
            has("POLICY_MENTION_DUPLICATE"),
            has("POLICY_MENTION_EXPIRED"),
        ];
        for (counter, it) in self.counters.iter_mut().zip(counted) {
            *counter += u64::from(it);
        }
        if would_pass && !self.lets_through(spec) {
            self.shadows.entry(message.to_owned()).or_insert_with(|| content(spec));
        }
        if self.phase == 2 && violated && proven {
            self.phase = 1;
        }
    }

    /// It became allowed: takes the use of a grant, and the canary's slot.
    fn goes_out(&mut self, handoff_id: &str, route: &str, mode: &str, cover: Option<&str>, now: Timestamp) {
        if let Some(grant) = cover.and_then(|name| self.grants.get_mut(name)) {
            grant.uses -= 1;
        }
        if mode == "live"
            && let Some(Canary { holder, .. }) = &mut self.routes.get_mut(route).unwrap().canary
        {
            *holder = Some((handoff_id.to_owned(), now));
        }
    }
}
