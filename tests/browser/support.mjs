// A gateway on a workspace of its own and a browser that looks at it, both gone when the test is done.

import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, writeFileSync, rmSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? join(here, '../../target');
const BINARY = process.env.HANDOFFD_BIN ?? join(TARGET, 'debug/handoffd');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const MINIMAL = JSON.parse(readFileSync(join(here, '../../docs/examples/taskspec-minimal.json'), 'utf8'));
const MENTION = JSON.parse(readFileSync(join(here, '../../docs/examples/taskspec-delegated-read.json'), 'utf8'));
export const KEY = 'crypto-sage.execution-plane.v1';
const PATIENCE = 30_000;

/** Asks again and again until there is an answer. */
export async function eventually(what, ask) {
  const until = Date.now() + PATIENCE;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > until) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** A clock that a test moves: what it gives the gateway's environment, and the way to move it. */
export class Clock {
  constructor() {
    const libraries = readdirSync('/usr/lib').map((name) => join('/usr/lib', name, 'faketime/libfaketime.so.1'));
    const library = process.env.CLOCK_LIBRARY ?? libraries.find((path) => existsSync(path));
    if (!library) throw new Error('libfaketime is missing: install the Debian package libfaketime, or name it with CLOCK_LIBRARY');
    this.file = join(mkdtempSync(join(tmpdir(), 'handoffd-clock-')), 'clock');
    this.environment = { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: this.file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
    this.set(0);
  }

  /** So many seconds from now, or before it. */
  set(seconds) {
    writeFileSync(this.file, `${seconds < 0 ? '' : '+'}${seconds}`);
  }

  gone() {
    rmSync(dirname(this.file), { recursive: true, force: true });
  }
}

function clean(environment) {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('HANDOFFD_')));
}

export class Gateway {
  /** A gateway whose route begins in dev, with an agent behind it that answers, and tokens for everybody. */
  static async start(settings = '', environment = {}) {
    const gateway = new Gateway();
    gateway.root = mkdtempSync(join(tmpdir(), 'handoffd-browser-'));
    gateway.workspace = join(gateway.root, 'workspace');
    gateway.cli('init');
    writeFileSync(join(gateway.workspace, 'handoffd.toml'), settings);
    gateway.agent = createServer((request, response) => response.end()).listen(0, '127.0.0.1');
    await new Promise((resolve) => gateway.agent.once('listening', resolve));
    gateway.editRoutes((route) => {
      delete route.stage;
      delete route.signingKeyId;
      route.requireSignature = false;
      route.probeUrl = `http://127.0.0.1:${gateway.agent.address().port}/health`;
    });
    gateway.log = '';
    gateway.child = spawn(BINARY, ['serve', '--workspace', gateway.workspace, '--listen', '127.0.0.1:0'], {
      env: { ...clean(process.env), NO_COLOR: '1', ...environment }, stdio: ['ignore', 'ignore', 'pipe'],
    });
    gateway.child.stderr.on('data', (text) => { gateway.log += text; });
    const lock = join(gateway.workspace, 'memory/.lock');
    gateway.url = await eventually('the gateway listens', async () => {
      if (gateway.child.exitCode !== null) throw new Error(gateway.log);
      if (!existsSync(lock)) return null;
      const { address } = JSON.parse(readFileSync(lock, 'utf8') || '{}');
      const ready = address && await fetch(`http://${address}/readyz`).catch(() => null);
      return ready?.status === 200 ? `http://${address}` : null;
    });
    gateway.admin = readFileSync(join(gateway.workspace, 'memory/admin.token'), 'utf8').trim();
    gateway.tokens = {};
    for (const [name, role, agentId] of [
      ['rita', 'operator'], ['omar', 'operator'], ['ada', 'auditor'], ['router', 'orchestrator', 'decision-router'],
      ['sage', 'agent', 'crypto-sage'],
    ]) {
      const made = await gateway.api('POST', '/v1/tokens', { name, role, agentId });
      gateway.tokens[name] = made.body.token;
    }
    return gateway;
  }

  async stop() {
    this.child.kill('SIGKILL');
    this.agent.close();
    this.agent.closeAllConnections();
    rmSync(this.root, { recursive: true, force: true });
  }

  cli(...args) {
    return this.cliWith({}, ...args);
  }

  cliWith(environment, ...args) {
    const options = { env: { ...clean(process.env), NO_COLOR: '1', ...environment }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };
    return execFileSync(BINARY, [...args, '--workspace', this.workspace], options);
  }

  editRoutes(change) {
    const path = join(this.workspace, 'policies/routes.json');
    const table = JSON.parse(readFileSync(path, 'utf8'));
    change(table.routes[KEY], table.routes);
    writeFileSync(path, JSON.stringify(table));
  }

