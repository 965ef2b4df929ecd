//! Members that name something, packets and batches; and where it is told as it happens, or kept beside: streams, webhooks,
//! A2A's answers, a backup.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::delegated::{mention, signed};
use super::super::harness::{eventually, location, spec};
use super::super::receiver::Receiver;
use super::super::streams::Events;
use super::super::wire::{Request, send};
use super::canaries::Surface;
use super::planting::{Garden, HOOK, REFUSED, REVIEW, SIGNATURE, event};

const REFERRED: &str = "whom and what it refers to: parentHandoffId, principal.id, policyRef, authorizationRef, fallbackAgentId, a mention's channel";
const FILES: &str = "inputSchemaRef, planRef";
const BOTS: &str = "a mention's bots, proof.keyId, loop_id";
const LISTS: &str = "members of allowlists and scope";
const BINDING: &str = "the envelope's binding";
const PACKET: &str = "an evidence packet, which is answered and not kept";

impl Garden {
    /// Whatever refers to something refers to what nobody knows, in a person's name.
    pub(super) fn references(&mut self) {
        let message = self.canaries.plant_number("a mention's messageId");
        let number = |place| self.canaries.plant_number(place);
        let mut spec = signed(mention("references_0001", &message), |spec| {
            self.name(spec);
            self.load(spec);
            let more = json!({"taskSpecVersion": "1.1", "loop_id": format!("loop_{}", self.plant(BOTS)),
                "proposed_by": self.plant(REVIEW), "risk_profile": "low", "review_depth": 1,
                "review_feedback_required": false, "auto_approve_window": 0,
                "parentHandoffId": format!("hs_{}", self.plant(REFERRED))});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec["routing"]["fallbackAgentId"] = self.plant(REFERRED).into();
            spec["intent"]["inputSchemaRef"] = format!("config/{}.schema.v1.json", self.plant(FILES)).into();
            spec["rollback"]["planRef"] = format!("docs/{}.md", self.plant(FILES)).into();
            let channel = || format!("discord:channel:{}", number(LISTS));
            let own = json!({"policyRef": format!("policies/delegation/{}.json", self.plant(REFERRED)),
                "allowAgents": [self.plant(LISTS)], "allowChannels": [channel()], "allowTasks": [self.plant(LISTS)]});
            spec["authorship"]["delegationPolicy"] = own;
            let envelope = &mut spec["authorship"]["envelope"];
            envelope["principal"]["id"] = self.plant(REFERRED).into();
            envelope["scope"] = json!({"agents": [self.plant(LISTS)], "channels": [channel()],
                "tasks": [self.plant(LISTS)]});
            let digest = format!("sha256:{:0>64}", number(BINDING));
            envelope["binding"] = json!({"handoffId": format!("hs_{}", self.plant(BINDING)), "intentHash": digest,
                "messageId": number(BINDING), "channel": format!("discord:channel:{}", number(BINDING))});
            spec["authorship"]["risk"] = json!({"classification": "sensitive", "requiresConfirmation": true,
                "authorizationRef": self.plant(REFERRED)});
            let mention = &mut spec["authorship"]["mentionDelegation"];
            mention["channel"] = format!("discord:channel:{}", number(REFERRED)).into();
            mention["originBotId"] = self.plant(BOTS).into();
            mention["targetBotId"] = self.plant(BOTS).into();
        });
        spec["authorship"]["envelope"]["proof"]["keyId"] = self.plant(BOTS).into();
        self.ask(&self.router, "POST", "/v1/handoffs/check", &spec, 200);
        let told = self.ask(&self.router, "POST", "/v1/handoffs", &spec, 422).text();
        // Its shape is right, so that all of it was read.
        assert!(!told.contains("A2A_TASKSPEC_INVALID") && told.contains("A2A_KEY_UNKNOWN"), "{told}");
        self.taken.push(spec);

        // A policy takes names that it does not have when they begin as it says.
        let message = self.canaries.plant_number("a mention's messageId");
        let spec = signed(mention("references_0002", &message), |spec| {
            self.name(spec);
            let task = format!("hyperliquid.{}", self.plant(LISTS));
            let own = spec["authorship"]["delegationPolicy"]["allowTasks"].as_array_mut().unwrap();
            own.push(task.clone().into());
            let scope = spec["authorship"]["envelope"]["scope"]["tasks"].as_array_mut().unwrap();
            scope.push(task.into());
        });
        self.ask(&self.router, "POST", "/v1/handoffs", &spec, 201);
        self.taken.push(spec);
    }

