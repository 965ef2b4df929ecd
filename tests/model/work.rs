//! What agents do in a history: whole lives and pieces of them, reported by the right agent and by others.

use super::*;

impl Both {
    /// An agent works on a handoff, as far as it comes.
    pub(super) fn work(&mut self) {
        let open: Vec<(String, Option<String>, Option<String>)> = self
            .model
            .handoffs
            .iter()
            .filter_map(|(id, known)| {
                Some((id.clone(), known.target.clone(), known.source.clone(), known.accepted.as_ref()?))
            })
            .filter(|(.., accepted)| accepted.state != State::Over)
            .map(|(id, target, source, _)| (id, target, source))
            .collect();
        let Some((id, target, source)) = (!open.is_empty()).then(|| self.chance.one(&open).clone()) else {
            return;
        };
        let claimer = self.model.handoffs[&id].accepted.as_ref().unwrap().claimer.clone();
        let mut agent = claimer.or(target).unwrap_or_default();
        if self.chance.percent(15) {
            agent = (*self.chance.one(&town::AGENTS)).to_owned();
        }
        let code = self.chance.one(&["BOOM", "POLICY_TASK_DENIED", "ROUTE_ROLLED_BACK"]);
        let failed = Said::Failed { code, critical: self.chance.percent(20) };
        let steps: Vec<Said> = match self.chance.below(10) {
            0 => vec![Said::Claimed],
            1 => vec![Said::Started],
            2 => vec![Said::Claimed, Said::Started, Said::Blocked],
            3 => vec![failed],
            4 => vec![Said::Claimed, Said::Started, failed],
            5 => {
                agent = source.unwrap_or_default();
                vec![Said::Cancelled]
            }
            _ => vec![Said::Claimed, Said::Started, Said::Artifact, Said::Completed],
        };
        let is_source = matches!(steps.first(), Some(Said::Cancelled));
        // Now and then with a token for the other side, all of it: a completion names what was announced before.
        let side = if is_source != self.chance.percent(5) { Side::Source } else { Side::Target };
        for step in steps {
            self.report(&id, &agent, side, &step);
        }
    }

    pub(super) fn report(&mut self, id: &str, agent: &str, side: Side, step: &Said) {
        let accepted = self.model.handoffs[id].accepted.as_ref().unwrap();
        let stream_id = format!("task:{id}:attempt:{}", accepted.attempt);
        let mut seq = 0;
        let mut context = String::new();
        for entry in &self.memory.0.lock().unwrap().1 {
            if !entry.wire.contains(&stream_id) {
                continue;
            }
            let wire: Json = serde_json::from_str(&entry.wire).unwrap();
            if wire["stream"]["stream_id"] == stream_id.as_str() {
                seq = wire["stream"]["stream_seq"].as_u64().unwrap();
                context = wire["stream"]["context_id"].as_str().unwrap().to_owned();
            }
        }
        let digest = format!("sha256:{}", "0".repeat(64));
        let (kind, payload) = match step {
            Said::Claimed => ("task.claimed", json!({})),
            Said::Started => ("task.started", json!({})),
            Said::Artifact => (
                "artifact.ready",
                json!({"artifact_id": format!("a{seq}"), "uri": "s3://a", "version": 1, "hash": digest}),
            ),
            Said::Blocked => ("task.blocked", json!({"reason": "what now"})),
            Said::Completed => (
                "task.complete",
                json!({"artifact_ids": [format!("a{}", seq - 1)], "verification": {"mechanical": "pass"}}),
            ),
            Said::Failed { code, critical } => {
                ("task.failed", json!({"code": code, "message": "it failed", "critical": critical}))
            }
            Said::Cancelled => ("task.cancelled", json!({"reason": "not needed"})),
        };
        let (category, terminal) = kind.parse::<Kind>().unwrap().state().unwrap();
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_r{:010}", self.done.len()), "type": kind,
            "ts": self.clock.read().to_string(), "sender": format!("agent:{agent}"), "payload": payload,
            "state": {"category": category.as_str(), "terminal": terminal},
            "stream": {"stream_id": stream_id, "stream_seq": seq + 1, "context_id": context, "correlation_id": context},
        });
        self.note(format!("{agent} reports {step:?} of {id} for the {side:?}"));
        let event = SentEvent::parse(&event.to_string()).unwrap();
        let now = self.now();
        let found = self.engine.report_and_wait(Report { handoff_id: id.to_owned(), event, side }).unwrap();
        let expected = self.model.report(id, agent, side == Side::Source, step, now);
        self.model.tick(now);
        *self.tally.entry("reports taken").or_default() += usize::from(expected);
        if found.is_ok() != expected {
            self.note(format!("{found:?}"));
        }
        self.same(found.is_ok(), expected);
    }
}
