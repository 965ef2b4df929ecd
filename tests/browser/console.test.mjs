// What people do at the console, in a real browser.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Clock, Gateway, KEY, Person, closeBrowser } from './support.mjs';

after(closeBrowser);

describe('an operator', () => {
  let gateway, rita;
  before(async () => {
    gateway = await Gateway.start();
    rita = await (await Person.at(gateway)).logIn('rita');
  });
  after(async () => {
    await rita.leave();
    await gateway.stop();
  });

  it('watches a handoff arrive', async () => {
    const { page } = rita;
    await page.goto('/console/handoffs');
    assert.match(await rita.text(), /Nothing was handed over yet/);
    await page.locator('body[data-connected]').waitFor();
    await gateway.submit('arrives_0001');
    await page.getByRole('link', { name: 'hs_20260218_arrives_0001' }).waitFor();
    // Without loading the page anew: what was typed meanwhile is still there.
    await page.getByLabel('Agent').fill('half a na');
    await gateway.submit('arrives_0002');
    await page.getByRole('link', { name: 'hs_20260218_arrives_0002' }).waitFor();
    assert.equal(await page.getByLabel('Agent').inputValue(), 'half a na');
    // And on the page of one handoff, what becomes of it.
    await page.goto('/console/handoffs/hs_20260218_arrives_0001');
    await page.locator('body[data-connected]').waitFor();
    const payload = page.locator('#timeline details').first();
    await payload.locator('summary').click();
    await gateway.complete('arrives_0001');
    await page.locator('#state', { hasText: 'completed' }).waitFor();
    await page.locator('#timeline', { hasText: 'task.complete' }).waitFor();
    // What was opened meanwhile is still open.
    assert.match(await payload.innerText(), /task_spec_digest/);
    assert.equal(await page.locator('#timeline details[open]').count(), 1);
  });

  it('reads why one was refused, at the place where it is wrong', async () => {
    const { page } = rita;
    await gateway.submit('refused_0001', (spec) => { spec.safety.e2eActor = 'myself'; delete spec.rollback; });
    await page.goto('/console/handoffs?decision=denied');
    await page.getByRole('link', { name: 'hs_20260218_refused_0001' }).click();
    const gates = await page.locator('#gates').innerText();
    assert.match(gates, /POLICY_SELF_TEST at \/safety\/e2eActor/);
    assert.match(gates, /myself may not vouch for an end-to-end test/);
    assert.match(gates, /What to do: use human or authorized-harness/);
    assert.match(gates, /still in force/);
    const marked = page.locator('.tree li.wrong', { hasText: 'e2eActor' });
    assert.match(await marked.innerText(), /POLICY_SELF_TEST/);
    // What is missing is marked at what it is missing from.
    assert.match(await page.locator('.tree li.d0.wrong').innerText(), /POLICY_ROLLBACK_PLAN_MISSING/);
    await page.getByRole('link', { name: 'POLICY_SELF_TEST' }).first().click();
    assert.match(await rita.text(), /An agent's word on its own work is not evidence/);
  });

  it('walks a route to live, approves a handoff and sees it dispatched, and rolls the route back', async () => {
    const { page } = rita;
    const route = `/console/routes/${KEY}`;
    const evaluate = async (gate, fields, button = 'Yes, evaluate it') => {
      await page.goto(route);
      return rita.confirm(gate === 'G4' ? 'Promote to live (G4)…' : `Evaluate ${gate}…`, button, fields);
    };
    // `arrives_0001` was completed before in dev, so G0 has what it needs.
    assert.match(await evaluate('G0', { Reason: 'the first one went through' }), /G0 passed/);
    assert.match(await evaluate('G1'), /G1 passed; the route is simulated/);
    assert.match(await evaluate('G2'), /G2 failed: 0 of 3 simulated handoffs/);
    for (const n of [1, 2, 3]) await gateway.run(`sim_000${n}`, 'simulated');
    assert.match(await evaluate('G2'), /G2 passed/);
    const evidence = { Handoff: 'hs_20260218_sim_0003', 'Run id': 'run-7', Reason: 'seen it myself' };
    assert.match(await evaluate('G3', evidence), /G3 passed/);
    assert.match(await evaluate('G4', { Reason: 'agreed with the desk' }, 'Yes, approve it for live'), /G4 passed; the route is live/);
    assert.match(await page.locator('#gates').innerText(), /canary 0 of 5/);
    assert.match(await page.locator('#gates').innerText(), /rita let it go live/);

    await gateway.submitLive('live_0001');
    await page.goto('/console');
    await page.locator('#inbox').getByRole('link', { name: 'health.check' }).click();
    assert.match(await page.locator('.countdown').first().innerText(), /in 1[45]:\d\d/);
    const told = await rita.confirm('Approve…', 'Yes, approve', { Reason: 'checked with the desk' });
    assert.equal(told, 'hs_20260218_live_0001 is allowed.');
    assert.match(await page.locator('#state').innerText(), /allowed/);
    await page.getByRole('heading', { name: 'Dispatch payload' }).waitFor();
    const orchestrator = await gateway.submitLive('live_0001');
    assert.equal(orchestrator.body.decision, 'allowed');
    assert.ok(orchestrator.body.dispatch && orchestrator.body.receipt, 'whoever asked has what to send');
    assert.ok(!(await page.content()).includes(orchestrator.body.receipt.signature), 'and nobody sees its signature here');
    // What the page says of the receipt is what the receipt says.
    for (const member of ['taskSpecDigest', 'dispatchDigest', 'runningHash']) {
      assert.ok((await rita.text()).includes(orchestrator.body.receipt[member]), member);
    }

    await page.goto(route);
    await page.getByRole('link', { name: 'Roll back…', exact: true }).click();
    assert.match(await rita.text(), /A dry run, just now[\s\S]*Demote the route[\s\S]*would be done/);
    assert.match(await rita.text(), /The one live handoff in flight is marked as rolled back/);
    assert.equal((await gateway.api('GET', `/v1/routes/${KEY}`)).body.stage, 'live', 'looking does nothing');
    await page.getByLabel('Reason').fill('slippage beyond the limit');
    await page.getByRole('button', { name: 'Yes, roll it back' }).click();
    assert.match(await page.locator('.flash').innerText(), /the route is simulated/);
    assert.match(await page.locator('#history').innerText(), /from live by human:rita, .*: slippage beyond the limit/);
    const [entry] = await gateway.entries('approval.granted');
    const wire = (await gateway.api('GET', `/v1/audit/${entry.sequence}`)).body.wire;
    assert.equal(wire.sender, 'human:rita');
  });

  it('blocks, unblocks, freezes and lifts', async () => {
    const { page } = rita;
    const route = `/console/routes/${KEY}`;
    await page.goto(route);
    await rita.confirm('Block…', 'Yes, block it', { Reason: 'the venue is down' });
    assert.equal((await gateway.submit('blocked_0001')).body.reasons[0].code, 'A2A_ROUTE_BLOCKED');
    await rita.confirm('Unblock…', 'Yes, lift it', { Reason: 'it is back' });
    await page.goto(route);
    await rita.confirm('Freeze…', 'Yes, freeze', { Reason: 'a drill' });
    assert.equal((await gateway.submit('frozen_0001')).body.reasons[0].code, 'POLICY_FROZEN');
    await page.getByRole('status').filter({ hasText: 'Decisions are frozen' }).waitFor();
    await rita.confirm('Lift…', 'Yes, lift it', { Reason: 'over' });
    assert.equal((await gateway.submit('open_0001')).status, 201);
  });

  it('makes a grant that says what it is for, and revokes it', async () => {
    const { page } = rita;
    await page.goto('/console/authorizations');
    await page.getByText('Make a grant').click();
    await page.getByLabel('In the name of').fill('user:main');
    await page.getByLabel('Agents').fill('blockchain-operator');
    await page.getByLabel('Operations').fill('transfer, swap');
    await page.getByLabel('simulated').check();
    await page.getByRole('button', { name: 'Go on…' }).click();
    assert.match(await rita.text(), /Operations\s+transfer, swap/);
    await page.getByRole('button', { name: 'Yes, make it' }).click();
    assert.match(await page.locator('.flash').innerText(), /The grant authz_\w+ is made/);
    const { body } = await gateway.api('GET', '/v1/authorizations');
    assert.deepEqual(body.authorizations[0].operations, ['transfer', 'swap']);
    assert.equal(body.authorizations[0].madeBy, 'rita');
    await rita.confirm('Revoke…', 'Yes, revoke it', { Reason: 'not needed' });
    assert.match(await page.locator('#list').innerText(), /revoked/);
  });

  it('moves the mention phase and marks a false positive', async () => {
    const { page } = rita;
    gateway.cli('key', 'add', '--owner', 'user:main', '--id', 'user-main-test');
    await gateway.mention('mention_0001', '1473395000000000001');
    await page.goto('/console/mentions');
    assert.match(await page.locator('#list').innerText(), /1473395000000000001/);
    await rita.confirm('False positive…', 'Yes, mark it', { Reason: 'it was a joke' });
    assert.match(await page.locator('#numbers').innerText(), /Marked as false positives\s+1\s+1/);
    // It is marked once, and says so.
    assert.match(await page.locator('#list').innerText(), /false positive/);
    assert.equal(await page.getByRole('link', { name: 'False positive…' }).count(), 0);
    // The list can be narrowed to a time.
    await page.goto('/console/mentions?from=2020-01-01&to=2020-01-02');
    assert.match(await page.locator('#list').innerText(), /No mention was judged in this time/);
    await page.goto('/console/mentions');
    await rita.confirm('Move here…', 'Yes, move it', { Reason: 'a week without trouble' });
    assert.equal((await gateway.api('GET', '/v1/mentions/phase')).body.phase, 'gated-read');
  });

  it('verifies the chain, and one handoff', async () => {
    const { page } = rita;
    await page.goto('/console/audit');
    await page.getByRole('link', { name: 'Verify the chain' }).click();
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.locator('.flash', { hasText: 'Verified: ' }).waitFor();
    await page.goto('/console/handoffs/hs_20260218_sim_0001');
    await page.getByRole('button', { name: 'Verify these entries' }).click();
    await page.locator('.flash', { hasText: 'Verified: 7 entries follow' }).waitFor();
    await page.goto('/console/audit/3');
    assert.match(await rita.text(), /Place in the chain\s+holds/);
  });

  it('takes the ledger and the list along', async () => {
    const { page } = rita;
    for (const [place, link, line] of [
      ['/console/audit', 'Export', /^\{"hcs":/],
      ['/console/audit', 'Checkpoint', /^\{"topic_id":/],
      ['/console/handoffs?decision=denied', 'CSV', /^handoffId,/],
      ['/console/handoffs?decision=denied', 'JSON lines', /^\{"attempt":/],
    ]) {
      await page.goto(place);
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: link, exact: true }).click()]);
      const chunks = [];
      for await (const chunk of await download.createReadStream()) chunks.push(chunk);
      assert.match(Buffer.concat(chunks).toString(), line, link);
    }
  });

  it('is out when the token is revoked, also where the page only waits', async () => {
    const omar = await (await Person.at(gateway)).logIn('omar');
    await omar.page.locator('body[data-connected]').waitFor();
    assert.equal((await gateway.api('DELETE', '/v1/tokens/omar')).status, 200);
    await omar.page.waitForURL('**/console/login?next=%2Fconsole');
    await omar.leave();
  });
});

