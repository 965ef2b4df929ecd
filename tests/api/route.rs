//! A route, the agent behind it, and those who have to do with it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, location, spec, write};
use super::wire::Reply;

pub(crate) const KEY: &str = "crypto-sage.execution-plane.v1";
pub(crate) const TARGET: &str = "crypto-sage";

/// An agent that listens, answers every request the same, and remembers in which mode it was asked.
pub(crate) struct Agent {
    address: SocketAddr,
    pub(crate) modes: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    /// Answers with this status line and headers; an empty text never answers.
    pub(crate) fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let modes = Arc::new(Mutex::new(Vec::new()));
        let heard = modes.clone();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for mut stream in listener.incoming().flatten() {
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).to_ascii_lowercase();
                let mode = request.lines().find_map(|line| line.strip_prefix("handoff-mode: "));
                heard.lock().unwrap().push(mode.unwrap_or("none").to_owned());
                if answer.is_empty() {
                    held.push(stream);
                } else {
                    let _ =
                        write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                }
            }
        });
        Self { address, modes }
    }

    /// Answers 200 when it is told to.
    pub(crate) fn waiting() -> (Self, std::sync::mpsc::Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let modes = Arc::new(Mutex::new(Vec::new()));
        let (heard, (told, hears)) = (modes.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                heard.lock().unwrap().push("asked".to_owned());
                if hears.recv().is_ok() {
                    let _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    // What was sent is read to its end, so that closing does not cut off the answer.
                    let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
                    let _ = stream.read(&mut [0; 4096]);
                }
            }
        });
        (Self { address, modes }, told)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/health", self.address)
    }
}

/// A daemon whose route begins in dev, and those who have to do with it.
pub(crate) struct Scene {
    pub(crate) daemon: Daemon,
    /// An operator.
    pub(crate) rita: String,
    pub(crate) router: String,
    pub(crate) sage: String,
    pub(crate) bench: String,
}

impl Scene {
    pub(crate) fn new(probe_url: Option<String>) -> Self {
        Self::with("", |route| {
            if let Some(url) = &probe_url {
                route["probeUrl"] = url.as_str().into();
            }
        })
    }

    pub(crate) fn with(settings: &str, change: impl FnOnce(&mut Json)) -> Self {
        let daemon = Daemon::prepared(tempfile::tempdir().unwrap(), settings, |workspace| {
            let path = workspace.join("policies/routes.json");
            let mut table: Json = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let route = &mut table["routes"][KEY];
            // A route that nothing is known of yet; and what is dispatched in live need not be signed.
            route.as_object_mut().unwrap().remove("stage");
            route.as_object_mut().unwrap().remove("signingKeyId");
            route["requireSignature"] = false.into();
            change(route);
            write(&path, table.to_string());
        });
        let rita = daemon.token("rita", "operator", None);
        let router = daemon.token("router", "orchestrator", Some(ROUTER));
        let sage = daemon.token("sage", "agent", Some(TARGET));
        let bench = daemon.token("bench-1", "harness", None);
        Self { daemon, rita, router, sage, bench }
    }

