//! The second part of the demo: a route comes from dev to live, and a failure takes it back.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::Show;
use super::steps::{Examples, set};
use crate::authorization::{Answer, ApprovalAsk};
use crate::cli::Failure;
use crate::cli::client::{Ask, Client, Trouble, segment};
use crate::cli::event::next_event;
use crate::cli::printer::{DIM, GREEN, RED, YELLOW};
use crate::engine::{Answering, Asking};
use crate::http::App;
use crate::json::printable;
use crate::limits;
use crate::os::files;
use crate::wire::Kind;

pub(super) const OPERATOR: &str = "rita";
pub(super) const AGENT: &str = "crypto-sage";

const ROUTE: &str = "crypto-sage.demo.v1";

/// Those who have to do with the route.
pub(super) struct Cast {
    pub(super) router: Client,
    pub(super) operator: Client,
    pub(super) agent: Client,
    pub(super) app: Arc<App>,
}

/// A route of its own, like the shipped one, that nothing is known of yet; its agent answers one probe.
pub(super) fn add_route(root: &Path) -> Result<(), Failure> {
    let path = root.join("policies/routes.json");
    let text = files::read_bounded(&path, limits::WORKSPACE_FILE.bytes_max)?;
    let mut table: Json = serde_json::from_slice(&text).map_err(|error| Failure(error.to_string()))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/health", listener.local_addr()?);
    if let Some(routes) = table.get_mut("routes").and_then(Json::as_object_mut) {
        let route = json!({
            "capability": "execution-plane",
            "primaryAgentId": AGENT,
            "fallbackAgentId": "crypto-sage-dr",
            "critical": true,
            "profile": "execution-plane.v1",
            "requireSignature": false,
            "probeUrl": url,
            "rollbackPlanRef": "agents/blockchain-operator/docs/runbook.md",
        });
        routes.insert(ROUTE.to_owned(), route);
    }
    files::replace_public(&path, table.to_string().as_bytes())?;
    std::thread::Builder::new().name("demo-agent".into()).spawn(move || answer_once(&listener))?;
    Ok(())
}

/// The agent, as far as G1 meets it.
fn answer_once(listener: &TcpListener) {
    let Ok((mut stream, _)) = listener.accept() else { return };
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && request.len() < 4096 {
        match stream.read(&mut byte) {
            Ok(1) => request.extend(byte),
            _ => return,
        }
    }
    // Whoever has gone away asks again.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

/// What a step must come to, and what it came to.
struct Outcome {
    expected: &'static str,
    found: String,
}

type StepOf<'s> = (&'static str, &'static str, Box<dyn Fn() -> Result<Outcome, Failure> + 's>);

impl Show<'_> {
    /// Walks the route, step by step; `first` is the number of the first.
    pub(super) fn promote(
        &self,
        first: usize,
        cast: &Cast,
        examples: &Examples<'_>,
    ) -> Result<Vec<Json>, Failure> {
        let walk = Walk { show: self, cast, examples };
        let steps: [StepOf<'_>; 7] = [
            (
                "G0: a route that nobody knows yet",
                "A second route to crypto-sage is in dev. One handoff along it passes every contract check.",
                Box::new(|| {
                    let id = walk.submit(21, "dev")?;
                    walk.gate("G0", json!({"handoffId": id}), "G0 passed, the route is at dev")
                }),
            ),
            (
                "G1: is anybody there?",
                "The gateway asks crypto-sage at the route's probeUrl, in the mode that the route has reached.",
                Box::new(|| walk.gate("G1", json!({}), "G1 passed, the route is at simulated")),
            ),
            (
                "G2: three simulated runs",
                "crypto-sage takes three simulated handoffs, and reports them complete, without side effects.",
                Box::new(|| {
                    for n in 22..25 {
                        let id = walk.submit(n, "simulated")?;
                        walk.work(&id, Kind::TaskComplete, &completed())?;
                    }
                    walk.gate("G2", json!({}), "G2 passed, the route is at simulated")
                }),
            ),
            (
                "G3: somebody saw it work",
                "crypto-sage may not vouch for itself. rita, who is neither end, attaches the run that she watched.",
                Box::new(|| {
                    let evidence = json!({"handoffId": "hs_demo_0024", "evidence": {"runId": "run-7"}});
                    let own = walk.refused(&cast.agent, &format!("{}/gates/G3", walk.place()), &evidence)?;
                    self.say(&format!(
                        "   {RED}crypto-sage is refused{RED:#}: {DIM}{}{DIM:#}",
                        printable(&own)
                    ));
                    walk.gate("G3", evidence, "G3 passed, the route is at simulated")
                }),
            ),
            (
                "G4: live, in canary",
                "rita lets the route go live by name; its rollback plan is rehearsed first. One handoff at a time from here.",
                Box::new(|| {
                    walk.gate(
                        "G4",
                        json!({"reason": "agreed with the desk"}),
                        "G4 passed, the route is at live",
                    )
                }),
            ),
            (
                "A live handoff",
                "The swap for real. It waits for a person; rita says yes, and it may be dispatched.",
                Box::new(|| walk.go_live()),
            ),
            (
                "It fails",
                "crypto-sage reports that a limit was broken. Nobody has to notice: the route goes back by itself.",
                Box::new(|| {
                    let failed = json!({"code": "POLICY_SLIPPAGE", "message": "beyond the limit"});
                    walk.work("hs_demo_0025", Kind::TaskFailed, &failed)?;
                    walk.look()
                }),
            ),
        ];
        let mut rows = Vec::new();
        for (n, (title, story, run)) in (first..).zip(steps) {
            if self.is_over() {
                break;
            }
            self.title(n, title, story);
            let Outcome { expected, found } = match run() {
                Ok(outcome) => outcome,
                Err(_) if self.is_over() => break,
                Err(failure) => return Err(failure),
            };
            let as_told = found == expected;
            let style = if as_told { GREEN } else { RED };
            self.say(&format!("   {style}{}{style:#}", printable(&found)));
            if !as_told {
                self.context.printer.error(&format!("expected {expected}"));
            }
            rows.push(json!({"step": title, "outcome": found, "asTold": as_told}));
            self.rest();
        }
        Ok(rows)
    }
}