describe('without a script', () => {
  let gateway, rita;
  before(async () => {
    gateway = await Gateway.start();
    await gateway.goLive();
    rita = await (await Person.at(gateway, { javaScriptEnabled: false })).logIn('rita');
  });
  after(async () => {
    await rita.leave();
    await gateway.stop();
  });

  it('one reads', async () => {
    const { page } = rita;
    await gateway.submit('lost_0001', (spec) => { spec.routing.routeKey = 'nowhere.execution-plane.v1'; });
    await page.goto('/console/handoffs');
    await page.getByRole('link', { name: 'hs_20260218_lost_0001' }).click();
    assert.match(await rita.text(), /A2A_ROUTE_UNKNOWN at \/routing\/routeKey/);
    assert.match(await page.locator('time').first().innerText(), /just now|s ago/);
    assert.match(await page.locator('time').first().getAttribute('title'), /^20\d\d-.*Z$/);
    await page.getByLabel('Sections').getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('Type').selectOption('gate.decided');
    await page.getByRole('button', { name: 'Search' }).click();
    assert.match(await rita.text(), /gate\.decided/);
  });

  it('one approves', async () => {
    const { page } = rita;
    await gateway.submitLive('live_0001');
    await page.goto('/console/approvals');
    await page.getByRole('link', { name: 'Look and answer' }).click();
    assert.match(await rita.text(), /What the target would be sent[\s\S]*plane: "execution"/);
    const told = await rita.confirm('Approve…', 'Yes, approve', { Reason: 'checked' });
    assert.equal(told, 'hs_20260218_live_0001 is allowed.');
  });

  it('one verifies the chain', async () => {
    const { page } = rita;
    await page.goto('/console/audit/verify');
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.locator('.flash', { hasText: 'Verified: ' }).waitFor();
  });
});

