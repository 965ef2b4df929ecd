//! The shapes that `/openapi.json` refers to by name. What the product validates with stands in `docs/schemas/`.

/// Name and text of every schema.
pub(super) const SCHEMAS: &[(&str, &str)] = &[
    ("TaskSpec", include_str!("../../docs/schemas/task-spec.schema.json")),
    ("Decision", include_str!("../../docs/schemas/decision.schema.json")),
    ("State", include_str!("../../docs/schemas/orchestration-state.schema.json")),
    ("AgentCard", crate::a2a::CARD_SCHEMA),
    (
        "RpcRequest",
        r##"{"oneOf": [{"$ref": "#/components/schemas/RpcCall"},
            {"type": "array", "minItems": 1, "maxItems": 100, "items": {"$ref": "#/components/schemas/RpcCall"}}]}"##,
    ),
    (
        "RpcCall",
        r#"{"type": "object", "required": ["jsonrpc", "method"], "properties": {
            "jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer", "null"]},
            "method": {"type": "string"}, "params": {"type": "object"}}}"#,
    ),
    (
        "RpcAnswer",
        r##"{"oneOf": [{"$ref": "#/components/schemas/RpcReply"},
            {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/RpcReply"}}]}"##,
    ),
    (
        "RpcReply",
        r#"{"type": "object", "required": ["jsonrpc", "id"], "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
            "properties": {"jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "number", "null"]}, "result": true,
            "error": {"type": "object", "required": ["code", "message"], "properties": {
                "code": {"type": "integer"}, "message": {"type": "string"}, "data": true}}}}"#,
    ),
    ("Problem", PROBLEM),
    (
        "TaskSpecs",
        r##"{"type": "array", "minItems": 1, "maxItems": 1000, "items": {"$ref": "#/components/schemas/TaskSpec"}}"##,
    ),
    (
        "Decisions",
        r##"{"type": "object", "required": ["decisions"], "properties": {
            "decisions": {"type": "array", "items": {"$ref": "#/components/schemas/Decision"}}}}"##,
    ),
    (
        "HandoffPage",
        r##"{"type": "object", "required": ["handoffs", "next"], "properties": {
            "handoffs": {"type": "array", "items": {"$ref": "#/components/schemas/Handoff"}},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page; null on the last"}}}"##,
    ),
    ("Handoff", HANDOFF),
    (
        "HandoffDetail",
        r##"{"allOf": [{"$ref": "#/components/schemas/Handoff"}, {"type": "object", "required": ["history"], "properties": {
            "history": {"type": "array", "description": "Every attempt that the caller may see, each with its timeline", "items": {
                "type": "object", "required": ["attempt", "status", "timeline"], "properties": {
                    "timeline": {"type": "array", "items": {"$ref": "#/components/schemas/TimelineEntry"}}}}}}}]}"##,
    ),
    (
        "TimelineEntry",
        r#"{"type": "object", "required": ["sequence", "at", "type", "payload"], "properties": {
            "sequence": {"type": "integer"}, "at": {"type": "string"}, "runningHash": {"type": "string"},
            "type": {"type": "string"}, "streamSeq": {"type": "integer"}, "sender": {"type": "string"},
            "payload": {"type": "object"}}}"#,
    ),
    (
        "EntryPage",
        r##"{"type": "object", "required": ["entries", "next"], "properties": {
            "entries": {"type": "array", "items": {"$ref": "#/components/schemas/EntryRow"}},
            "next": {"type": ["string", "null"]}}}"##,
    ),
    (
        "EntryRow",
        r#"{"type": "object", "required": ["sequence", "consensusTimestamp", "type", "streamId"], "properties": {
            "sequence": {"type": "integer", "minimum": 1}, "consensusTimestamp": {"type": "string"},
            "type": {"type": "string"}, "streamId": {"type": "string"}, "handoffId": {"type": ["string", "null"]},
            "attempt": {"type": ["integer", "null"]}, "correlationId": {"type": "string"},
            "decision": {"type": ["string", "null"]}, "codes": {"type": "array", "items": {"type": "string"}}}}"#,
    ),
    (
        "Entry",
        r#"{"type": "object", "required": ["hcs", "wire"], "properties": {
            "hcs": {"type": "object", "required": ["topic_id", "sequence_number", "consensus_timestamp", "running_hash"]},
            "wire": {"type": "object", "description": "The Wire v1.1 event"}}}"#,
    ),
    (
        "Verification",
        r#"{"type": "object", "required": ["verified"], "properties": {
            "verified": {"type": "boolean"}, "finding": {"type": "string", "description": "The first difference"},
            "entries": {"type": "integer"}, "runningHash": {"type": ["string", "null"]}}}"#,
    ),
    (
        "Checkpoint",
        r#"{"type": "object", "description": "Signed with the gateway's Ed25519 key; docs/ledger.md has its form"}"#,
    ),
    (
        "ConsoleLink",
        r#"{"type": "object", "required": ["path", "expiresAt"], "properties": {
            "path": {"type": "string", "description": "On this gateway; whoever opens it first looks in the caller's name"},
            "expiresAt": {"type": "string", "format": "date-time"}}}"#,
    ),
    (
        "Policies",
        r##"{"type": "object", "required": ["digest", "inForce", "withheld", "loadedAt", "routes", "policies", "delegation", "lastLoad",
            "approval", "replaced", "pending"], "properties": {
            "digest": {"type": "string", "description": "Of the set that this gateway has"},
            "inForce": {"type": ["string", "null"], "description": "The digest of the set in force, as the ledger says"},
            "withheld": {"type": ["string", "null"], "description": "Why nothing is decided by the set that is here; null if it is in force"},
            "loadedAt": {"type": "string"},
            "routes": {"type": "array", "items": {"type": "string"}},
            "policies": {"type": "array", "items": {"type": "string"}, "description": "The files of the delegation policies"},
            "delegation": {"type": "array", "description": "What each of them says, in the same order",
                "items": {"type": "object", "required": ["policyRef", "definition"], "properties": {
                    "policyRef": {"type": "string"},
                    "definition": {"type": "object", "description": "As docs/schemas/policy.schema.json has it"}}}},
            "lastLoad": {"type": "object", "required": ["outcome", "at"], "properties": {
                "outcome": {"enum": ["loaded", "failed"]}, "at": {"type": "string"}, "why": {"type": "string"}}},
            "approval": {"enum": ["auto", "operator"], "description": "Whether a changed set is in force at once, or when an operator says so"},
            "replaced": {"type": ["object", "null"], "required": ["digest", "changes", "changesTotal"],
                "description": "The set that was here before, and what changed; null where that was before the gateway was started", "properties": {
                "digest": {"type": "string"}, "changesTotal": {"type": "integer", "minimum": 0},
                "changes": {"type": "array", "maxItems": 100, "items": {"$ref": "#/components/schemas/PolicyChange"}}}},
            "pending": {"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/PendingPolicies"}]}}}"##,
    ),
    (
        "PolicyChange",
        r#"{"type": "object", "required": ["file", "routeKey", "change", "fields"], "properties": {
            "file": {"type": "string"}, "routeKey": {"type": ["string", "null"]},
            "change": {"enum": ["added", "removed", "changed"]},
            "fields": {"type": "array", "description": "Members of a route or a delegation policy that differ; null is none",
                "items": {"type": "object", "required": ["name", "before", "after"], "properties": {
                    "name": {"type": "string"}, "before": {}, "after": {}}}}}}"#,
    ),
    (
        "PendingPolicies",
        r##"{"type": "object", "required": ["digest", "previousDigest", "state", "since", "files", "filesTotal", "changes", "changesTotal",
            "sequence", "rejected"],
            "description": "The set that the files have, and that is not in force", "properties": {
            "digest": {"type": "string"},
            "previousDigest": {"type": "string", "description": "Of the set in force, which it would replace"},
            "state": {"enum": ["waiting", "rejected"]}, "since": {"type": "string"},
            "files": {"type": ["array", "null"], "maxItems": 100, "items": {"type": "string"},
                "description": "Those that are not the same in both sets; null if it is no longer known what the one in force consists of"},
            "filesTotal": {"type": ["integer", "null"], "minimum": 0},
            "changes": {"type": ["array", "null"], "maxItems": 100, "items": {"$ref": "#/components/schemas/PolicyChange"},
                "description": "What would change; null if what the set in force says is no longer known"},
            "changesTotal": {"type": ["integer", "null"], "minimum": 0},
            "sequence": {"type": ["integer", "null"], "minimum": 1, "description": "The entry that proposed it"},
            "rejected": {"type": ["object", "null"], "required": ["by", "at", "reason", "sequence"], "properties": {
                "by": {"type": "string"}, "at": {"type": "string"}, "reason": {"type": "string"},
                "sequence": {"type": "integer", "minimum": 1}}}}}"##,
    ),
    (
        "PolicyAnswered",
        r#"{"type": "object", "required": ["digest", "previousDigest", "decision", "inForce", "sequence"], "properties": {
            "digest": {"type": "string"}, "previousDigest": {"type": "string"},
            "decision": {"enum": ["approved", "rejected"]},
            "inForce": {"type": ["string", "null"], "description": "The digest of the set in force now"},
            "sequence": {"type": "integer", "minimum": 1, "description": "The entry that says so"}}}"#,
    ),
    (
        "Reloaded",
        r#"{"type": "object", "required": ["changed", "broken", "policyDigest", "pendingDigest", "sequence"], "properties": {
            "changed": {"type": "boolean"},
            "broken": {"type": "array", "description": "What was not asked for and is not in force, for its files cannot be read",
                "items": {"type": "object", "required": ["part", "why"], "properties": {
                    "part": {"enum": ["policies", "keys", "tokens"]}, "why": {"type": "string"}}}},
            "policyDigest": {"type": "string"},
            "pendingDigest": {"type": ["string", "null"], "description": "Of a changed set that waits for an operator's yes"},
            "sequence": {"type": "integer"}}}"#,
    ),
    ("Alive", r#"{"type": "object", "required": ["status"], "properties": {"status": {"const": "alive"}}}"#),
    ("Ready", READY),
    (
        "TokenList",
        r##"{"type": "object", "required": ["tokens"], "properties": {
            "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}}}}"##,
    ),
    ("Token", TOKEN),
    ("NewToken", super::token_ask::NEW_TOKEN),
    (
        "KeyList",
        r##"{"type": "object", "required": ["keys"], "properties": {
            "keys": {"type": "array", "items": {"$ref": "#/components/schemas/Key"}}}}"##,
    ),
    (
        "Key",
        r#"{"type": "object", "required": ["keyId", "owner", "purpose", "algorithm", "valid"], "properties": {
            "keyId": {"type": "string"}, "owner": {"type": "string"}, "purpose": {"type": "string"},
            "algorithm": {"type": "string"}, "notBefore": {"type": ["string", "null"]},
            "notAfter": {"type": ["string", "null"]}, "valid": {"type": "boolean"}}}"#,
    ),
    (
        "NewKey",
        r#"{"type": "object", "required": ["keyId", "owner"], "additionalProperties": false, "properties": {
            "keyId": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"},
            "owner": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"},
            "purpose": {"enum": ["envelope", "dispatch", "request"]},
            "algorithm": {"enum": ["hmac-sha256", "ed25519"]},
            "secret": {"type": "string", "minLength": 16, "description": "Of an hmac-sha256 key: its text is the key"},
            "publicKey": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Of an ed25519 key"},
            "notBefore": {"type": "string", "format": "date-time"},
            "notAfter": {"type": "string", "format": "date-time"}},
            "oneOf": [
                {"required": ["secret"], "properties": {"algorithm": {"const": "hmac-sha256"}, "publicKey": false}},
                {"required": ["algorithm", "publicKey"], "properties": {"algorithm": {"const": "ed25519"}, "secret": false}}]}"#,
    ),
    (
        "Jwks",
        r#"{"type": "object", "required": ["keys"], "properties": {"keys": {"type": "array", "items": {"type": "object"}}}}"#,
    ),
    ("Packet", r#"{"type": "object", "description": "An A2A packet; docs/evidence.md has its form"}"#),
    (
        "Evidence",
        r#"{"type": "object", "description": "What was seen on the packet, or why it cannot be told", "properties": {
            "ok": {"type": "object"}, "error": {"type": "object", "required": ["kind", "message"]}}}"#,
    ),
    ("WireEvent", WIRE_EVENT),
    (
        "Reported",
        r#"{"type": "object", "required": ["handoffId", "attempt", "streamSeq", "status", "terminal", "replayed", "sequence"],
            "properties": {"handoffId": {"type": "string"}, "attempt": {"type": "integer", "minimum": 1},
            "streamSeq": {"type": "integer", "minimum": 1}, "status": {"type": "string"}, "terminal": {"type": "boolean"},
            "replayed": {"type": "boolean"}, "sequence": {"type": "integer", "minimum": 1}}}"#,
    ),
    ("Routes", ROUTES),
    ("Route", ROUTE),
    ("GateAsk", GATE_ASK),
    ("GateDecided", GATE_DECIDED),
    ("RollbackAsk", ROLLBACK_ASK),
    ("BlockAsk", BLOCK_ASK),
    ("UnblockAsk", UNBLOCK_ASK),
    ("RolledBack", ROLLED_BACK),
    ("Unblocked", UNBLOCKED),
    ("EvidenceEvent", r#"{"type": "object", "description": "The event that an allowed handoff emitted"}"#),
    ("OpenApi", r#"{"type": "object", "required": ["openapi", "paths"]}"#),
];

const PROBLEM: &str = r#"{"type": "object", "required": ["type", "title", "status", "code", "detail"], "properties": {
    "type": {"type": "string", "format": "uri"}, "title": {"type": "string"}, "status": {"type": "integer"},
    "code": {"type": "string", "description": "Stable: never renamed, never used again"},
    "detail": {"type": "string"},
    "pointer": {"type": "string", "description": "Into the body, or the name of a parameter or header"},
    "hint": {"type": "string", "description": "What to do"},
    "expected": {"type": "integer", "description": "Of WIRE_SEQUENCE: the next number in the stream"},
    "next": {"type": ["string", "null"], "description": "Of ROUTE_GATE_OUT_OF_ORDER: the gate whose turn it is"},
    "faults": {"type": "array", "items": {"type": "object"}, "description": "Everything that is wrong with an event or a body"},
    "reasons": {"type": "array", "items": {"type": "object"}, "description": "Of APPROVAL_HELD: what stands against it now"},
    "frozen": {"type": "array", "items": {"type": "object"}, "description": "Of FREEZE_NOT_SET: what is frozen"},
    "handoffIds": {"type": "array", "items": {"type": "string"}, "description": "Of MENTION_AMBIGUOUS: which there are"}}}"#;

