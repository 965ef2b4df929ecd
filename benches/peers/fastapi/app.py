"""Handoffs in an afternoon: FastAPI, jsonschema, hmac and sqlite3. See ../README.md for what it leaves out."""

import hashlib
import hmac
import json
import os
import pathlib
import re
import sqlite3
import threading
from datetime import datetime, timedelta, timezone

from fastapi import Depends, FastAPI, Request, Response
from jsonschema import Draft202012Validator, FormatChecker

ROOT = pathlib.Path(os.environ["HANDOFFD_WORKSPACE"])
TOKENS = json.loads(os.environ.get("TOKENS", "{}"))
SKEW = timedelta(seconds=120)
CLASSES = ["read", "diagnostic", "sensitive", "live"]
VERSION = re.compile(r"(?:^|[^A-Za-z0-9])v[0-9]+(?:[^A-Za-z0-9]|$)")


def load(path):
    return json.loads((ROOT / path).read_text())


def validator(schema):
    return Draft202012Validator(schema, format_checker=FormatChecker())


SHAPE = validator(load("docs/schemas/task-spec.schema.json"))
ROUTES = load("policies/routes.json")["routes"]
POLICIES = {f"policies/delegation/{path.name}": json.loads(path.read_text())
            for path in (ROOT / "policies/delegation").glob("*.json")}
RING = ROOT / "memory/keyring.json"
KEYS = json.loads(RING.read_text())["keys"] if RING.exists() else []
SCHEMAS, PLANS = {}, {}

DB = sqlite3.connect(ROOT / "memory/peer.db", check_same_thread=False, isolation_level=None, timeout=30)
DB.executescript("""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS decisions (
        sequence INTEGER PRIMARY KEY, handoff_id TEXT, source TEXT, idempotency_key TEXT, message_id TEXT,
        content BLOB, decision TEXT, codes TEXT, decided_at TEXT);
    CREATE UNIQUE INDEX IF NOT EXISTS one_id ON decisions (handoff_id) WHERE decision = 'allowed';
    CREATE UNIQUE INDEX IF NOT EXISTS one_key ON decisions (source, idempotency_key) WHERE decision = 'allowed';
    CREATE UNIQUE INDEX IF NOT EXISTS one_message ON decisions (message_id)
        WHERE decision = 'allowed' AND message_id IS NOT NULL;
""")
LOCK = threading.Lock()
app = FastAPI(openapi_url=None)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def covers(patterns, name):
    return any(name.startswith(p[:-1]) if p.endswith("*") else p == name for p in patterns)


def input_schema(reference):
    if reference not in SCHEMAS:
        path = (ROOT / reference).resolve()
        if not path.is_relative_to(ROOT.resolve()):
            SCHEMAS[reference] = "EXECUTION_SCHEMA_REF_FORBIDDEN"
        elif path.suffix != ".json" or not path.is_file():
            SCHEMAS[reference] = "EXECUTION_SCHEMA_NOT_FOUND"
        else:
            schema = json.loads(path.read_text())
            versioned = VERSION.search(path.name) or VERSION.search(schema.get("$id", ""))
            SCHEMAS[reference] = validator(schema) if versioned else "EXECUTION_SCHEMA_UNVERSIONED"
    return SCHEMAS[reference]


def is_plan(reference):
    if reference not in PLANS:
        path = (ROOT / reference).resolve()
        PLANS[reference] = path.is_relative_to(ROOT.resolve()) and path.is_file()
    return PLANS[reference]


def mapped(spec, now):
    live = spec["mode"] == "live" and spec["safety"].get("allowExternalSideEffects", False)
    authorship, meta = spec.get("authorship", {}), {}
    if authorship.get("mentionDelegationMode") == "gated":
        risk = authorship["risk"]
        proxy = {"mode": authorship["mode"], "policyValidated": True, "envelopeValidated": True, "riskGatePassed": True,
                 "riskClassification": risk["classification"], "authorizationRef": risk.get("authorizationRef")}
        meta = {"mentionDelegationMode": "gated",
                "mentionDelegation": {**authorship["mentionDelegation"], "delegatedHumanProxy": proxy}}
    return {
        "schemaVersion": "v1", "plane": "execution", "operation": spec["intent"]["operation"],
        "requestId": spec["audit"]["requestId"], "correlationId": spec["correlationId"],
        "idempotencyKey": spec["audit"]["idempotencyKey"],
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "dryRun": not live, "meta": meta, "intent": spec["intent"]["input"],
    }