describe('with the keyboard alone', () => {
  let gateway, rita;
  before(async () => {
    gateway = await Gateway.start();
    await gateway.goLive();
    rita = await (await Person.at(gateway)).logIn('rita');
  });
  after(async () => {
    await rita.leave();
    await gateway.stop();
  });

  /** Presses the tab key until what is wanted has the focus, which is to be seen. */
  async function reach(page, name) {
    for (let n = 0; n < 200; n += 1) {
      await page.keyboard.press('Tab');
      const [text, outline] = await page.evaluate(() => {
        const { activeElement: on } = document;
        return [on.labels?.[0]?.innerText ?? on.innerText ?? '', getComputedStyle(on).outlineStyle];
      });
      assert.notEqual(outline, 'none', `the focus is not seen on ${text}`);
      if (text.trim().startsWith(name)) return;
    }
    assert.fail(`${name} is not reached`);
  }

  it('one approves', async () => {
    const { page } = rita;
    await gateway.submitLive('live_0001');
    await page.goto('/console');
    await reach(page, 'Approvals');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/approvals');
    await reach(page, 'Look and answer');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/approvals/hs_*');
    await reach(page, 'Approve…');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/act/approve*');
    await reach(page, 'Reason');
    await page.keyboard.type('checked with the desk');
    await reach(page, 'Yes, approve');
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.flash').innerText(), 'hs_20260218_live_0001 is allowed.');
  });

  it('one rolls a route back', async () => {
    const { page } = rita;
    await page.goto(`/console/routes/${KEY}`);
    await reach(page, 'Roll back…');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/act/rollback*');
    await reach(page, 'Reason');
    await page.keyboard.type('a drill');
    await reach(page, 'Yes, roll it back');
    await page.keyboard.press('Enter');
    assert.match(await page.locator('.flash').innerText(), /the route is simulated/);
  });
});