const WIRE_EVENT: &str = r#"{"type": "object", "required": ["wire", "wire_id", "type", "ts", "sender", "payload", "stream"],
    "description": "docs/schemas/agent-wire/v1.1 has the schema of every type", "properties": {
        "wire": {"const": "1.1"}, "wire_id": {"type": "string", "pattern": "^wire_[0-9A-Za-z]{8,64}$"},
        "type": {"type": "string"}, "ts": {"type": "string", "format": "date-time"}, "sender": {"type": "string"},
        "payload": {"type": "object"}, "state": {"type": "object"}, "extensions": {"type": "object"},
        "stream": {"type": "object", "required": ["stream_id", "stream_seq", "context_id", "correlation_id"]}}}"#;

const ROUTES: &str = r##"{"type": "object", "required": ["routes"], "properties": {
    "routes": {"type": "array", "items": {"$ref": "#/components/schemas/Route"}}}}"##;

const ROUTE: &str = r#"{"type": "object",
    "required": ["routeKey", "declared", "stage", "candidateStage", "gateStatus", "lastGatePassed", "nextGate", "blocked", "canary", "gates"],
    "description": "docs/promotion.md explains it. What names handoffs, people or addresses is for those who see every handoff",
    "properties": {
        "routeKey": {"type": "string"}, "declared": {"type": "boolean"},
        "stage": {"enum": ["dev", "simulated", "live"]}, "candidateStage": {"enum": ["simulated", "live", null]},
        "gateStatus": {"enum": ["pending", "passed", "failed", "rolled_back"]},
        "lastGatePassed": {"enum": ["G0", "G1", "G2", "G3", "G4", null]},
        "nextGate": {"enum": ["G0", "G1", "G2", "G3", "G4", null]},
        "blocked": {"type": "boolean"},
        "canary": {"type": ["object", "null"], "required": ["done", "of"], "properties": {
            "done": {"type": "integer"}, "of": {"type": "integer"}, "handoffId": {"type": ["string", "null"]},
            "since": {"type": ["string", "null"]}}},
        "gates": {"type": "array", "items": {"type": "object", "required": ["gate", "title", "status"], "properties": {
            "gate": {"type": "string"}, "title": {"type": "string"}, "status": {"enum": ["passed", "next", "not_yet"]},
            "sequence": {"type": "integer"}, "at": {"type": "string"}, "by": {"type": "string"},
            "evidence": {"type": "array", "items": {"type": "integer"}},
            "handoffId": {"type": ["string", "null"]}, "planRef": {"type": ["string", "null"]}}}},
        "missing": {"type": "array", "description": "For the next gate, as things stand; no agent was asked",
            "items": {"type": "object", "required": ["what", "hint"], "properties": {
                "what": {"type": "string"}, "hint": {"type": "string"}}}},
        "epoch": {"type": "integer"}, "definition": {"type": ["object", "null"]},
        "definitionDigest": {"type": ["string", "null"]}, "gatesDigest": {"type": ["string", "null"]},
        "planRef": {"type": ["string", "null"]}, "pin": {"type": ["object", "null"]},
        "lastOutcome": {"type": ["object", "null"]}, "lastRollback": {"type": ["object", "null"]},
        "approvedBy": {"type": ["string", "null"]}, "approvedAt": {"type": ["string", "null"]},
        "evidence": {"type": "array", "items": {"type": "object"}},
        "inFlight": {"type": "array", "items": {"type": "string"}, "description": "Live handoffs that have not ended"}}}"#;