def judge(spec, agent, now):
    codes = set()
    if spec["source"]["agentId"] != agent:
        codes.add("A2A_SOURCE_MISMATCH")
    if instant(spec["createdAt"]) > now + SKEW:
        codes.add("A2A_TIMESTAMP_WINDOW_EXCEEDED")
    route, target = ROUTES.get(spec["routing"]["routeKey"]), spec["target"]
    fallback = spec["routing"].get("fallbackAgentId")
    if route is None:
        codes.add("A2A_ROUTE_UNKNOWN")
    else:
        reached = [route["primaryAgentId"], route.get("fallbackAgentId"), *route.get("aliases", [])]
        if target["agentId"] not in reached or (fallback and fallback != route.get("fallbackAgentId")):
            codes.add("A2A_ROUTE_TARGET_MISMATCH")
        if target["capability"] != route["capability"]:
            codes.add("A2A_ROUTE_CAPABILITY_MISMATCH")
        schema = input_schema(spec["intent"]["inputSchemaRef"])
        plane = route.get("profile") == "execution-plane.v1"
        if isinstance(schema, str):
            codes.add(schema)
        elif not schema.is_valid(mapped(spec, now) if plane else spec["intent"]["input"]):
            codes.add("EXECUTION_SCHEMA_INVALID")
        if spec["mode"] == "live" or (spec["mode"] == "simulated" and route.get("stage", "dev") == "dev"):
            codes.add("POLICY_STAGE_NOT_REACHED")
    rollback = spec.get("rollback", {})
    if not rollback.get("required") or not is_plan(rollback.get("planRef", ".")):
        codes.add("POLICY_ROLLBACK_PLAN_MISSING")
    if spec["mode"] != "live" and spec["safety"].get("allowExternalSideEffects"):
        codes.add("POLICY_SIDE_EFFECTS")
    authorship = spec.get("authorship", {})
    if authorship.get("mode") == "delegated-human-proxy":
        delegated(spec, authorship, fallback, now, codes)
    return codes


def delegated(spec, authorship, fallback, now, codes):
    own, envelope, risk = authorship["delegationPolicy"], authorship["envelope"], authorship["risk"]
    scope, ttl, proof = envelope["scope"], envelope["ttl"], envelope["proof"]
    mention = authorship.get("mentionDelegation") if authorship.get("mentionDelegationMode") == "gated" else None
    operation, agents = spec["intent"]["operation"], [spec["target"]["agentId"], *([fallback] if fallback else [])]
    channels = [mention["channel"]] if mention else []
    file = POLICIES.get(own["policyRef"])
    if file is None:
        codes.add("POLICY_REF_UNKNOWN")
        file = {}
    else:
        if not covers(file["principals"], envelope["principal"]["id"]):
            codes.add("POLICY_PRINCIPAL_DENIED")
        if not mention and not file.get("allowWithoutChannel"):
            codes.add("POLICY_CHANNEL_DENIED")
    for member, inside, names, code in (
        ("allowAgents", "agents", agents, "POLICY_AGENT_DENIED"),
        ("allowChannels", "channels", channels, "POLICY_CHANNEL_DENIED"),
        ("allowTasks", "tasks", [operation], "POLICY_TASK_DENIED"),
    ):
        if file and not all(covers(file[member], name) for name in own[member]):
            codes.add("POLICY_ALLOWLIST_EXCEEDED")
        if not all(name in own[member] and (not file or covers(file[member], name)) for name in names):
            codes.add(code)
        if not all(name in own[member] for name in scope[inside]) or not all(name in scope[inside] for name in names):
            codes.add("POLICY_SCOPE_EXCEEDED")
    delegate = envelope["delegateAgent"]
    if delegate["agentId"] != spec["source"]["agentId"] or delegate.get(
            "sessionId", spec["source"]["sessionId"]) != spec["source"]["sessionId"]:
        codes.add("POLICY_DELEGATE_MISMATCH")
    issued, expires = instant(ttl["issuedAt"]), instant(ttl["expiresAt"])
    if issued > now + SKEW:
        codes.add("POLICY_ENVELOPE_NOT_YET_VALID")
    if expires <= now:
        codes.add("POLICY_ENVELOPE_EXPIRED")
    if (expires - issued).total_seconds() > file.get("maxTtlSeconds", float("inf")):
        codes.add("POLICY_ENVELOPE_TTL_TOO_LONG")
    signed = canonical({name: value for name, value in envelope.items() if name != "proof"})
    if proof["hash"] != "sha256:" + hashlib.sha256(signed).hexdigest():
        codes.add("POLICY_ENVELOPE_HASH_MISMATCH")
    if proof["algorithm"] != "hmac-sha256-v1":
        codes.add("POLICY_PROOF_ALGORITHM")
    else:
        keys = [key for key in KEYS if key["owner"] == envelope["principal"]["id"] and key["purpose"] == "envelope"
                and key["algorithm"] == "hmac-sha256" and proof.get("keyId", key["keyId"]) == key["keyId"]]
        if not keys:
            codes.add("A2A_KEY_UNKNOWN")
        elif not any(hmac.compare_digest(hmac.new(bytes.fromhex(key["secret"]), signed, hashlib.sha256).hexdigest(),
                                         proof["signature"]) for key in keys):
            codes.add("A2A_SIGNATURE_INVALID")
    stated = spec["audit"]["delegation"]
    if (stated["policyRef"], stated["envelopeHash"], stated["riskClassification"], stated.get("authorizationRef")) != (
            own["policyRef"], proof["hash"], risk["classification"], risk.get("authorizationRef")):
        codes.add("POLICY_AUDIT_MISMATCH")
    rank = CLASSES.index(risk["classification"])
    if any(rank < CLASSES.index(floor) for name, floor in file.get("riskFloor", {}).items() if covers([name], operation)):
        codes.add("POLICY_RISK_UNDERSTATED")
    if rank >= 2:
        # Nobody can make a grant here, so grave work is always refused.
        codes.add("POLICY_AUTHORIZATION_UNKNOWN" if risk.get("authorizationRef") else "POLICY_AUTHORIZATION_MISSING")
    if mention:
        if mention["originBotId"] == mention["targetBotId"]:
            codes.add("POLICY_MENTION_LOOP")
        elif (mention["originBotId"], mention["targetBotId"]) != (spec["source"]["agentId"], spec["target"]["agentId"]):
            codes.add("POLICY_MENTION_BOT_MISMATCH")
        observed = instant(mention["observedAt"])
        if observed > now + SKEW:
            codes.add("POLICY_MENTION_FROM_FUTURE")
        if observed + timedelta(seconds=mention["ttlSeconds"]) <= now:
            codes.add("POLICY_MENTION_EXPIRED")