describe('the way in', () => {
  it('is a link that opens the console once, or a token that holds', async () => {
    const gateway = await Gateway.start();
    const rita = await Person.at(gateway);
    const { page } = rita;
    const link = gateway.cli('console', '--print', '--token', gateway.tokens.rita).trim();
    await page.goto(link);
    await page.waitForURL('**/console');
    assert.match(await page.locator('.me').innerText(), /rita\s+operator/);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.waitForURL('**/console/login');
    await page.goto(link);
    assert.match(await page.getByRole('alert').innerText(), /This link was used before/);
    await page.getByLabel('Token').fill('hofd_opr_nonsense');
    await page.getByRole('button', { name: 'Log in' }).click();
    assert.match(await page.getByRole('alert').innerText(), /unknown, has expired, or was revoked/);
    // Where one wanted to go is where one comes to.
    await page.goto('/console/routes');
    await page.getByLabel('Token').fill(gateway.tokens.rita);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL('**/console/routes');
    // A session that is over does nothing, and says so.
    await page.goto('/console/act/freeze?scope=all');
    await page.getByLabel('Reason').fill('too late');
    await gateway.api('DELETE', '/v1/tokens/rita');
    await page.getByRole('button', { name: 'Yes, freeze' }).click();
    assert.match(await page.locator('main').innerText(), /the session is over, and nothing was done/i);
    assert.deepEqual((await gateway.api('GET', '/v1/freeze')).body.frozen, []);
    await rita.leave();
    await gateway.stop();
  });
});