    /// Edits the route in the table, and waits until that is in force.
    pub(crate) fn redefine(&self, change: impl FnOnce(&mut Json)) {
        let path = self.daemon.path("policies/routes.json");
        let mut table: Json = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut table["routes"][KEY]);
        write(&path, table.to_string());
        let reloaded = self.daemon.post("/v1/reload", "");
        assert_eq!(reloaded.status, 200, "{reloaded:?}");
    }

    pub(crate) fn ask(&self, token: &str, gate: &str, body: Json) -> Reply {
        self.daemon.post_as(token, &format!("/v1/routes/{KEY}/gates/{gate}"), body)
    }

    /// Asks as the operator; `passed`, or everything that is missing.
    #[track_caller]
    pub(crate) fn gate(&self, gate: &str, body: Json) -> String {
        let reply = self.ask(&self.rita, gate, body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let told = reply.json();
        assert_eq!(told["gate"], gate);
        assert_eq!(told["stage"], self.route()["stage"]);
        if told["status"] == "passed" {
            assert_eq!(told["missing"], json!([]));
            return "passed".to_owned();
        }
        assert_eq!(told["status"], "failed");
        let missing = told["missing"].as_array().unwrap().iter();
        missing.map(|one| one["what"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn act(&self, act: &str, body: Json) -> Reply {
        self.daemon.post_as(&self.rita, &format!("/v1/routes/{KEY}/{act}"), body)
    }

    pub(crate) fn route(&self) -> Json {
        self.daemon.get(&format!("/v1/routes/{KEY}")).json()
    }

    /// What the state file says of the route, and of the last rollback.
    pub(crate) fn state(&self) -> (String, Json) {
        let state: Json =
            serde_json::from_slice(&fs::read(self.daemon.path("memory/orchestration-state.json")).unwrap())
                .unwrap();
        let route = &state["promotion"]["routes"][KEY];
        let word = |name: &str| route[name].as_str().unwrap_or("-").to_owned();
        let mut line = format!("{} {} {}", word("currentStage"), word("lastGatePassed"), word("gateStatus"));
        for flag in ["canary", "blocked"] {
            if route[flag] == true {
                line = format!("{line} {flag}");
            }
        }
        (line, state["rollback"].clone())
    }

    pub(crate) fn submit(&self, name: &str, mode: &str) -> (Json, Reply) {
        let mut spec = spec(name);
        spec["mode"] = mode.into();
        if mode == "live" {
            spec["safety"]["requiresHumanApproval"] = true.into();
        }
        let reply = self.daemon.post_as(&self.router, "/v1/handoffs", &spec);
        (spec, reply)
    }

    /// Hands work over, with a person's yes where it needs one, and has the target report how it ended.
    pub(crate) fn run(&self, name: &str, mode: &str, last: (&str, Json)) -> String {
        let (spec, reply) = self.submit(name, mode);
        let mut first_seq = 4;
        if mode == "live" {
            assert_eq!(reply.status, 202, "{reply:?}");
            let approved = self.answer(&self.rita, &spec, "approve");
            assert_eq!(
                (approved.status, &approved.json()["decision"]),
                (200, &json!("allowed")),
                "{approved:?}"
            );
            first_seq = 7;
        } else {
            assert_eq!(reply.status, 201, "{reply:?}");
        }
        let artifact = json!({"artifact_id": "report", "uri": "s3://reports/1", "version": 1,
            "hash": format!("sha256:{}", "0".repeat(64))});
        let events =
            [("task.claimed", json!({})), ("task.started", json!({})), ("artifact.ready", artifact), last];
        for (seq, (kind, payload)) in (first_seq..).zip(events) {
            let state = match kind {
                "task.complete" => ("completed", true),
                "task.failed" => ("failed", true),
                _ => ("working", false),
            };
            let event = json!({
                "wire": "1.1", "wire_id": format!("wire_{seq:04}{}", name.replace('_', "")), "type": kind,
                "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{TARGET}"), "payload": payload,
                "state": {"category": state.0, "terminal": state.1},
                "stream": {"stream_id": format!("task:{}:attempt:1", spec["handoffId"].as_str().unwrap()),
                    "stream_seq": seq, "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
            });
            let sent = self.daemon.post_as(&self.sage, &format!("{}/events", location(&spec)), event);
            assert_eq!(sent.status, 201, "{sent:?}");
        }
        spec["handoffId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn answer(&self, token: &str, spec: &Json, word: &str) -> Reply {
        let place = format!("/v1/approvals/{}", spec["handoffId"].as_str().unwrap());
        self.daemon.post_as(token, &place, json!({"decision": word, "reason": "looked at it"}))
    }

    /// Brings the route to live.
    pub(crate) fn go_live(&self) {
        self.through("G3");
        assert_eq!(self.gate("G4", json!({})), "passed");
    }

    pub(crate) fn complete(&self, name: &str, mode: &str) -> String {
        self.run(name, mode, completed(json!([])))
    }

    /// Brings the route so far: `simulated` with G1 passed, through G2, or through G3.
    pub(crate) fn through(&self, last: &str) {
        self.complete("walk_dev_1", "dev");
        assert_eq!(self.gate("G0", json!({})), "passed");
        assert_eq!(self.gate("G1", json!({})), "passed");
        if last == "G1" {
            return;
        }
        for n in 1..=3 {
            self.complete(&format!("walk_sim_{n}"), "simulated");
        }
        assert_eq!(self.gate("G2", json!({})), "passed");
        if last == "G2" {
            return;
        }
        let evidence = json!({"handoffId": "hs_20260218_walk_sim_3", "evidence": {"runId": "run-7"}});
        assert_eq!(self.gate("G3", evidence), "passed");
    }
}

pub(crate) fn completed(side_effects: Json) -> (&'static str, Json) {
    let mut payload = json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}});
    if side_effects != json!([]) {
        payload["side_effects"] = side_effects;
    }
    ("task.complete", payload)
}

pub(crate) fn failed(code: &str) -> (&'static str, Json) {
    ("task.failed", json!({"code": code, "message": "it did not work"}))
}