def record(spec, codes, now):
    """The decision, in one transaction that is durable when it returns."""
    source, key = spec["source"]["agentId"], spec["audit"]["idempotencyKey"]
    mention = spec.get("authorship", {}).get("mentionDelegation", {}).get("messageId")
    content = hashlib.sha256(canonical(spec)).digest()
    row = (spec["handoffId"], source, key, mention, content)
    with LOCK:
        DB.execute("BEGIN IMMEDIATE")
        try:
            before = DB.execute(
                "SELECT content, sequence, decision FROM decisions WHERE source = ? AND idempotency_key = ? AND decision = 'allowed'",
                (source, key)).fetchone()
            if before and before[0] == content:
                DB.execute("COMMIT")
                return before[2], before[1], set(), True
            if before:
                codes.add("A2A_IDEMPOTENCY_CONFLICT")
            for sql, value, code in (
                ("handoff_id", spec["handoffId"], "A2A_HANDOFF_REUSED"),
                ("message_id", mention, "POLICY_MENTION_DUPLICATE"),
            ):
                if value and DB.execute(
                        f"SELECT 1 FROM decisions WHERE {sql} = ? AND decision = 'allowed'", (value,)).fetchone():
                    codes.add(code)
            expiries = {"POLICY_ENVELOPE_EXPIRED", "POLICY_MENTION_EXPIRED"}
            decision = "allowed" if not codes else "expired" if codes <= expiries else "denied"
            done = DB.execute(
                "INSERT INTO decisions (handoff_id, source, idempotency_key, message_id, content, decision, codes, decided_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, decision, json.dumps(sorted(codes)), now.isoformat()))
            DB.execute("COMMIT")
            return decision, done.lastrowid, codes, False
        except BaseException:
            DB.execute("ROLLBACK")
            raise


def answer(status, body):
    return Response(json.dumps(body), status_code=status, media_type="application/json")


async def body_of(request: Request):
    """The handler itself waits for SQLite, so it is a plain function, which FastAPI runs on a thread."""
    return await request.body()


@app.post("/v1/handoffs")
def submit(request: Request, body: bytes = Depends(body_of)):
    agent = TOKENS.get(request.headers.get("authorization", "").removeprefix("Bearer "))
    if agent is None:
        return answer(401, {"code": "AUTHENTICATION_REQUIRED"})
    try:
        spec = json.loads(body)
    except ValueError:
        return answer(400, {"code": "A2A_BODY_INVALID"})
    if not SHAPE.is_valid(spec):
        return answer(422, {"decision": "denied", "reasons": [{"code": "A2A_TASKSPEC_INVALID"}]})
    now = datetime.now(timezone.utc)
    decision, sequence, codes, replayed = record(spec, judge(spec, agent, now), now)
    told = {"decision": decision, "handoffId": spec["handoffId"], "correlationId": spec["correlationId"],
            "replayed": replayed, "decidedAt": now.isoformat(), "reasons": [{"code": code} for code in sorted(codes)],
            "ledger": {"sequence": sequence}}
    if decision == "allowed":
        told["dispatch"] = mapped(spec, now)
        return answer(200 if replayed else 201, told)
    contract = any(code == "A2A_TASKSPEC_INVALID" or code.startswith("EXECUTION_SCHEMA_") for code in codes)
    identity = codes & {"A2A_HANDOFF_REUSED", "A2A_IDEMPOTENCY_CONFLICT"}
    return answer(422 if contract else 409 if identity else 403, told)