const GATE_ASK: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "handoffId": {"type": "string", "minLength": 3, "maxLength": 131, "description": "Of G0 and G3: the handoff that it is to rest on"},
    "evidence": {"type": "object", "additionalProperties": false, "minProperties": 1, "description": "Of G3: what shows that the run took place",
        "properties": {"runId": {"type": "string", "minLength": 1, "maxLength": 128},
            "traceId": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "report": {"type": "string", "minLength": 3, "maxLength": 1024}}},
    "reason": {"type": "string", "minLength": 1, "maxLength": 500}}}"#;

const GATE_DECIDED: &str = r#"{"type": "object", "required": ["gate", "status", "missing", "stage"], "properties": {
    "gate": {"type": "string"}, "status": {"enum": ["passed", "failed", "attached"],
        "description": "`attached`: a harness attached evidence, and deciding the gate is an operator's"},
    "missing": {"type": "array", "items": {"type": "object", "required": ["what", "hint"]}},
    "stage": {"enum": ["dev", "simulated", "live"]}, "canary": {"type": ["object", "null"]},
    "evidence": {"type": "array", "items": {"type": "integer"}, "description": "The ledger entries that it rests on"},
    "attached": {"type": "integer", "description": "The entry with which the evidence was attached"},
    "sequence": {"type": "integer"}}}"#;