  async api(method, path, body, token = this.admin) {
    const answer = await fetch(this.url + path, {
      method, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }

  spec(name, change = () => {}) {
    const spec = structuredClone(MINIMAL);
    spec.handoffId = `hs_20260218_${name}`;
    spec.correlationId = `corr_${name}`;
    spec.audit.requestId = `req_${name}`;
    spec.audit.idempotencyKey = `idem_${name}`;
    change(spec);
    return spec;
  }

  submit(name, change) {
    return this.api('POST', '/v1/handoffs', this.spec(name, change), this.tokens.router);
  }

  submitLive(name) {
    return this.submit(name, (spec) => { spec.mode = 'live'; spec.safety.requiresHumanApproval = true; });
  }

  /** A mention that the principal signed, as one that watches a channel would hand it in. */
  async mention(name, messageId, { observedAt = new Date(), signedAt = new Date(), change = () => {}, afterwards = () => {} } = {}) {
    const spec = structuredClone(MENTION);
    Object.assign(spec, { handoffId: `hs_20260218_${name}`, correlationId: `corr_${name}`, createdAt: new Date().toISOString() });
    Object.assign(spec.audit, { requestId: `req_${name}`, idempotencyKey: `idem_${name}` });
    Object.assign(spec.authorship.mentionDelegation, { messageId, observedAt: observedAt.toISOString() });
    change(spec);
    const file = join(this.root, `${name}.json`);
    writeFileSync(file, JSON.stringify(spec));
    const signed = this.cli('sign', file, '--key-id', 'user-main-test', '--ttl', '10m', '--now', signedAt.toISOString());
    const handed = JSON.parse(signed);
    afterwards(handed);
    return this.api('POST', '/v1/handoffs', handed);
  }

  /** The target reports that it did the work. */
  async complete(name, firstSeq = 4) {
    const done = { artifact_ids: ['report'], verification: { mechanical: 'pass' } };
    await this.report(name, 'task.complete', done, firstSeq);
  }

  /** The target reports that the work went wrong. */
  async fail(name, payload) {
    await this.report(name, 'task.failed', payload, 4);
  }

  async report(name, how, ended, firstSeq) {
    const artifact = { artifact_id: 'report', uri: 's3://reports/1', version: 1, hash: `sha256:${'0'.repeat(64)}` };
    const events = [['task.claimed', {}], ['task.started', {}], ['artifact.ready', artifact], [how, ended]];
    for (const [n, [type, payload]] of events.entries()) {
      const last = type === how;
      const sent = await this.api('POST', `/v1/handoffs/hs_20260218_${name}/events`, {
        wire: '1.1', wire_id: `wire_${firstSeq + n}${name.replaceAll('_', '')}`, type, ts: new Date().toISOString(),
        sender: 'agent:crypto-sage', payload, state: { category: last ? how.replace('task.complete', 'task.completed').slice('task.'.length) : 'working', terminal: last },
        stream: {
          stream_id: `task:hs_20260218_${name}:attempt:1`, stream_seq: firstSeq + n,
          context_id: `corr_${name}`, correlation_id: `corr_${name}`,
        },
      }, this.tokens.sage);
      if (sent.status !== 201) throw new Error(JSON.stringify(sent));
    }
  }

  async run(name, mode) {
    const decided = await this.submit(name, (spec) => { spec.mode = mode; });
    if (decided.status !== 201) throw new Error(JSON.stringify(decided));
    await this.complete(name);
  }

  gate(gate, body = {}) {
    return this.api('POST', `/v1/routes/${KEY}/gates/${gate}`, body, this.tokens.rita);
  }

  /** Brings the route to live over the API. */
  async goLive() {
    await this.run('walk_dev_1', 'dev');
    await this.gate('G0');
    await this.gate('G1');
    for (const n of [1, 2, 3]) await this.run(`walk_sim_${n}`, 'simulated');
    await this.gate('G2');
    await this.gate('G3', { handoffId: 'hs_20260218_walk_sim_3', evidence: { runId: 'run-7' } });
    const passed = await this.gate('G4', { reason: 'agreed with the desk' });
    if (passed.body.stage !== 'live') throw new Error(JSON.stringify(passed));
  }

  async entries(type) {
    const { body } = await this.api('GET', `/v1/audit?type=${type}&limit=500`);
    return body.entries;
  }
}

let browser;
export async function launch() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'], headless: true });
  return browser;
}

export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

/** Somebody at a browser of their own, who notices what must not happen: script errors, other hosts, blocked content. */
export class Person {
  static async at(gateway, options = {}) {
    const person = new Person();
    person.gateway = gateway;
    person.context = await (await launch()).newContext({ baseURL: gateway.url, viewport: { width: 1280, height: 800 }, ...options });
    person.context.setDefaultTimeout(PATIENCE);
    person.troubles = [];
    person.page = await person.context.newPage();
    person.page.on('pageerror', (error) => person.troubles.push(`script error: ${error}`));
    person.page.on('console', (message) => {
      // A page that is refused, as some here are on purpose, is told by the browser as an error of loading it.
      if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) {
        person.troubles.push(`console: ${message.text()}`);
      }
    });
    person.page.on('dialog', (dialog) => { person.troubles.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    person.context.on('request', (request) => {
      if (new URL(request.url()).origin !== gateway.url) person.troubles.push(`another host: ${request.url()}`);
    });
    return person;
  }

  async logIn(name) {
    const token = name === 'admin' ? this.gateway.admin : this.gateway.tokens[name];
    await this.page.goto('/console/login');
    await this.page.getByLabel('Token').fill(token);
    await this.page.getByRole('button', { name: 'Log in' }).click();
    await this.page.waitForURL('**/console');
    return this;
  }

  async leave() {
    await this.context.close();
    if (this.troubles.length) throw new Error(this.troubles.join('\n'));
  }

  text() {
    return this.page.locator('main').innerText();
  }

  /** Follows the link to an act, gives a reason and confirms it. */
  async confirm(link, button, fields = {}) {
    await this.page.getByRole('link', { name: link, exact: true }).click();
    await this.page.getByRole('heading', { name: 'What will happen' }).waitFor();
    for (const [label, value] of Object.entries(fields)) await this.page.getByLabel(label).fill(value);
    await this.page.getByRole('button', { name: button }).click();
    return this.page.locator('.flash').first().innerText();
  }
}