describe('a page that is open', () => {
  it('says what goes wrong and that it is well again, where nothing is written, and when nobody answers', async () => {
    const gateway = await Gateway.start();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    const policies = await rita.context.newPage();
    await policies.goto('/console/policies');
    let connections = 0;
    page.on('request', (request) => { if (request.url().endsWith('/console/live')) connections += 1; });
    await page.reload();
    const live = (on) => on.locator('#live', { hasText: /^Live$/ }).waitFor();
    await Promise.all([live(page), live(policies)]);
    const routes = join(gateway.workspace, 'policies/routes.json');
    const good = readFileSync(routes, 'utf8');
    writeFileSync(routes, '{');
    await page.getByRole('heading', { name: 'What is wrong' }).waitFor();
    await policies.locator('#set', { hasText: 'last load failed' }).waitFor();
    writeFileSync(routes, good);
    await page.getByRole('heading', { name: 'What is wrong' }).waitFor({ state: 'detached' });
    await policies.locator('#set', { hasText: 'last load loaded' }).waitFor();
    assert.equal(connections, 1, 'it was told, and has not asked by itself');
    // A gateway that stands still keeps its connections, and says nothing.
    gateway.child.kill('SIGSTOP');
    await page.locator('#live', { hasText: 'Not connected' }).waitFor();
    assert.equal(await page.locator('body[data-connected]').count(), 0);
    gateway.child.kill('SIGCONT');
    await live(page);
    await rita.leave();
    await gateway.stop();
  });

  it('is live again after it was refused, and has what it missed', async () => {
    const gateway = await Gateway.start();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    const live = () => page.locator('#live', { hasText: /^Live$/ }).waitFor();
    const shows = (name) => page.getByRole('link', { name: `hs_20260218_${name}` }).waitFor();
    // A proxy has nobody behind it for a moment, or the caller asked too often: the browser gives up at such an answer.
    for (const status of [502, 429]) {
      const refusals = [status, status];
      await page.route('**/console/live', (route) => {
        const refused = refusals.shift();
        return refused ? route.fulfill({ status: refused, contentType: 'text/html', body: 'not now' }) : route.continue();
      });
      await page.goto('/console/handoffs');
      await page.locator('#live', { hasText: 'Not connected' }).waitFor();
      await live();
      assert.deepEqual(refusals, []);
      await page.unroute('**/console/live');
      await gateway.submit(`after_${status}`);
      await shows(`after_${status}`);
    }
    // What it asks for itself is refused: it is not live before it has it.
    let refusals = 2;
    await page.route('**/console/handoffs', (route) => {
      const isItself = route.request().headers()['x-handoffd-look'] === 'page';
      if (!isItself || refusals === 0) return route.continue();
      refusals -= 1;
      return refusals ? route.fulfill({ status: 429, body: 'not now' }) : route.abort();
    });
    await gateway.submit('late_0001');
    await page.locator('#live', { hasText: 'Not connected' }).waitFor();
    await shows('late_0001');
    await live();
    assert.equal(refusals, 0);
    await rita.leave();
    await gateway.stop();
  });

  it('leaves the focus where it is, at a link, a fold or a button', async () => {
    const gateway = await Gateway.start();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    await gateway.submit('focus_0001');
    await page.goto('/console/handoffs/hs_20260218_focus_0001');
    await page.locator('body[data-connected]').waitFor();
    const here = () => page.evaluate(() => `${document.activeElement.tagName} ${document.activeElement.textContent}`);
    const fold = page.locator('#timeline summary').first();
    await fold.focus();
    await page.keyboard.press('Enter');
    await gateway.complete('focus_0001');
    await page.locator('#timeline', { hasText: 'task.complete' }).waitFor();
    assert.equal(await here(), 'SUMMARY Payload');
    assert.equal(await page.locator('#timeline details[open]').count(), 1);
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('#timeline details[open]').count(), 0, 'the same one');
    // A button, put into a part that is replaced, as no page has one there today.
    await page.goto('/console');
    await page.locator('body[data-connected]').waitFor();
    await page.route('**/console', async (route) => {
      const answer = await route.fetch();
      return route.fulfill({ response: answer, body: (await answer.text()).replace('<h2>Ledger</h2>', '<h2>Ledger</h2><button>Press</button>') });
    });
    await page.goto('/console');
    await page.locator('body[data-connected]').waitFor();
    await page.getByRole('button', { name: 'Press' }).focus();
    const before = await page.locator('#ledger .big').innerText();
    await gateway.submit('focus_0002');
    await page.locator('#ledger .big').filter({ hasNotText: before }).waitFor();
    assert.equal(await here(), 'BUTTON Press');
    await rita.leave();
    await gateway.stop();
  });

  it('keeps all of itself up to date: what waits, what was sent, what is defined', async () => {
    const gateway = await Gateway.start();
    await gateway.goLive();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const open = async (path) => {
      const page = await rita.context.newPage();
      await page.goto(path);
      await page.locator('body[data-connected]').waitFor();
      return page;
    };
    const approvals = await open('/console/approvals');
    await approvals.locator('#total', { hasText: '0 waiting' }).waitFor();
    await gateway.submitLive('part_0001');
    await approvals.locator('#total', { hasText: '1 waiting' }).waitFor();
    const handoff = await open('/console/handoffs/hs_20260218_part_0001');
    assert.equal(await handoff.getByRole('heading', { name: 'Dispatch payload' }).count(), 0);
    await gateway.api('POST', '/v1/approvals/hs_20260218_part_0001', { decision: 'approve', reason: 'fine' }, gateway.tokens.rita);
    for (const name of ['Dispatch payload', 'Evidence', 'Receipt']) await handoff.getByRole('heading', { name }).waitFor();
    const policies = await open('/console/policies');
    const route = await open(`/console/routes/${KEY}`);
    gateway.editRoutes((changed, routes) => {
      changed.approvers = 2;
      routes['new-desk.limits.v1'] = { ...changed, primaryAgentId: 'new-desk' };
    });
    await gateway.api('POST', '/v1/reload');
    await policies.getByRole('heading', { name: 'new-desk.limits.v1' }).waitFor();
    await route.locator('#definition', { hasText: 'approvers: 2' }).waitFor();
    await rita.leave();
    await gateway.stop();
  });

  it('takes the answer away from an approval that another person gave, or that ended', async () => {
    const clock = new Clock();
    const gateway = await Gateway.start('', clock.environment);
    await gateway.goLive();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    for (const [name, become, word] of [
      ['live_0001', () => gateway.api('POST', '/v1/approvals/hs_20260218_live_0001', { decision: 'reject', reason: 'no' }, gateway.tokens.omar), 'denied'],
      ['live_0002', () => clock.set(20 * 60), 'expired'],
    ]) {
      await gateway.submitLive(name);
      await page.goto(`/console/approvals/hs_20260218_${name}`);
      await page.getByRole('link', { name: 'Approve…' }).waitFor();
      await page.locator('body[data-connected]').waitFor();
      await become();
      await page.locator('#standing', { hasText: `It does not wait any more: it is ${word}` }).waitFor();
      assert.equal(await page.getByRole('link', { name: /Approve|Reject/ }).filter({ hasText: '…' }).count(), 0);
    }
    await page.getByRole('link', { name: 'See what became of it' }).click();
    await page.waitForURL('**/console/handoffs/hs_20260218_live_0002');
    await rita.leave();
    await gateway.stop();
    clock.gone();
  });

  it('leads to the login where the session ended unheard, as in a restart of the gateway', async () => {
    const gateway = await Gateway.start();
    const omar = await Person.at(gateway);
    await omar.context.route('**/console/live', async (route) => {
      await gateway.api('DELETE', '/v1/tokens/omar');
      await route.fulfill({ status: 401, contentType: 'text/html', body: '' });
    });
    await omar.logIn('omar');
    await omar.page.waitForURL('**/console/login?next=%2Fconsole');
    await omar.leave();
    await gateway.stop();
  });
});

