//! An A2A client that says exactly what a test wants, and the agent that works on what it hands over.

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER};
use super::streams::Events;
use super::wire::{Reply, Request};

pub(crate) const TARGET: &str = "crypto-sage";

/// A daemon, an orchestrator that speaks A2A, and the target of its handoffs.
pub(crate) struct Conversation {
    pub(crate) daemon: Daemon,
    pub(crate) router: String,
    pub(crate) sage: String,
}

/// The two versions, with what their messages look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Old,
    New,
}

pub(crate) const BOTH: [Version; 2] = [Version::Old, Version::New];

impl Version {
    pub(crate) fn method(self, old: &'static str, new: &'static str) -> &'static str {
        match self {
            Self::Old => old,
            Self::New => new,
        }
    }

    /// The word for a task's state.
    pub(crate) fn state(self, old: &str) -> String {
        match self {
            Self::Old => old.to_owned(),
            Self::New => format!("TASK_STATE_{}", old.to_uppercase().replace('-', "_")),
        }
    }

    pub(crate) fn text(self, id: &str, text: &str) -> Json {
        match self {
            Self::Old => {
                json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]})
            }
            Self::New => json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}),
        }
    }

    pub(crate) fn handing(self, id: &str, spec: &Json) -> Json {
        let mut message = self.text(id, "");
        message["parts"] = match self {
            Self::Old => json!([{"kind": "data", "data": spec}]),
            Self::New => json!([{"data": spec}]),
        };
        message
    }

    /// A send that does not wait for anything.
    pub(crate) fn at_once(self, message: Json) -> Json {
        match self {
            Self::Old => json!({"message": message, "configuration": {"blocking": false}}),
            Self::New => json!({"message": message, "configuration": {"returnImmediately": true}}),
        }
    }

    /// The task in the result of a send.
    pub(crate) fn task(self, result: &Json) -> Json {
        match self {
            Self::Old => result.clone(),
            Self::New => result["task"].clone(),
        }
    }
}

impl Conversation {
    pub(crate) fn new() -> Self {
        Self::on(Daemon::new())
    }

    pub(crate) fn on(daemon: Daemon) -> Self {
        let router = daemon.token("router", "orchestrator", Some(ROUTER));
        let sage = daemon.token("sage", "agent", Some(TARGET));
        Self { daemon, router, sage }
    }

    pub(crate) fn rpc_as(&self, token: &str, method: &str, params: Json) -> Json {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let reply = self.daemon.post_as(token, "/rpc", body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.json();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
        answer
    }

    /// The result of a request that is answered with one.
    #[track_caller]
    pub(crate) fn result_as(&self, token: &str, method: &str, params: Json) -> Json {
        let answer = self.rpc_as(token, method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    #[track_caller]
    pub(crate) fn result(&self, method: &str, params: Json) -> Json {
        self.result_as(&self.router, method, params)
    }

    /// The code of the error that a request is answered with.
    #[track_caller]
    pub(crate) fn error_as(&self, token: &str, method: &str, params: Json) -> (i64, Json) {
        let answer = self.rpc_as(token, method, params);
        let error = answer.get("error").unwrap_or_else(|| panic!("{method}: {answer}")).clone();
        (error["code"].as_i64().unwrap(), error)
    }

    #[track_caller]
    pub(crate) fn error(&self, method: &str, params: Json) -> i64 {
        self.error_as(&self.router, method, params).0
    }

    /// Hands a TaskSpec over, and gives the task.
    #[track_caller]
    pub(crate) fn hand(&self, version: Version, id: &str, spec: &Json) -> Json {
        let params = version.at_once(version.handing(id, spec));
        version.task(&self.result(version.method("message/send", "SendMessage"), params))
    }

    pub(crate) fn get(&self, version: Version, id: &str) -> Json {
        self.result(version.method("tasks/get", "GetTask"), json!({"id": id}))
    }

    /// A stream that a request is answered with.
    pub(crate) fn stream(&self, method: &str, params: Json, headers: &[(&str, &str)]) -> Events {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let mut request = Request::new("POST", "/rpc").token(&self.router).json(body);
        request = request.header("Accept", "text/event-stream");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        Events::open(&self.daemon, &request)
    }

    /// `GET /stream/{id}`.
    pub(crate) fn plain_stream(&self, target: &str, headers: &[(&str, &str)]) -> Events {
        let mut request = Request::new("GET", target).token(&self.router);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        Events::open(&self.daemon, &request)
    }

    /// What the target of a handoff reports, as the next event of its stream.
    pub(crate) fn report(&self, spec: &Json, kind: &str, payload: Json) -> Reply {
        let handoff_id = spec["handoffId"].as_str().unwrap();
        let shown = self.daemon.get(&format!("/v1/handoffs/{handoff_id}")).json();
        let attempt = shown["attempt"].as_u64().unwrap();
        let history = shown["history"].as_array().unwrap();
        let last = history.iter().find(|row| row["attempt"] == attempt).unwrap();
        let seq = last["timeline"].as_array().unwrap().len() as u64 + 1;
        let (category, terminal) = match kind {
            "task.claimed" | "task.started" | "artifact.ready" => ("working", false),
            "task.blocked" => ("input_required", false),
            "task.complete" => ("completed", true),
            "task.failed" => ("failed", true),
            other => panic!("{other}"),
        };
        let event = json!({
            "wire": "1.1", "wire_id": format!("wire_{seq:04}{}", kind.replace('.', "")), "type": kind,
            "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{TARGET}"), "payload": payload,
            "state": {"category": category, "terminal": terminal},
            "stream": {"stream_id": format!("task:{handoff_id}:attempt:{attempt}"), "stream_seq": seq,
                "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
        });
        self.daemon.post_as(&self.sage, &format!("/v1/handoffs/{handoff_id}/events"), event)
    }

    /// The whole work: claimed, started, one artifact, done.
    pub(crate) fn work(&self, spec: &Json) {
        for (kind, payload) in work() {
            let reply = self.report(spec, kind, payload);
            assert_eq!(reply.status, 201, "{kind}: {reply:?}");
        }
    }
}

pub(crate) fn work() -> [(&'static str, Json); 4] {
    let hash = format!("sha256:{}", "0".repeat(64));
    [
        ("task.claimed", json!({})),
        ("task.started", json!({})),
        (
            "artifact.ready",
            json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1, "hash": hash}),
        ),
        ("task.complete", json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}})),
    ]
}