const ROLLBACK_ASK: &str = r#"{"type": "object", "required": ["reason"], "additionalProperties": false, "properties": {
    "reason": {"type": "string", "minLength": 1, "maxLength": 500}, "block": {"type": "boolean"},
    "dryRun": {"type": "boolean", "description": "Say what it would come to, and do nothing"}}}"#;

const BLOCK_ASK: &str = r#"{"type": "object", "required": ["reason"], "additionalProperties": false, "properties": {
    "reason": {"type": "string", "minLength": 1, "maxLength": 500}}}"#;

const UNBLOCK_ASK: &str = r#"{"type": "object", "required": ["reason"], "additionalProperties": false, "properties": {
    "reason": {"type": "string", "minLength": 1, "maxLength": 500},
    "what": {"enum": ["block", "pin", "both"], "description": "What is lifted; the block, unless it is said"}}}"#;

const ROLLED_BACK: &str = r#"{"type": "object", "required": ["stage", "blocked", "steps", "rolledBack", "restored"], "properties": {
    "stage": {"enum": ["dev", "simulated", "live"]}, "blocked": {"type": "boolean"},
    "steps": {"type": "array", "items": {"type": "object", "required": ["step", "outcome"], "properties": {
        "step": {"type": "string"}, "outcome": {"enum": ["done", "skipped"]}, "why": {"type": "string"}}}},
    "rolledBack": {"type": "array", "items": {"type": "string"}},
    "restored": {"type": ["object", "null"], "description": "The earlier definition that counts again instead of the routing table's"},
    "gatesLost": {"type": "array", "items": {"enum": ["G0", "G1", "G2", "G3", "G4"]}, "description": "Gates that would have to be earned again; in a dry run only"},
    "sequence": {"type": "integer", "description": "Absent in a dry run"}}}"#;

