// Handoffs in an afternoon: Fastify, ajv and better-sqlite3. See ../README.md for what it leaves out.

import cluster from "node:cluster";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import Database from "better-sqlite3";
import fastify from "fastify";

const ROOT = path.resolve(process.env.HANDOFFD_WORKSPACE);
const TOKENS = JSON.parse(process.env.TOKENS ?? "{}");
const SKEW_MS = 120_000;
const CLASSES = ["read", "diagnostic", "sensitive", "live"];
const VERSION = /(?:^|[^A-Za-z0-9])v[0-9]+(?:[^A-Za-z0-9]|$)/;

const load = (file) => JSON.parse(readFileSync(path.join(ROOT, file), "utf8"));
const compiled = (schema) => addFormats(new Ajv({ strict: false })).compile(schema);

const shape = compiled(load("docs/schemas/task-spec.schema.json"));
const routes = load("policies/routes.json").routes;
const policies = new Map(
  readdirSync(path.join(ROOT, "policies/delegation"))
    .filter((name) => name.endsWith(".json"))
    .map((name) => [`policies/delegation/${name}`, load(`policies/delegation/${name}`)]),
);
const ring = path.join(ROOT, "memory/keyring.json");
const keys = existsSync(ring) ? JSON.parse(readFileSync(ring, "utf8")).keys : [];

const db = new Database(path.join(ROOT, "memory/peer.db"), { timeout: 30_000 });
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec(`
  CREATE TABLE IF NOT EXISTS decisions (
    sequence INTEGER PRIMARY KEY, handoff_id TEXT, source TEXT, idempotency_key TEXT, message_id TEXT,
    content BLOB, decision TEXT, codes TEXT, decided_at TEXT);
  CREATE UNIQUE INDEX IF NOT EXISTS one_id ON decisions (handoff_id) WHERE decision = 'allowed';
  CREATE UNIQUE INDEX IF NOT EXISTS one_key ON decisions (source, idempotency_key) WHERE decision = 'allowed';
  CREATE UNIQUE INDEX IF NOT EXISTS one_message ON decisions (message_id)
    WHERE decision = 'allowed' AND message_id IS NOT NULL;
`);
const byKey = db.prepare(
  "SELECT content, sequence, decision FROM decisions WHERE source = ? AND idempotency_key = ? AND decision = 'allowed'");
const byId = db.prepare("SELECT 1 FROM decisions WHERE handoff_id = ? AND decision = 'allowed'");
const byMessage = db.prepare("SELECT 1 FROM decisions WHERE message_id = ? AND decision = 'allowed'");
const insert = db.prepare(
  "INSERT INTO decisions (handoff_id, source, idempotency_key, message_id, content, decision, codes, decided_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

const covers = (patterns, name) =>
  patterns.some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name));

const schemas = new Map();
function inputSchema(reference) {
  if (!schemas.has(reference)) {
    const file = path.resolve(ROOT, reference);
    if (!file.startsWith(ROOT + path.sep)) schemas.set(reference, "EXECUTION_SCHEMA_REF_FORBIDDEN");
    else if (!file.endsWith(".json") || !existsSync(file)) schemas.set(reference, "EXECUTION_SCHEMA_NOT_FOUND");
    else {
      const schema = JSON.parse(readFileSync(file, "utf8"));
      const versioned = VERSION.test(path.basename(file)) || VERSION.test(schema.$id ?? "");
      schemas.set(reference, versioned ? compiled(schema) : "EXECUTION_SCHEMA_UNVERSIONED");
    }
  }
  return schemas.get(reference);
}

const plans = new Map();
function isFile(reference) {
  if (!plans.has(reference)) {
    const file = path.resolve(ROOT, reference);
    plans.set(reference, file.startsWith(ROOT + path.sep) && existsSync(file) && statSync(file).isFile());
  }
  return plans.get(reference);
}

function mapped(spec, now) {
  const { authorship = {}, intent, audit } = spec;
  let meta = {};
  if (authorship.mentionDelegationMode === "gated") {
    const { classification, authorizationRef = null } = authorship.risk;
    const delegatedHumanProxy = {
      mode: authorship.mode, policyValidated: true, envelopeValidated: true, riskGatePassed: true,
      riskClassification: classification, authorizationRef,
    };
    meta = { mentionDelegationMode: "gated", mentionDelegation: { ...authorship.mentionDelegation, delegatedHumanProxy } };
  }
  return {
    schemaVersion: "v1", plane: "execution", operation: intent.operation, requestId: audit.requestId,
    correlationId: spec.correlationId, idempotencyKey: audit.idempotencyKey, timestamp: now.toISOString(),
    dryRun: !(spec.mode === "live" && spec.safety.allowExternalSideEffects), meta, intent: intent.input,
  };
}

