//! Plants canaries: everywhere where somebody can say something to the gateway.

use std::fs;

use serde_json::{Value as Json, json};

use super::super::console::Visitor;
use super::super::delegated::{self, mention, signed};
use super::super::harness::{Daemon, ROUTER, location, spec, write};
use super::super::receiver::Receiver;
use super::super::signing;
use super::super::wire::{Reply, Request, send};
use super::canaries::{Canaries, Surface};
use super::forms::base64_within;

pub(super) const ROUTE: &str = "crypto-sage.execution-plane.v1";
const ROUTES: &str = "policies/routes.json";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A daemon that tells all it can, and those who speak with it.
pub(super) struct Garden {
    pub(super) daemon: Daemon,
    pub(super) canaries: Canaries,
    /// Where spans go.
    pub(super) collector: Receiver,
    pub(super) router: String,
    pub(super) sage: String,
    pub(super) rita: String,
    pub(super) bench: String,
    pub(super) auditor: String,
    /// Handoffs that were taken.
    pub(super) taken: Vec<Json>,
    /// Tasks that began over A2A.
    pub(super) tasks: Vec<String>,
}

impl Garden {
    pub(super) fn new() -> Self {
        let canaries = Canaries::default();
        let collector = Receiver::willing();
        let header = canaries.plant(SETTINGS);
        let settings = format!(
            "[log]\nlevel = \"trace\"\n[sink]\npath = \"memory/sink.jsonl\"\n[a2a]\npush_allow = [\"127.0.0.0/8\"]\n\
             [policy]\napproval = \"operator\"\n\
             [otlp]\nendpoint = \"http://{}\"\nheaders = [\"x-api-key={header}\"]\n\
             [ai]\nurl = \"http://127.0.0.1:9\"\napi_key = \"{}\"\n",
            collector.address,
            canaries.plant(SETTINGS)
        );
        let daemon = Daemon::prepared(tempfile::tempdir().unwrap(), &settings, |workspace| {
            // Open for a memo, so that canaries get through it; and for delegated work without a mention.
            let path = workspace.join("agents/blockchain-operator/config/execution-plane.schema.v1.json");
            let text = fs::read_to_string(&path).unwrap();
            let open = text.replace("\"additionalProperties\": false", "\"additionalProperties\": true");
            write(&path, open);
            // Nobody answers there, so that what is told of that is seen, too.
            let path = workspace.join(ROUTES);
            let mut table: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            for member in ["probeUrl", "fallbackProbeUrl"] {
                let url = || canaries.plant("a route's probeUrl and fallbackProbeUrl");
                table["routes"][ROUTE][member] = format!("http://127.0.0.1:9/{}?key={}", url(), url()).into();
            }
            write(&path, table.to_string());
        });
        canaries.is(TOKEN, &daemon.admin);
        let own = fs::read_to_string(daemon.path("memory/gateway.key")).unwrap();
        canaries.is("the gateway's own key", own.trim());
        let mut garden = Self {
            daemon,
            canaries,
            collector,
            router: String::new(),
            sage: String::new(),
            rita: String::new(),
            bench: String::new(),
            auditor: String::new(),
            taken: Vec::new(),
            tasks: Vec::new(),
        };
        garden.tokens_and_keys();
        garden
    }

    pub(super) fn plant(&self, place: &'static str) -> String {
        self.canaries.plant(place)
    }

    /// Sends a request that belongs to a trace; what it is answered is for its sender.
    #[track_caller]
    pub(super) fn ask(&self, token: &str, method: &str, target: &str, body: &Json, status: u16) -> Reply {
        let request = Request::new(method, target).token(token).header("traceparent", TRACEPARENT);
        let request = if body.is_null() { request } else { request.json(body.to_string()) };
        let reply = self.daemon.send(&request);
        assert_eq!(reply.status, status, "{method} {target} {body}: {reply:?}");
        reply
    }