    /// Packets that others made, and many TaskSpecs at once, of which one is taken.
    pub(super) fn packets_and_batches(&mut self) {
        for n in 0..5 {
            let mode = ["strict", "lenient"][n % 2];
            let packet = json!({"protocol": "a2a", "version": "0.3.0", "event_type": "task.requested",
                "timestamp": "2026-03-01T08:30:00Z", "agent": {"id": self.plant(PACKET), "role": "orchestrator"},
                "task": {"id": self.plant(PACKET), "status": "requested", "kind": "delegation"},
                "message": {"id": self.plant(PACKET), "text": self.plant(PACKET)},
                self.plant(PACKET): {self.plant(PACKET): [self.plant(PACKET)]}});
            let reply = self.daemon.post_as(&self.router, &format!("/v1/evidence/a2a?mode={mode}"), &packet);
            assert!(matches!(reply.status, 200 | 422), "{reply:?}");
        }
        let mut good = self.loaded();
        good["intent"]["summary"] = self.plant("intent.summary").into();
        let mut all = vec![good.clone()];
        for _ in 0..5 {
            let mut bad = spec("refused_in_a_batch_0001");
            bad[self.plant(REFUSED)] = json!({self.plant(REFUSED): self.plant(REFUSED)});
            all.push(bad);
        }
        let told = self.ask(&self.router, "POST", "/v1/handoffs/batch", &all.into(), 200).json();
        assert_eq!(told["decisions"][0]["decision"], "allowed", "{told}");
        self.taken.push(good);
        let torn = format!("[{{\"handoffId\": \"{}\"}}, {{", self.plant(REFUSED));
        let request = Request::new("POST", "/v1/handoffs/batch").token(&self.router).json(torn);
        assert_eq!(self.daemon.send(&request).status, 400);
    }

