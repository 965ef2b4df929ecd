// Ways through the console that a person walks: in by a link, through long lists and back, past a slip in a filter, and
// out when the time is over.

import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Clock, Gateway, Person, closeBrowser, eventually } from './support.mjs';

after(closeBrowser);

describe('the command line', () => {
  it('opens a browser with a link that leads in, once', async () => {
    const gateway = await Gateway.start();
    const opened = join(gateway.root, 'opened');
    const desktop = join(gateway.root, 'xdg-open');
    writeFileSync(desktop, `#!/bin/sh\nprintf %s "$1" > ${opened}\n`);
    chmodSync(desktop, 0o755);
    const environment = { PATH: `${gateway.root}:${process.env.PATH}`, DISPLAY: ':7', BROWSER: '', HANDOFFD_TOKEN: gateway.tokens.rita };
    const printed = gateway.cliWith(environment, 'console').trim();
    const link = readFileSync(opened, 'utf8');
    assert.equal(link, printed, 'what is printed is what is opened');
    const rita = await Person.at(gateway);
    await rita.page.goto(link);
    await rita.page.waitForURL('**/console');
    assert.match(await rita.page.locator('.me').innerText(), /rita\s+operator/);
    // Once more in the same browser: nothing is lost.
    await rita.page.goto(link);
    assert.match(await rita.page.locator('.flash').innerText(), /That link was used before; you are still logged in as rita/);
    // And in another one: nothing is won.
    const other = await Person.at(gateway);
    await other.page.goto(link);
    assert.match(await other.page.getByRole('alert').innerText(), /This link was used before[\s\S]*Run handoffd console again/);
    await other.page.goto('/console');
    assert.match(other.page.url(), /\/console\/login\?next=/);
    await rita.leave();
    await other.leave();
    await gateway.stop();
  });
});

describe('a session that ends by time', () => {
  let gateway, clock, rita;
  before(async () => {
    clock = new Clock();
    gateway = await Gateway.start('', clock.environment);
    rita = await (await Person.at(gateway)).logIn('rita');
  });
  after(async () => {
    await rita.leave();
    await gateway.stop();
    clock.gone();
  });

  it('takes the open page to the login, keeps a form that comes too late, and leads back', async () => {
    const { page, context } = rita;
    await page.goto('/console/handoffs?decision=denied');
    await page.locator('body[data-connected]').waitFor();
    const late = await context.newPage();
    await late.goto('/console/act/freeze?scope=all');
    await late.getByLabel('Reason').fill('slippage "beyond" the limit & more');
    // 29 minutes are not over, and looking is no use of it by a person.
    clock.set(29 * 60);
    await gateway.submit('meanwhile_0001', (spec) => { spec.safety.e2eActor = 'myself'; });
    await page.getByRole('link', { name: 'hs_20260218_meanwhile_0001' }).waitFor();
    clock.set(31 * 60);
    await page.waitForURL('**/console/login?next=%2Fconsole%2Fhandoffs%3Fdecision%3Ddenied');
    assert.match(await page.getByRole('status').innerText(), /Your session is over: it ends after 30 minutes without use/);
    // A page that only waits for a person is left alone until they send it.
    await late.getByRole('button', { name: 'Yes, freeze' }).click();
    assert.match(await late.getByRole('alert').innerText(), /The session is over, and nothing was done/);
    assert.deepEqual((await gateway.api('GET', '/v1/freeze')).body.frozen, []);
    await late.getByLabel('Token').fill(gateway.tokens.rita);
    await late.getByRole('button', { name: 'Log in' }).click();
    assert.equal(await late.getByLabel('Reason').inputValue(), 'slippage "beyond" the limit & more');
    await late.getByRole('button', { name: 'Yes, freeze' }).click();
    assert.match(await late.locator('.flash').innerText(), /Frozen from entry/);
    // The other page's way back is still there.
    await page.getByLabel('Token').fill(gateway.tokens.rita);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL('**/console/handoffs?decision=denied');
  });

  it('ends after eight hours even if it is used', async () => {
    const { page } = rita;
    let minutes = 31;
    for (; minutes < 31 + 8 * 60 - 20; minutes += 20) {
      clock.set(minutes * 60);
      assert.equal((await page.goto('/console/codes')).status(), 200);
      assert.doesNotMatch(page.url(), /login/);
    }
    clock.set((minutes + 25) * 60);
    await page.goto('/console/codes');
    assert.match(page.url(), /\/console\/login\?next=%2Fconsole%2Fcodes/);
  });

  it('lets a link be followed for two minutes', async () => {
    const link = () => gateway.cli('console', '--print', '--token', gateway.tokens.omar).trim();
    const omar = await Person.at(gateway);
    const [first, second] = [link(), link()];
    clock.set(12 * 3600 + 130);
    await omar.page.goto(first);
    assert.match(await omar.page.getByRole('alert').innerText(), /is older than two minutes/);
    clock.set(12 * 3600);
    const third = link();
    clock.set(12 * 3600 + 110);
    await omar.page.goto(third);
    await omar.page.waitForURL('**/console');
    assert.notEqual(first, second);
    await omar.leave();
  });
});