    fn tokens_and_keys(&mut self) {
        for n in 0..20 {
            let role = ["orchestrator", "agent", "operator", "harness", "auditor"][n % 5];
            let mut new = json!({"name": self.plant(NAMES), "role": role});
            match role {
                "orchestrator" => new["agentId"] = ROUTER.into(),
                "agent" => new["agentId"] = "crypto-sage".into(),
                _ => {}
            }
            let made = self.ask(&self.daemon.admin, "POST", "/v1/tokens", &new, 201).json();
            let token = made["token"].as_str().unwrap().to_owned();
            self.canaries.is(TOKEN, &token);
            match n {
                0 => {
                    self.router = token;
                    let owner = &new["name"];
                    let key = json!({"keyId": signing::KEY_ID, "owner": owner, "purpose": "request",
                        "secret": signing::SECRET});
                    self.ask(&self.daemon.admin, "POST", "/v1/keys", &key, 201);
                    self.canaries.is(KEY, signing::SECRET);
                }
                1 => self.sage = token,
                2 => self.rita = token,
                3 => self.bench = token,
                4 => self.auditor = token,
                _ => {}
            }
        }
        let person = json!({"name": self.plant(NAMES), "role": "operator", "principal": self.plant("a token's principal")});
        let made = self.ask(&self.daemon.admin, "POST", "/v1/tokens", &person, 201).json();
        self.canaries.is(TOKEN, made["token"].as_str().unwrap());
        for n in 0..20 {
            let purpose = ["envelope", "dispatch"][n % 2];
            let key = json!({"keyId": self.plant(NAMES), "owner": "user:main", "purpose": purpose,
                "secret": self.plant(KEY)});
            let added = self.ask(&self.daemon.admin, "POST", "/v1/keys", &key, 201);
            self.canaries.look(Surface::Own, "the answer to a new key", &added.text());
        }
        let key = json!({"keyId": "user-main-test", "owner": "user:main", "secret": delegated::SECRET});
        self.ask(&self.daemon.admin, "POST", "/v1/keys", &key, 201);
        self.canaries.is(KEY, delegated::SECRET);
    }

    /// Headers, queries and paths that nobody asked for, and requests that are signed.
    pub(super) fn strangers(&self) {
        const NAMES: [&str; 6] =
            ["Cookie", "X-Api-Key", "User-Agent", "Referer", "X-Forwarded-For", "Proxy-Authorization"];
        for n in 0..12 {
            let target = match n % 2 {
                0 => format!("/v1/routes?secret={}", self.plant(QUERY)),
                _ => format!("/nowhere/{}?token={}", self.plant(QUERY), self.plant(QUERY)),
            };
            let request = Request::new("GET", &target)
                .header(NAMES[n % 6], &self.plant(HEADER))
                .header("traceparent", TRACEPARENT);
            // Without a token, with a wrong one, with one in another form.
            let request = match n % 3 {
                0 => request.header("Authorization", &format!("Basic {}", self.plant(HEADER))),
                1 => request.token(&self.plant(TOKEN)),
                _ => request.token(&format!("hd_{}", self.plant(TOKEN))),
            };
            let reply = send(self.daemon.address, &request);
            self.canaries.look(Surface::Stranger, &target, &reply.text());
        }
        // A query that is of the right form, but for nobody, and one that has a value of a wrong form.
        for name in ["cursor", "limit", "from", "decision"] {
            let target = format!("/v1/audit?{name}={}", self.plant(QUERY));
            self.ask(&self.daemon.admin, "GET", &target, &Json::Null, 400);
        }
        for _ in 0..2 {
            let target = format!("/v1/audit?agent={}", self.plant(QUERY));
            self.ask(&self.daemon.admin, "GET", &target, &Json::Null, 200);
        }
        let nonce = self.plant(SIGNED);
        let request = signing::signed(Request::new("GET", "/v1/handoffs?limit=1"), &nonce);
        let proof = request.headers.iter().find(|(name, _)| name == "Handoffd-Signature").unwrap().1.clone();
        self.canaries.is(SIGNED, &proof);
        assert_eq!(self.daemon.send(&request).status, 200);
        assert_eq!(self.daemon.send(&request).code(), "AUTH_NONCE_REUSED");
        for name in ["Handoffd-Signature", "Handoffd-Nonce", "Handoffd-Timestamp", "Handoffd-Key-Id"] {
            let mut broken = request.clone();
            let header = broken.headers.iter_mut().find(|(known, _)| known == name).unwrap();
            header.1 = self.plant(HEADER);
            let reply = self.daemon.send(&broken);
            assert_eq!(reply.status, 401, "{reply:?}");
            self.canaries.look(Surface::Stranger, "a request that is signed badly", &reply.text());
        }
        for _ in 0..8 {
            let traceparent = self.plant(HEADER);
            let request =
                Request::new("GET", "/v1/routes").token(&self.router).header("traceparent", &traceparent);
            assert_eq!(self.daemon.send(&request).status, 200);
        }
    }