    /// What those are told who follow, what a webhook is sent, and what an A2A client is answered.
    pub(super) fn look_at_what_is_told(&self) {
        let hook = Receiver::willing();
        let followed = &self.taken[3];
        let id = followed["handoffId"].as_str().unwrap();
        let config = json!({"taskId": id, "pushNotificationConfig": {"id": "told",
            "url": hook.url(&format!("/{}", self.plant(HOOK))), "token": self.plant(HOOK)}});
        let set = self.rpc(&self.router, "tasks/pushNotificationConfig/set", config);
        assert!(set.get("result").is_some(), "{set}");

        let visitors = self.visitors();
        let mut live = Events::open(&self.daemon, &visitors[0].with(Request::new("GET", "/console/live")));
        for (seq, kind) in [(4, "task.claimed"), (5, "task.started")] {
            let event = event(followed, seq, kind, "crypto-sage", ("working", false), json!({}));
            self.ask(&self.sage, "POST", &format!("{}/events", location(followed)), &event, 201);
            let told = live.next_event().unwrap();
            self.canaries.look(Surface::Lists, "/console/live", told.text());
        }
        let sent = eventually("the webhook is told", || Some(hook.received()).filter(|all| all.len() >= 2));
        for one in sent {
            let body = String::from_utf8(one.body).unwrap();
            assert!(body.contains(id), "what is looked for can be found: {body}");
            self.canaries.look(Surface::Own, "a webhook's body", &body);
        }

        let head = self.daemon.events().len() as u64;
        self.follow(&self.auditor, "/v1/audit/stream?from=1", Surface::Ledger, Some(head));
        let of_failed = self.taken[0]["handoffId"].as_str().unwrap();
        for token in [&self.router, &self.sage, &self.rita] {
            let target = format!("/v1/handoffs/{of_failed}/stream?from=1");
            self.follow(token, &target, Surface::Own, Some(8));
        }
        self.follow(&self.router, &format!("/stream/{of_failed}?from=1"), Surface::Own, None);
        let stranger = self.daemon.token("follower", "orchestrator", Some("follower"));
        let open = ["/v1/audit/stream?from=1", "/console/live"].map(str::to_owned);
        let own = [format!("/v1/handoffs/{of_failed}/stream?from=1"), format!("/stream/{of_failed}?from=1")];
        for target in open.iter().chain(&own) {
            let request = Request::new("GET", target);
            for request in [request.clone().token(&stranger), request] {
                let reply = send(self.daemon.address, &request);
                assert_ne!(reply.status, 200, "{target}");
                self.canaries.look(Surface::Stranger, target, &reply.text());
            }
        }

        let tasks = self.tasks.iter().map(String::as_str).chain([id, of_failed]);
        for task in tasks {
            for method in ["tasks/get", "tasks/pushNotificationConfig/list"] {
                let mut told = self.rpc(&self.router, method, json!({"id": task, "historyLength": 10}));
                // Whoever set a webhook is shown where it is, and nothing else of it.
                for config in told["result"].as_array_mut().into_iter().flatten() {
                    assert!(config["pushNotificationConfig"]["url"].take().is_string(), "{config}");
                }
                self.canaries.look(Surface::Own, method, &told.to_string());
            }
        }
        for method in ["tasks/list", "agent/getAuthenticatedExtendedCard"] {
            let told = self.rpc(&self.router, method, json!({}));
            self.canaries.look(Surface::Own, method, &told.to_string());
        }
    }

    /// Reads a stream until the event of this number, or to its end.
    fn follow(&self, token: &str, target: &str, surface: Surface, until: Option<u64>) {
        let mut events = Events::open(&self.daemon, &Request::new("GET", target).token(token));
        let mut count = 0;
        while let Some(event) = events.next_event() {
            count += 1;
            self.canaries.look(surface, target, event.text());
            if until.is_some() && event.id == until {
                break;
            }
        }
        assert!(count > 3, "{count} events of {target}");
    }

    /// A backup has the workspace's secrets on purpose, for nobody but its owner, and in the files that are for them alone.
    pub(super) fn look_at_a_backup(&self) {
        let root = tempfile::tempdir().unwrap();
        let to = root.path().join("backup");
        self.daemon.cli_ok(&["backup", "--to", to.to_str().unwrap()]);
        self.look_at_files(&to);
    }

    /// What a running daemon keeps: the same, and its database for searching.
    pub(super) fn look_at_memory(&self) {
        self.look_at_files(&self.daemon.path("memory"));
    }

    fn look_at_files(&self, root: &Path) {
        let mut seen = [0; 3];
        for path in files(root) {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            if HOLD_SECRETS.iter().any(|known| name.contains(known)) {
                assert_eq!(mode, 0o600, "{name}");
                seen[0] += 1;
            } else if name.contains("ledger/") || name == "journal" {
                assert_eq!(mode, 0o600, "{name}");
                let (entries, beside): (Vec<_>, Vec<_>) =
                    text.lines().partition(|line| line.starts_with("{\"hcs\""));
                self.canaries.look(Surface::Ledger, &name, &entries.join("\n"));
                // Each TaskSpec that was decided stands beside its entries as it came: also one that was refused for members
                // that nobody knows, and with the signature of its envelope.
                self.canaries.look_but_for(&[REFUSED, SIGNATURE], Surface::Own, &name, &beside.join("\n"));
                seen[1] += 1;
            } else {
                self.canaries.look(Surface::Ledger, &name, &text);
                seen[2] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?} of {:?}", files(root));
    }
}

/// Files that are there to keep a secret.
const HOLD_SECRETS: [&str; 4] = ["keyring.json", "gateway.key", "admin.token", "push"];

fn files(directory: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    all.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