describe('a handoff that waits', () => {
  it('is rejected for good, and not without a reason', async () => {
    const gateway = await Gateway.start();
    await gateway.goLive();
    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    await gateway.submitLive('live_0002');
    await page.goto('/console/approvals/hs_20260218_live_0002');
    await page.getByRole('link', { name: 'Reject…' }).click();
    assert.match(await page.locator('.countdown').innerText(), /in 1[45]:\d\d/);
    await page.getByLabel('Reason').fill('   ');
    await page.getByRole('button', { name: 'Yes, reject' }).click();
    assert.match(await page.getByRole('alert').innerText(), /Nothing was done[\s\S]*a reason is needed/i);
    await page.getByLabel('Reason').fill('not today');
    await page.getByRole('button', { name: 'Yes, reject' }).click();
    assert.equal(await page.locator('.flash').innerText(), 'hs_20260218_live_0002 is denied.');
    await page.goto('/console/approvals');
    assert.match(await rita.text(), /Nothing waits for a person/);
    await rita.leave();
    await gateway.stop();
  });
});

describe('two people', () => {
  it('must both say yes where the route asks for it', async () => {
    const gateway = await Gateway.start();
    gateway.editRoutes((route) => { route.approvers = 2; });
    await gateway.api('POST', '/v1/reload');
    await gateway.goLive();
    await gateway.submitLive('live_0001');
    const [rita, omar] = [await (await Person.at(gateway)).logIn('rita'), await (await Person.at(gateway)).logIn('omar')];
    const approval = '/console/approvals/hs_20260218_live_0001';
    await rita.page.goto(approval);
    assert.match(await rita.confirm('Approve…', 'Yes, approve', { Reason: 'looked' }), /another person must say yes too/);
    await rita.page.goto(approval);
    assert.match(await rita.text(), /You said yes; another person must[\s\S]*1 of 2: rita/);
    assert.equal(await rita.page.getByRole('link', { name: 'Approve…' }).count(), 0);
    await rita.page.goto('/console/act/approve?id=hs_20260218_live_0001');
    assert.match(await rita.text(), /This cannot be done now[\s\S]*APPROVAL_TWICE/);
    assert.equal(await rita.page.getByRole('button', { name: 'Yes, approve' }).count(), 0);
    await omar.page.goto(approval);
    assert.equal(await omar.confirm('Approve…', 'Yes, approve', { Reason: 'looked too' }), 'hs_20260218_live_0001 is allowed.');
    await rita.leave();
    await omar.leave();
    await gateway.stop();
  });
});