function judge(spec, agent, now) {
  const codes = new Set();
  const { source, target, routing, intent, safety, rollback = {}, authorship = {} } = spec;
  if (source.agentId !== agent) codes.add("A2A_SOURCE_MISMATCH");
  if (Date.parse(spec.createdAt) > now.getTime() + SKEW_MS) codes.add("A2A_TIMESTAMP_WINDOW_EXCEEDED");
  const route = Object.hasOwn(routes, routing.routeKey) ? routes[routing.routeKey] : undefined;
  if (route === undefined) codes.add("A2A_ROUTE_UNKNOWN");
  else {
    const reached = [route.primaryAgentId, route.fallbackAgentId, ...(route.aliases ?? [])];
    const fallback = routing.fallbackAgentId;
    if (!reached.includes(target.agentId) || (fallback !== undefined && fallback !== route.fallbackAgentId)) {
      codes.add("A2A_ROUTE_TARGET_MISMATCH");
    }
    if (target.capability !== route.capability) codes.add("A2A_ROUTE_CAPABILITY_MISMATCH");
    const schema = inputSchema(intent.inputSchemaRef);
    if (typeof schema === "string") codes.add(schema);
    else if (!schema(route.profile === "execution-plane.v1" ? mapped(spec, now) : intent.input)) {
      codes.add("EXECUTION_SCHEMA_INVALID");
    }
    if (spec.mode === "live" || (spec.mode === "simulated" && (route.stage ?? "dev") === "dev")) {
      codes.add("POLICY_STAGE_NOT_REACHED");
    }
  }
  if (!rollback.required || !isFile(rollback.planRef ?? ".")) codes.add("POLICY_ROLLBACK_PLAN_MISSING");
  if (spec.mode !== "live" && safety.allowExternalSideEffects) codes.add("POLICY_SIDE_EFFECTS");
  if (authorship.mode === "delegated-human-proxy") delegated(spec, now, codes);
  return codes;
}

function delegated(spec, now, codes) {
  const { delegationPolicy: own, envelope, risk } = spec.authorship;
  const { scope, ttl, proof, principal, delegateAgent } = envelope;
  const mention = spec.authorship.mentionDelegationMode === "gated" ? spec.authorship.mentionDelegation : undefined;
  const operation = spec.intent.operation;
  const fallback = spec.routing.fallbackAgentId;
  const agents = fallback === undefined ? [spec.target.agentId] : [spec.target.agentId, fallback];
  const file = policies.get(own.policyRef);
  if (file === undefined) codes.add("POLICY_REF_UNKNOWN");
  else {
    if (!covers(file.principals, principal.id)) codes.add("POLICY_PRINCIPAL_DENIED");
    if (!mention && !file.allowWithoutChannel) codes.add("POLICY_CHANNEL_DENIED");
  }
  for (const [member, inside, names, code] of [
    ["allowAgents", "agents", agents, "POLICY_AGENT_DENIED"],
    ["allowChannels", "channels", mention ? [mention.channel] : [], "POLICY_CHANNEL_DENIED"],
    ["allowTasks", "tasks", [operation], "POLICY_TASK_DENIED"],
  ]) {
    if (file && !own[member].every((name) => covers(file[member], name))) codes.add("POLICY_ALLOWLIST_EXCEEDED");
    if (!names.every((name) => own[member].includes(name) && (!file || covers(file[member], name)))) codes.add(code);
    if (!scope[inside].every((name) => own[member].includes(name)) || !names.every((name) => scope[inside].includes(name))) {
      codes.add("POLICY_SCOPE_EXCEEDED");
    }
  }
  if (delegateAgent.agentId !== spec.source.agentId
    || (delegateAgent.sessionId ?? spec.source.sessionId) !== spec.source.sessionId) codes.add("POLICY_DELEGATE_MISMATCH");
  const [issued, expires] = [Date.parse(ttl.issuedAt), Date.parse(ttl.expiresAt)];
  if (issued > now.getTime() + SKEW_MS) codes.add("POLICY_ENVELOPE_NOT_YET_VALID");
  if (expires <= now.getTime()) codes.add("POLICY_ENVELOPE_EXPIRED");
  if ((expires - issued) / 1000 > (file?.maxTtlSeconds ?? Infinity)) codes.add("POLICY_ENVELOPE_TTL_TOO_LONG");
  const { proof: _, ...rest } = envelope;
  const signed = canonical(rest);
  if (proof.hash !== `sha256:${createHash("sha256").update(signed).digest("hex")}`) codes.add("POLICY_ENVELOPE_HASH_MISMATCH");
  if (proof.algorithm !== "hmac-sha256-v1") codes.add("POLICY_PROOF_ALGORITHM");
  else {
    const usable = keys.filter((key) => key.owner === principal.id && key.purpose === "envelope"
      && key.algorithm === "hmac-sha256" && (proof.keyId ?? key.keyId) === key.keyId);
    const given = Buffer.from(proof.signature, "hex");
    const signs = (key) => {
      const tag = createHmac("sha256", Buffer.from(key.secret, "hex")).update(signed).digest();
      return given.length === tag.length && timingSafeEqual(given, tag);
    };
    if (usable.length === 0) codes.add("A2A_KEY_UNKNOWN");
    else if (!usable.some(signs)) codes.add("A2A_SIGNATURE_INVALID");
  }
  const stated = spec.audit.delegation;
  if (stated.policyRef !== own.policyRef || stated.envelopeHash !== proof.hash
    || stated.riskClassification !== risk.classification
    || (stated.authorizationRef ?? null) !== (risk.authorizationRef ?? null)) codes.add("POLICY_AUDIT_MISMATCH");
  const rank = CLASSES.indexOf(risk.classification);
  for (const [name, floor] of Object.entries(file?.riskFloor ?? {})) {
    if (covers([name], operation) && rank < CLASSES.indexOf(floor)) codes.add("POLICY_RISK_UNDERSTATED");
  }
  // Nobody can make a grant here, so grave work is always refused.
  if (rank >= 2) codes.add(risk.authorizationRef ? "POLICY_AUTHORIZATION_UNKNOWN" : "POLICY_AUTHORIZATION_MISSING");
  if (mention) {
    if (mention.originBotId === mention.targetBotId) codes.add("POLICY_MENTION_LOOP");
    else if (mention.originBotId !== spec.source.agentId || mention.targetBotId !== spec.target.agentId) {
      codes.add("POLICY_MENTION_BOT_MISMATCH");
    }
    const observed = Date.parse(mention.observedAt);
    if (observed > now.getTime() + SKEW_MS) codes.add("POLICY_MENTION_FROM_FUTURE");
    if (observed + mention.ttlSeconds * 1000 <= now.getTime()) codes.add("POLICY_MENTION_EXPIRED");
  }
}