    /// A TaskSpec with a canary in every member that says what the work is.
    pub(super) fn loaded(&self) -> Json {
        let mut spec = spec("unnamed_0001");
        self.name(&mut spec);
        self.load(&mut spec);
        spec["source"]["sessionId"] = self.plant("source.sessionId").into();
        spec
    }

    pub(super) fn name(&self, spec: &mut Json) {
        const IDS: &str = "handoffId, correlationId, idempotencyKey";
        spec["handoffId"] = format!("hs_{}", self.plant(IDS)).into();
        spec["correlationId"] = self.plant(IDS).into();
        spec["audit"]["requestId"] = self.plant(AUDIT).into();
        spec["audit"]["idempotencyKey"] = self.plant(IDS).into();
    }

    pub(super) fn load(&self, spec: &mut Json) {
        const DONE: &str = "acceptance.doneWhen, acceptance.expectedArtifacts";
        const INPUT: &str = "intent.input, names and values";
        spec["intent"]["summary"] = self.plant("intent.summary").into();
        spec["acceptance"]["doneWhen"] = json!([self.plant(DONE), self.plant(DONE)]);
        spec["acceptance"]["expectedArtifacts"] = json!([self.plant(DONE)]);
        spec["rollback"]["trigger"] = self.plant("rollback.trigger").into();
        spec["audit"]["traceId"] = self.plant(AUDIT).into();
        let memo: serde_json::Map<String, Json> =
            (0..4).map(|_| (self.plant(INPUT), json!(self.plant(INPUT)))).collect();
        spec["intent"]["input"]["memo"] = memo.into();
    }

    /// Work that is taken, and work that is not.
    pub(super) fn work(&mut self) {
        for n in 0..4 {
            let mut spec = self.loaded();
            if n == 3 {
                spec["taskSpecVersion"] = "1.1".into();
                let more = json!({"loop_id": "loop_canary00", "proposed_by": self.plant(REVIEW), "risk_profile": "low",
                    "review_depth": 1, "review_feedback_required": false, "auto_approve_window": 0,
                    "review_reason": self.plant(REVIEW)});
                spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            }
            self.ask(&self.router, "POST", "/v1/handoffs/check", &spec, 200);
            let reply = self.ask(&self.router, "POST", "/v1/handoffs", &spec, 201).json();
            let receipt =
                reply["receipt"].as_str().map_or_else(|| reply["receipt"].to_string(), str::to_owned);
            let proof = receipt.rsplit(['.', '"']).find(|part| part.len() > 40).unwrap_or(&receipt);
            self.canaries.is("a receipt, a dispatch signature", proof);
            self.taken.push(spec);
        }
        self.delegated();
        for _ in 0..10 {
            let mut spec = spec("refused_0001");
            spec[self.plant(REFUSED)] = self.plant(REFUSED).into();
            spec["mode"] = self.plant(REFUSED).into();
            self.ask(&self.router, "POST", "/v1/handoffs", &spec, 422);
            let torn = format!("{{\"handoffId\": \"{}", self.plant(REFUSED));
            let request = Request::new("POST", "/v1/handoffs").token(&self.router).json(torn);
            assert_eq!(self.daemon.send(&request.header("traceparent", TRACEPARENT)).status, 400);
        }
        // Everything in it is called by a name that nobody knows.
        let mut spec = spec("unknown_0001");
        self.name(&mut spec);
        const ENDS: &str = "agents, route and operation, also unknown ones";
        spec["target"] = json!({"agentId": self.plant(ENDS), "capability": self.plant("target.capability")});
        spec["routing"]["routeKey"] = self.plant(ENDS).into();
        spec["intent"]["operation"] = self.plant(ENDS).into();
        self.ask(&self.router, "POST", "/v1/handoffs", &spec, 403);
    }