struct Walk<'w> {
    show: &'w Show<'w>,
    cast: &'w Cast,
    examples: &'w Examples<'w>,
}

impl Walk<'_> {
    fn place(&self) -> String {
        format!("/v1/routes/{}", segment(ROUTE))
    }

    fn spec(&self, n: u32, mode: &str) -> Json {
        self.examples.direct(n, |spec| {
            set(spec, "/routing/routeKey", ROUTE);
            set(spec, "/mode", mode);
            set(spec, "/safety/allowExternalSideEffects", mode == "live");
        })
    }

    /// Hands something over along the route, and gives its handoffId.
    fn submit(&self, n: u32, mode: &str) -> Result<String, Failure> {
        let told = post(&self.cast.router, "/v1/handoffs", &self.spec(n, mode))?;
        Ok(told.get("handoffId").and_then(Json::as_str).unwrap_or_default().to_owned())
    }

    /// Has the agent do the work, and report how it ended.
    fn work(&self, id: &str, last: Kind, payload: &Json) -> Result<(), Failure> {
        let artifact = json!({"artifact_id": "report", "uri": "file:report.json", "version": 1,
            "hash": format!("sha256:{}", "0".repeat(64))});
        let steps = [
            (Kind::TaskClaimed, json!({})),
            (Kind::TaskStarted, json!({})),
            (Kind::ArtifactReady, artifact),
            (last, payload.clone()),
        ];
        let place = format!("/v1/handoffs/{}", segment(id));
        for (kind, payload) in steps {
            let handoff = get(&self.cast.agent, &place)?;
            let event = next_event(&handoff, id, kind, &payload, Some(&format!("agent:{AGENT}")))?;
            post(&self.cast.agent, &format!("{place}/events"), &event)?;
        }
        Ok(())
    }

    fn gate(&self, gate: &str, body: Json, expected: &'static str) -> Result<Outcome, Failure> {
        let told = post(&self.cast.operator, &format!("{}/gates/{gate}", self.place()), &body)?;
        let text = |name: &str| told.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let mut found = format!("{gate} {}, the route is at {}", text("status"), text("stage"));
        let missing = told.get("missing").and_then(Json::as_array).into_iter().flatten();
        for what in missing.filter_map(|one| one.get("what").and_then(Json::as_str)) {
            found.push_str(&format!("; {what}"));
        }
        Ok(Outcome { expected, found })
    }

    /// Asks for what must be refused, and gives the reason.
    fn refused(&self, client: &Client, path: &str, body: &Json) -> Result<String, Failure> {
        match client.ask(Ask::Post(Some(body.to_string().as_bytes())), path) {
            Err(Trouble::Told { why, .. }) => Ok(why),
            Ok(_) => Err(Failure::new("what must be refused was done")),
            Err(trouble) => Err(Failure(trouble.to_string())),
        }
    }

    fn go_live(&self) -> Result<Outcome, Failure> {
        let spec = self.spec(25, "live").to_string();
        let reply = self.cast.router.ask(Ask::Post(Some(spec.as_bytes())), "/v1/handoffs");
        let told = reply.map_err(|trouble| Failure(trouble.to_string()))?.body;
        let first = told.get("decision").and_then(Json::as_str).unwrap_or_default().to_owned();
        self.show.say(&format!("   {YELLOW}{}{YELLOW:#}", printable(&first)));
        let answered = self.cast.app.gateway().engine().answer(Answering {
            handoff_id: "hs_demo_0025".to_owned(),
            ask: ApprovalAsk { answer: Answer::Approve, reason: "as agreed".to_owned() },
            task_spec: spec.into(),
            by: Asking::person_of(OPERATOR, None),
        });
        let decision = match answered.map_err(|fault| Failure(fault.to_string()))? {
            Ok(decided) => decided.decision.as_str().to_owned(),
            Err(unanswered) => format!("{unanswered:?}"),
        };
        let found = format!("{first}, then {decision}");
        Ok(Outcome { expected: "needs_approval, then allowed", found })
    }

    /// What has become of the route.
    fn look(&self) -> Result<Outcome, Failure> {
        let route = get(&self.cast.operator, &self.place())?;
        let text = |pointer: &str| route.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
        let blocked = route.get("blocked") == Some(&Json::Bool(true));
        self.show.say(&format!("   {DIM}{}{DIM:#}", printable(text("/lastRollback/reason"))));
        let found = format!(
            "{}, rolled back by {}{}",
            text("/stage"),
            text("/lastRollback/by"),
            if blocked { ", blocked until a person opens it" } else { "" }
        );
        let expected = "simulated, rolled back by system, blocked until a person opens it";
        Ok(Outcome { expected, found })
    }
}

fn completed() -> Json {
    json!({"artifact_ids": ["report"], "verification": {"mechanical": "pass"}})
}

fn get(client: &Client, path: &str) -> Result<Json, Failure> {
    client.ask(Ask::Get, path).map(|reply| reply.body).map_err(|trouble| Failure(trouble.to_string()))
}

fn post(client: &Client, path: &str, body: &Json) -> Result<Json, Failure> {
    let body = body.to_string();
    let asked = client.ask(Ask::Post(Some(body.as_bytes())), path);
    asked.map(|reply| reply.body).map_err(|trouble| Failure(trouble.to_string()))
}