const UNBLOCKED: &str = r#"{"type": "object", "required": ["stage", "blocked", "pinned", "sequence"], "properties": {
    "stage": {"enum": ["dev", "simulated", "live"]}, "blocked": {"type": "boolean"}, "pinned": {"type": "boolean"},
    "sequence": {"type": "integer"}}}"#;

const HANDOFF: &str = r#"{"type": "object", "required": ["handoffId", "attempts", "createdAt", "attempt", "status", "correlationId"],
    "properties": {
        "handoffId": {"type": "string"}, "attempts": {"type": "integer", "minimum": 1}, "createdAt": {"type": "string"},
        "attempt": {"type": "integer", "minimum": 1}, "status": {"type": "string"},
        "decision": {"type": ["string", "null"]}, "codes": {"type": "array", "items": {"type": "string"}},
        "sourceAgent": {"type": ["string", "null"]}, "targetAgent": {"type": ["string", "null"]},
        "routeKey": {"type": ["string", "null"]}, "mode": {"type": ["string", "null"]},
        "operation": {"type": ["string", "null"]}, "correlationId": {"type": "string"},
        "parentHandoffId": {"type": ["string", "null"]}, "messageId": {"type": ["string", "null"]},
        "createdSequence": {"type": "integer"}, "decidedSequence": {"type": ["integer", "null"]},
        "updatedAt": {"type": "string"}}}"#;

const TOKEN: &str = r#"{"type": "object", "required": ["tokenId", "name", "role", "createdAt", "valid"], "properties": {
    "tokenId": {"type": "string"}, "name": {"type": "string"}, "role": {"type": "string"},
    "agentId": {"type": ["string", "null"]}, "principal": {"type": ["string", "null"]},
    "createdAt": {"type": "string"}, "expiresAt": {"type": ["string", "null"]},
    "revokedAt": {"type": ["string", "null"]}, "valid": {"type": "boolean"},
    "token": {"type": "string", "description": "The token itself; only when it is made, and never again"},
    "sequence": {"type": "integer"}}}"#;

const READY: &str = r#"{"type": "object", "required": ["status", "failing", "degraded", "ledger", "policyDigest"], "properties": {
    "status": {"enum": ["ready", "degraded", "failing"]},
    "failing": {"type": "array", "items": {"type": "object", "required": ["what", "why", "hint"]}},
    "degraded": {"type": "array", "items": {"type": "object", "required": ["what", "why", "hint"]}},
    "ledger": {"type": "object", "required": ["sequence"]}, "policyDigest": {"type": "string"}}}"#;