    /// Mentions that a principal signed: one that is taken, and one whose scope is too narrow.
    fn delegated(&mut self) {
        let phase = json!({"phase": "gated-read", "reason": self.plant(REASON)});
        self.ask(&self.rita, "PUT", "/v1/mentions/phase", &phase, 200);
        for (n, status) in [(0, 201), (1, 403)] {
            let message = self.canaries.plant_number("a mention's messageId");
            let spec = signed(mention(&format!("canary_{n:04}"), &message), |spec| {
                self.name(spec);
                self.load(spec);
                let session = self.plant("the envelope's delegateAgent.sessionId");
                spec["source"]["sessionId"] = session.clone().into();
                spec["authorship"]["envelope"]["delegateAgent"]["sessionId"] = session.into();
                if n == 1 {
                    spec["authorship"]["envelope"]["scope"]["tasks"] = json!(["something.else"]);
                }
            });
            let proof = spec["authorship"]["envelope"]["proof"]["signature"].as_str().unwrap();
            self.canaries.is(SIGNATURE, proof);
            self.ask(&self.router, "POST", "/v1/handoffs", &spec, status);
            if status == 201 {
                let marked = json!({"handoffId": spec["handoffId"], "reason": self.plant(REASON)});
                let place = format!("/v1/mentions/{message}/false-positive");
                let reply = self.daemon.post_as(&self.rita, &place, &marked);
                assert!(matches!(reply.status, 200 | 201), "{reply:?}");
            }
            self.taken.push(spec);
        }
    }

    /// What agents and people say.
    pub(super) fn words(&self) {
        const REPORTS: &str = "what an agent reports: artifacts, why it is blocked or failed";
        let words = || self.plant(REPORTS);
        let artifact = json!({"artifact_id": words(), "uri": format!("s3://{}/1", words()),
            "version": 1, "hash": format!("sha256:{}", "0".repeat(64))});
        let told = [
            ("task.claimed", "working", false, json!({})),
            ("task.started", "working", false, json!({})),
            ("artifact.ready", "working", false, artifact),
            ("task.blocked", "input_required", false, json!({"reason": words()})),
            ("task.failed", "failed", true, json!({"code": "TASK_FAILED", "message": words()})),
        ];
        for (seq, (kind, category, terminal, payload)) in (4..).zip(told) {
            let event = event(&self.taken[0], seq, kind, "crypto-sage", (category, terminal), payload);
            self.ask(&self.sage, "POST", &format!("{}/events", location(&self.taken[0])), &event, 201);
        }
        let payload = json!({"reason": words()});
        let event = event(&self.taken[1], 4, "task.cancelled", ROUTER, ("canceled", true), payload);
        self.ask(&self.router, "POST", &format!("{}/events", location(&self.taken[1])), &event, 201);

        let reason = || self.plant(REASON);
        let freeze = json!({"scope": "mode", "mode": "live", "reason": reason()});
        self.ask(&self.rita, "POST", "/v1/freeze", &freeze, 200);
        let lift = json!({"scope": "mode", "mode": "live", "reason": reason()});
        self.ask(&self.rita, "DELETE", "/v1/freeze", &lift, 200);
        let freeze = json!({"scope": "mode", "mode": "live", "reason": reason()});
        self.ask(&self.rita, "POST", "/v1/freeze", &freeze, 200);
        let gate = json!({"reason": reason()});
        self.ask(&self.rita, "POST", &format!("/v1/routes/{ROUTE}/gates/G0"), &gate, 200);
        self.ask(&self.rita, "POST", &format!("/v1/routes/{ROUTE}/gates/G1"), &gate, 200);
        let run = json!({"handoffId": self.taken[2]["handoffId"],
            "evidence": {"runId": self.plant("evidence of a run"), "report": self.plant("evidence of a run")}});
        self.ask(&self.bench, "POST", &format!("/v1/routes/{ROUTE}/gates/G3"), &run, 200);
        let grant = json!({"principal": "user:main", "agents": ["blockchain-operator"], "operations": ["transfer"],
            "modes": ["simulated"], "expiresAt": signing::from_now(600), "uses": 1});
        let made = self.ask(&self.rita, "POST", "/v1/authorizations", &grant, 201).json();
        let grant = made["authorizationRef"].as_str().unwrap();
        let place = format!("/v1/authorizations/{grant}?reason={}", reason());
        self.ask(&self.rita, "DELETE", &place, &Json::Null, 200);
        let rollback = json!({"reason": reason(), "block": true});
        self.ask(&self.rita, "POST", &format!("/v1/routes/{ROUTE}/rollback"), &rollback, 200);
        self.ask(
            &self.rita,
            "POST",
            &format!("/v1/routes/{ROUTE}/unblock"),
            &json!({"reason": reason()}),
            200,
        );
    }