// The decision, in one transaction that is durable when it returns.
const record = db.transaction((spec, content, codes, now) => {
  const [source, key] = [spec.source.agentId, spec.audit.idempotencyKey];
  const message = spec.authorship?.mentionDelegation?.messageId ?? null;
  const before = byKey.get(source, key);
  if (before?.content.equals(content)) return { decision: before.decision, sequence: before.sequence, replayed: true };
  if (before) codes.add("A2A_IDEMPOTENCY_CONFLICT");
  if (byId.get(spec.handoffId)) codes.add("A2A_HANDOFF_REUSED");
  if (message && byMessage.get(message)) codes.add("POLICY_MENTION_DUPLICATE");
  const expiry = (code) => code === "POLICY_ENVELOPE_EXPIRED" || code === "POLICY_MENTION_EXPIRED";
  const decision = codes.size === 0 ? "allowed" : [...codes].every(expiry) ? "expired" : "denied";
  const { lastInsertRowid } = insert.run(
    spec.handoffId, source, key, message, content, decision, JSON.stringify([...codes].sort()), now.toISOString());
  return { decision, sequence: Number(lastInsertRowid), replayed: false };
});

const server = fastify();
server.post("/v1/handoffs", (request, reply) => {
  const agent = TOKENS[(request.headers.authorization ?? "").replace(/^Bearer /, "")];
  if (agent === undefined) return reply.code(401).send({ code: "AUTHENTICATION_REQUIRED" });
  const spec = request.body;
  if (!shape(spec)) return reply.code(422).send({ decision: "denied", reasons: [{ code: "A2A_TASKSPEC_INVALID" }] });
  const now = new Date();
  const codes = judge(spec, agent, now);
  // Before the transaction, which keeps the others waiting.
  const content = createHash("sha256").update(canonical(spec)).digest();
  const { decision, sequence, replayed } = record.immediate(spec, content, codes, now);
  const reasons = replayed ? [] : [...codes].sort().map((code) => ({ code }));
  const body = {
    decision, handoffId: spec.handoffId, correlationId: spec.correlationId, replayed, decidedAt: now.toISOString(),
    reasons, ledger: { sequence },
  };
  if (decision === "allowed") return reply.code(replayed ? 200 : 201).send({ ...body, dispatch: mapped(spec, now) });
  const contract = [...codes].some((code) => code.startsWith("EXECUTION_SCHEMA_"));
  const identity = codes.has("A2A_HANDOFF_REUSED") || codes.has("A2A_IDEMPOTENCY_CONFLICT");
  return reply.code(contract ? 422 : identity ? 409 : 403).send(body);
});

const workers = Number(process.env.WORKERS ?? "1");
if (cluster.isPrimary && workers > 1) {
  for (let n = 0; n < workers; n += 1) cluster.fork();
} else {
  await server.listen({ port: Number(process.env.PORT), host: "127.0.0.1" });
}