for (const javaScriptEnabled of [true, false]) {
  describe(`a long list, ${javaScriptEnabled ? 'with' : 'without'} a script`, () => {
    let gateway, rita;
    before(async () => {
      gateway = await Gateway.start();
      const lost = (n) => gateway.spec(`lost_${String(n).padStart(4, '0')}`, (spec) => { spec.routing.routeKey = 'nowhere.execution-plane.v1'; });
      const sent = await gateway.api('POST', '/v1/handoffs/batch', Array.from({ length: 120 }, (_, n) => lost(n)));
      assert.equal(sent.status, 200);
      for (const n of [1, 2, 3]) await gateway.submit(`fine_000${n}`);
      rita = await (await Person.at(gateway, { javaScriptEnabled })).logIn('rita');
    });
    after(async () => {
      await rita.leave();
      await gateway.stop();
    });

    it('is walked through to its end and back, with its filters', async () => {
      const { page } = rita;
      await page.goto('/console/handoffs');
      await page.getByLabel('Decision').selectOption('denied');
      await page.getByLabel('Agent').fill('crypto-sage');
      await page.getByRole('button', { name: 'Filter' }).click();
      const names = () => page.locator('#list td.id a').allInnerTexts();
      const go = async (name) => {
        const here = page.url();
        await page.getByRole('link', { name, exact: true }).click();
        await page.waitForURL((url) => url.href !== here);
      };
      const first = await names();
      await go('Older');
      const second = await names();
      await go('Older');
      const third = await names();
      assert.equal(new Set([...first, ...second, ...third]).size, 120);
      assert.match(await page.getByLabel('Pages').innerText(), /Newest\s+Newer\s+page 3/);
      assert.equal(await page.getByRole('link', { name: 'Older', exact: true }).count(), 0);
      assert.equal(await page.getByLabel('Agent').inputValue(), 'crypto-sage');
      assert.equal(await page.getByLabel('Decision').inputValue(), 'denied');
      await go('Newer');
      assert.deepEqual(await names(), second);
      await go('Newer');
      assert.deepEqual(await names(), first);
      assert.equal(await page.getByRole('link', { name: 'Newer', exact: true }).count(), 0);
      await page.goBack();
      assert.deepEqual(await names(), second, 'the way back of the browser, too');
      await go('Newest');
      assert.deepEqual(await names(), first);
    });

    it('is not shown where a filter is mistyped, and nothing that was typed is lost', async () => {
      const { page } = rita;
      await page.goto('/console/handoffs');
      await page.getByLabel('Decision').selectOption('denied');
      await page.getByLabel('Agent').fill('crypto-sage');
      await page.getByLabel('From (UTC)').fill('2026-02-30');
      await page.getByRole('button', { name: 'Filter' }).click();
      const from = page.getByLabel('From (UTC)');
      assert.equal(await from.getAttribute('aria-invalid'), 'true');
      assert.equal(await from.evaluate((field) => document.getElementById(field.getAttribute('aria-describedby')).textContent), 'not a time, such as 2026-02-18 or 2026-02-18 19:38');
      assert.ok(await from.evaluate((field) => document.activeElement === field), 'the cursor is where it is wrong');
      assert.match(await page.locator('#list').innerText(), /^Nothing is listed/);
      assert.equal(await page.getByLabel('Agent').inputValue(), 'crypto-sage');
      assert.equal(await page.getByLabel('Decision').inputValue(), 'denied');
      await from.fill('2026-02-18');
      await page.getByRole('button', { name: 'Filter' }).click();
      assert.equal(await page.locator('#list td.id a').count(), 50);
      assert.equal(await from.inputValue(), '2026-02-18', 'as it was typed');
    });
  });
}

describe('a page of approvals', () => {
  it('on which nothing waits any more does not say that nothing waits, nor does one that never was', async () => {
    const gateway = await Gateway.start();
    await gateway.goLive();
    const rita = await (await Person.at(gateway)).logIn('rita');
    await gateway.submitLive('live_0001');
    await rita.page.goto('/console/approvals?cursor=9000000000000000000.hs_later&page=2');
    assert.match(await rita.text(), /1 waiting[\s\S]*What was on this page no longer waits/);
    await rita.page.getByRole('link', { name: 'First to end' }).click();
    assert.match(await rita.text(), /health\.check/);
    await rita.page.goto('/console/approvals?cursor=nonsense');
    assert.match(await rita.text(), /Nothing is listed\. The address names no page of this list/);
    await rita.leave();
    await gateway.stop();
  });
});