    /// A changed set, which waits; and what a person says to it.
    pub(super) fn proposed(&self) -> String {
        let path = self.daemon.path(ROUTES);
        let mut table: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let number = table["routes"].as_object().unwrap().len();
        table["routes"][format!("another-{number}.execution-plane.v1")] = table["routes"][ROUTE].clone();
        write(&path, table.to_string());
        self.ask(&self.daemon.admin, "POST", "/v1/reload", &Json::Null, 200);
        let shown = self.ask(&self.rita, "GET", "/v1/policies", &Json::Null, 200).json();
        shown["pending"]["digest"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    pub(super) fn answered(&self) {
        for word in ["reject", "approve"] {
            let digest = self.proposed();
            let said = json!({"digest": digest, "decision": word, "reason": self.plant(REASON)});
            self.ask(&self.rita, "POST", "/v1/policies/approval", &said, 200);
        }
    }

    /// What is said over A2A, and where a client wants to be told.
    pub(super) fn over_a2a(&mut self) {
        const MESSAGE: &str = "an A2A message: its text, data, files and metadata";
        const IDS: &str = "an A2A message's messageId and contextId";
        const CALL: &str = "a JSON-RPC request: its id, a method that nobody knows";
        // Nobody listens there, so that what is told of failed deliveries is seen, too.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for _ in 0..4 {
            let data = json!({self.plant(MESSAGE): self.plant(MESSAGE)});
            let file = json!({"name": self.plant(MESSAGE), "mimeType": "text/plain",
                "uri": format!("https://files.example/{}", self.plant(MESSAGE))});
            // 21 bytes, which are 28 letters without padding.
            let bytes = base64_within(format!("{}.", self.plant(MESSAGE)).as_bytes(), 0);
            let message = json!({"kind": "message", "messageId": self.plant(IDS), "contextId": self.plant(IDS),
                "role": "user", "metadata": {"said": self.plant(MESSAGE)},
                "parts": [{"kind": "text", "text": self.plant(MESSAGE)}, {"kind": "data", "data": data},
                    {"kind": "file", "file": file, "metadata": {"of": self.plant(MESSAGE)}},
                    {"kind": "file", "file": {"bytes": bytes}}]});
            let task = self.rpc(&self.router, "message/send", json!({"message": message}));
            let id = task["result"]["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
            let config = json!({"taskId": id, "pushNotificationConfig": {"id": "canary",
                "url": format!("http://{silent}/{}", self.plant(HOOK)), "token": self.plant(HOOK),
                "authentication": {"schemes": ["Bearer"], "credentials": self.plant(HOOK)}}});
            let set = self.rpc(&self.router, "tasks/pushNotificationConfig/set", config);
            assert!(set.get("result").is_some(), "{set}");
            self.tasks.push(id);
        }
        // Requests that come to nothing: by a known caller, who gets its own id back, and by nobody.
        for n in 0..4 {
            let method = if n == 0 { "tasks/get".to_owned() } else { self.plant(CALL) };
            let body =
                json!({"jsonrpc": "2.0", "id": self.plant(CALL), "method": method, "params": {"id": "none"}});
            let request =
                Request::new("POST", "/rpc").header("traceparent", TRACEPARENT).json(body.to_string());
            let told = send(self.daemon.address, &request.clone().token(&self.router)).text();
            self.canaries.look(Surface::Own, "an error of JSON-RPC", &told);
            assert!(told.contains(body["id"].as_str().unwrap()), "{told}");
            send(self.daemon.address, &request);
        }
        // A model gateway that is not there, so that what is told of it is seen.
        self.rpc(
            &self.router,
            "ai/chat",
            json!({"model": "m", "messages": [{"role": "user", "content": self.plant(MESSAGE)}]}),
        );
    }

    pub(super) fn rpc(&self, token: &str, method: &str, params: Json) -> Json {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = Request::new("POST", "/rpc").token(token).header("traceparent", TRACEPARENT).json(body);
        send(self.daemon.address, &request).json()
    }

    /// An operator with a session, and one who came by a link.
    pub(super) fn visitors(&self) -> [Visitor<'_>; 2] {
        const SESSION: &str = "a session, a link that works once, a form's word";
        let made = self.ask(&self.rita, "POST", "/v1/console/links", &Json::Null, 201).json();
        let path = made["path"].as_str().unwrap();
        self.canaries.is(SESSION, path.split_once("link=").unwrap().1);
        let visitors = [Visitor::log_in(&self.daemon, &self.rita), Visitor::follow(&self.daemon, path)];
        for visitor in &visitors {
            self.canaries.is(SESSION, visitor.cookie.split_once('=').unwrap().1);
        }
        visitors
    }
}

pub(super) const TOKEN: &str = "a token, also one that is wrong";
pub(super) const SETTINGS: &str =
    "settings: the database's password, headers for a collector, the model gateway's key";
const KEY: &str = "a shared key, of every purpose";
const NAMES: &str = "names of tokens and keys";
const HEADER: &str = "headers: Authorization, Cookie, User-Agent, Referer and others";
const QUERY: &str = "a query, or a path that leads nowhere";
const SIGNED: &str = "a signed request: its nonce, its signature";
const AUDIT: &str = "audit.requestId, audit.traceId";
pub(super) const REVIEW: &str = "proposed_by, review_reason";
pub(super) const SIGNATURE: &str = "an envelope's signature";
pub(super) const HOOK: &str = "a webhook: its path, its token, its credentials";
pub(super) const REFUSED: &str = "a body that was not taken: torn, or with members that nobody knows";
pub(super) const REASON: &str =
    "an operator's reason: freeze, phase, gate, rollback, block, grant, approval, policy set, false positive";

pub(super) fn event(
    spec: &Json,
    seq: u64,
    kind: &str,
    agent: &str,
    (category, terminal): (&str, bool),
    payload: Json,
) -> Json {
    json!({
        "wire": "1.1", "wire_id": format!("wire_{}{seq:04}", spec["handoffId"].as_str().unwrap().trim_start_matches("hs_")), "type": kind,
        "ts": "2026-02-18T19:38:05Z", "sender": format!("agent:{agent}"), "payload": payload,
        "state": {"category": category, "terminal": terminal},
        "stream": {"stream_id": format!("task:{}:attempt:1", spec["handoffId"].as_str().unwrap()),
            "stream_seq": seq, "context_id": spec["correlationId"], "correlation_id": spec["correlationId"]},
    })
}
