// Every page: for whom it is, that everybody can use it, and that it shows whatever a TaskSpec says as text.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, it } from 'node:test';
import { Gateway, KEY, Person, closeBrowser } from './support.mjs';
import { TROUBLED, WAITING, WAITING_SETTINGS, pages, populate, propose, trouble } from './scene.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

after(closeBrowser);

/** What an examiner of accessibility says about the pages. */
async function examined(gateway, colorScheme, width, list) {
  // The policy lets no foreign script in, which is as it should be; the examiner comes in from outside.
  const person = await Person.at(gateway, { colorScheme, bypassCSP: true, viewport: { width, height: 800 } });
  const found = [];
  const examine = async (name) => {
    await person.page.evaluate(AXE);
    const { violations } = await person.page.evaluate(() => globalThis.axe.run(document));
    for (const { id, impact, nodes } of violations) {
      if (impact !== 'serious' && impact !== 'critical') continue;
      found.push(`${name}: ${id}: ${nodes.map((node) => node.html).slice(0, 3).join(' | ')}`);
    }
  };
  await person.page.goto('/console/login');
  await examine('login');
  await person.logIn('rita');
  for (const [name, path] of list) {
    await person.page.goto(path);
    await examine(name);
  }
  assert.deepEqual(found, []);
  await person.leave();
}

describe('every page', () => {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
    await populate(gateway);
  });
  after(() => gateway.stop());

  for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]]) {
    it(`can be used by everybody, ${colorScheme}, ${width} wide`, () => examined(gateway, colorScheme, width, pages()));
  }

  it('fits a telephone: nothing sticks out', async () => {
    const person = await (await Person.at(gateway, { viewport: { width: 390, height: 844 } })).logIn('rita');
    for (const [name, path] of pages()) {
      await person.page.goto(path);
      const [wide, window] = await person.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= window, `${name} is ${wide} wide`);
    }
    await person.leave();
  });

  it('folds filters that nobody used, says who one is, and begins with what a handoff is about, on a telephone', async () => {
    const person = await (await Person.at(gateway, { viewport: { width: 390, height: 844 } })).logIn('rita');
    const { page } = person;
    assert.match(await page.locator('.me').innerText(), /rita\s+operator/);
    for (const [path, isOpen] of [
      ['/console/handoffs', false], ['/console/handoffs?decision=denied', true], ['/console/audit', false], ['/console/audit?type=gate.decided', true],
    ]) {
      await page.goto(path);
      assert.equal(await page.locator('form.filters').isVisible(), isOpen, path);
    }
    await page.goto('/console/audit');
    await page.locator('details.narrow summary').click();
    assert.ok(await page.getByLabel('Type').isVisible());
    await page.goto('/console/handoffs/hs_20260218_expired_0001');
    const top = (place) => page.locator(place).evaluate((part) => part.getBoundingClientRect().top);
    const order = [await top('#gates'), await top('#about'), await top('#timeline'), await top('section:has(> .tree)'), await top('#proof')];
    assert.deepEqual(order, order.toSorted((one, other) => one - other));
    // A point in time is one word, and whole on hover.
    const [words, exact, rows] = await page.locator('.why .at').first().evaluate((at) => [at.textContent, at.title, at.getClientRects().length]);
    assert.match(words, /^20\d\d-\d\d-\d\dT[\d:]+(\.\d{1,3})?Z$/);
    assert.ok(exact.startsWith(words.slice(0, -1)) && rows === 1, exact);
    await person.leave();
  });

  it('has fields whose edges and examples can be seen, in line with each other', async () => {
    const luminance = (color) => {
      const [r, g, b] = color.match(/[\d.]+/g).map((part) => part / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one, other) => {
      const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
      return (light + 0.05) / (dark + 0.05);
    };
    for (const colorScheme of ['light', 'dark']) {
      const person = await (await Person.at(gateway, { colorScheme })).logIn('rita');
      await person.page.goto('/console/authorizations?principal=user%3Amain&minutes=60');
      const fields = await person.page.locator('#make input:not([type="checkbox"]), #make select').evaluateAll((all) => all.map((one) => {
        const { borderTopColor: edge, backgroundColor: ground } = getComputedStyle(one);
        const { top } = one.getBoundingClientRect();
        return { name: one.name, edge, ground, example: getComputedStyle(one, '::placeholder').color, top };
      }));
      assert.ok(fields.length >= 8);
      for (const { name, edge, ground, example } of fields) {
        assert.ok(contrast(edge, ground) >= 3, `${colorScheme} ${name}: ${contrast(edge, ground)}`);
        assert.ok(contrast(example, ground) >= 4.5, `${colorScheme} ${name}: ${contrast(example, ground)}`);
      }
      const tops = (...names) => new Set(fields.filter(({ name }) => names.includes(name)).map(({ top }) => top));
      assert.equal(tops('routeKey', 'intentHash', 'uses').size, 1, 'they stand in one line');
      await person.leave();
    }
  });

  it('keeps its columns, however long a name is that stands in one', async () => {
    await gateway.submit('0'.repeat(100), (spec) => { spec.routing.routeKey = 'nowhere.execution-plane.v1'; });
    const person = await (await Person.at(gateway)).logIn('rita');
    for (const place of ['/console', '/console/handoffs']) {
      await person.page.goto(place);
      const table = person.page.locator('table', { hasText: '0'.repeat(100) });
      const shares = await table.locator('thead th').evaluateAll((heads) => {
        const widths = heads.map((head) => head.getBoundingClientRect().width);
        return widths.map((width) => width / widths.reduce((one, other) => one + other));
      });
      assert.ok(shares[0] < 0.4 && shares[1] > 0.2, `${place}: ${shares}`);
    }
    await person.leave();
  });

  it('asks no other host and breaks no rule of its own policy', async () => {
    const person = await (await Person.at(gateway)).logIn('rita');
    for (const [name, path] of pages()) {
      await person.page.goto(path, { waitUntil: 'load' });
      assert.deepEqual(person.troubles, [], name);
    }
    await person.leave();
  });

  it('is reached with the keyboard alone', async () => {
    const person = await (await Person.at(gateway)).logIn('rita');
    const { page } = person;
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the page');
    for (let n = 0; n < 4; n += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/approvals');
    await person.leave();
  });

  it('lets everything on it be reached, and shows where the focus is', async () => {
    const person = await (await Person.at(gateway)).logIn('rita');
    for (const [name, path] of pages()) {
      await person.page.goto(path);
      await person.page.keyboard.press('Tab');
      const lost = await person.page.evaluate(() => {
        const shown = (one) => one.type !== 'hidden' && one.checkVisibility({ visibilityProperty: true });
        const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter(shown);
        return all.filter((one) => {
          one.focus({ focusVisible: true });
          const { outlineStyle, outlineWidth } = getComputedStyle(one);
          return document.activeElement !== one || one.tabIndex < 0 || outlineStyle === 'none' || parseFloat(outlineWidth) < 2;
        }).map((one) => one.outerHTML);
      });
      assert.deepEqual(lost, [], name);
    }
    await person.leave();
  });

  it('tells times in words, with the exact one on hover, and long values in part, with the whole one at hand', async () => {
    const person = await (await Person.at(gateway)).logIn('rita');
    const { page } = person;
    let times = 0;
    for (const [name, path] of pages()) {
      await page.goto(path);
      for (const [text, title] of await page.locator('time').evaluateAll((all) => all.map((one) => [one.textContent, one.title]))) {
        times += 1;
        assert.match(text, /^(just now|over|in \d+:\d\d|(in )?\d+ (s|min|h|days)( ago)?)$/, name);
        assert.match(title, /^20\d\d-\d\d-\d\dT[\d:.]+Z$/, name);
      }
    }
    assert.ok(times > 100, `${times} times`);
    await page.goto('/console/handoffs/hs_20260218_refused_0001');
    const note = page.locator('.tree li', { hasText: 'note' }).locator('details');
    assert.ok(!(await note.innerText()).includes('x'.repeat(400)));
    await note.locator('summary').click();
    assert.ok((await note.innerText()).includes('x'.repeat(400)));
    await person.leave();
  });

  it('lets an auditor see and not act', async () => {
    const ada = await (await Person.at(gateway)).logIn('ada');
    const before = (await gateway.api('GET', '/v1/audit?limit=1')).body.entries[0].sequence;
    for (const [name, path] of pages()) {
      const answer = await ada.page.goto(path);
      const acts = path.includes('/act/');
      const expected = acts ? 403 : name === 'not-found' ? 404 : name.endsWith('-wrong') ? 400 : 200;
      assert.equal(answer.status(), expected, name);
      if (acts) assert.match(await ada.text(), /a token of role auditor may not do this/i);
      assert.equal(await ada.page.locator('a[href*="/console/act/"]').count(), 0, name);
    }
    assert.equal((await gateway.api('GET', '/v1/audit?limit=1')).body.entries[0].sequence, before);
    await ada.leave();
  });

  it('is nothing for an agent', async () => {
    const sage = await Person.at(gateway);
    await sage.page.goto('/console/login');
    await sage.page.getByLabel('Token').fill(gateway.tokens.sage);
    await sage.page.getByRole('button', { name: 'Log in' }).click();
    assert.match(await sage.page.getByRole('alert').innerText(), /The console is for operators, auditors and administrators/);
    await sage.page.goto('/console/handoffs');
    assert.match(sage.page.url(), /\/console\/login\?next=/);
    await sage.leave();
  });
});

describe('a policy set that did not load', () => {
  it('is said on the overview and on its page, with what to do', async () => {
    const gateway = await Gateway.start();
    await trouble(gateway);
    const rita = await (await Person.at(gateway, { viewport: { width: 390, height: 844 } })).logIn('rita');
    assert.match(await rita.page.locator('#troubles').innerText(), /Policies degraded: decisions go on[\s\S]*capability must be a string[\s\S]*What to do/i);
    for (const [name, path] of TROUBLED) {
      await rita.page.goto(path);
      const [wide, window] = await rita.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= window, `${name} is ${wide} wide`);
    }
    await rita.leave();
    for (const colorScheme of ['light', 'dark']) await examined(gateway, colorScheme, 1280, TROUBLED);
    await gateway.stop();
  });
});

describe('a policy set that waits for a yes', () => {
  it('is shown with what changed, can be used by everybody, and is put in force by an operator', async () => {
    const gateway = await Gateway.start(WAITING_SETTINGS);
    await propose(gateway);
    for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) await examined(gateway, colorScheme, width, WAITING);
    const rita = await (await Person.at(gateway)).logIn('rita');
    // It waits for a person like a handoff does, and the overview and the menu say so.
    assert.match(await rita.page.locator('#inbox').innerText(), /Waiting for a person[\s\S]*1\s+A changed policy set/);
    await rita.page.getByLabel('Sections').getByRole('link', { name: 'Policies 1 waiting' }).click();
    const { pending } = (await gateway.api('GET', '/v1/policies')).body;
    assert.match(await rita.page.locator('#pending').innerText(), /Changed, and not in force[\s\S]*policies\/routes\.json/);
    assert.match(await rita.page.locator('#pending').innerText(), /What it would change\s+new-desk\.limits\.v1 in policies\/routes\.json added[\s\S]*primaryAgentId: new-desk/);
    assert.ok((await rita.page.locator('#pending').innerText()).includes(pending.digest));
    const told = await rita.confirm('Approve…', 'Yes, approve', { Reason: 'agreed with the desk' });
    assert.ok(told.includes(`${pending.digest} is in force`), told);
    await rita.page.goto('/console');
    assert.match(await rita.page.locator('#inbox').innerText(), /Nothing waits for you/);
    await rita.leave();
    await gateway.stop();
  });
});

const PAYLOAD = '"><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>\'';

/** Looks at a page: one script of our own, and not an element of the payload's. Is the payload shown there? */
async function looked(page, path) {
  await page.goto(path);
  const [scripts, images, drawings] = await page.evaluate(() => [
    document.scripts.length, document.querySelectorAll('img[src="x"]').length, document.querySelectorAll('svg[onload]').length,
  ]);
  assert.deepEqual([scripts, images, drawings], [1, 0, 0], path);
  return (await page.content()).includes('alert(1)');
}

describe('a TaskSpec full of scripts', () => {
  it('is text to whoever is asked to approve it, and once it is allowed', async () => {
    const gateway = await Gateway.start();
    await gateway.goLive();
    // Free text may hold it, so it passes the gates.
    await gateway.submit('live_0001', (spec) => {
      Object.assign(spec, { mode: 'live', safety: { ...spec.safety, requiresHumanApproval: true } });
      spec.intent.summary = PAYLOAD;
      spec.acceptance.doneWhen = [PAYLOAD];
    });
    const rita = await (await Person.at(gateway)).logIn('rita');
    for (const [path, isShown] of [
      ['/console', false], ['/console/approvals', true], ['/console/approvals/hs_20260218_live_0001', true],
      ['/console/act/approve?id=hs_20260218_live_0001', false], ['/console/handoffs/hs_20260218_live_0001', true],
    ]) assert.equal(await looked(rita.page, path), isShown, path);
    // What people write is no better.
    await rita.page.goto('/console/approvals/hs_20260218_live_0001');
    await rita.confirm('Approve…', 'Yes, approve', { Reason: PAYLOAD });
    assert.ok(await looked(rita.page, '/console/handoffs/hs_20260218_live_0001'));
    await gateway.api('POST', '/v1/freeze', { scope: 'all', reason: PAYLOAD }, gateway.tokens.rita);
    await gateway.api('POST', `/v1/routes/${KEY}/rollback`, { reason: PAYLOAD }, gateway.tokens.rita);
    for (const path of ['/console', '/console/freezes', `/console/routes/${KEY}`]) assert.ok(await looked(rita.page, path), path);
    await rita.leave();
    await gateway.stop();
  });

  it('is text where a mention is shown', async () => {
    const gateway = await Gateway.start();
    gateway.cli('key', 'add', '--owner', 'user:main', '--id', 'user-main-test');
    let n = 0;
    for (const field of ['channel', 'messageId', 'originBotId', 'targetBotId', 'observedAt', 'dedupeBy']) {
      await gateway.mention(`mention_${n += 1}`, `147339500000000000${n}`, { change: (spec) => { spec.authorship.mentionDelegation[field] += PAYLOAD; } });
    }
    for (const part of ['principal', 'delegateAgent']) {
      await gateway.mention(`mention_${n += 1}`, `147339500000000000${n}`, {
        afterwards: (spec) => { for (const name of Object.keys(spec.authorship.envelope[part])) spec.authorship.envelope[part][name] += PAYLOAD; },
      });
    }
    const rita = await (await Person.at(gateway)).logIn('rita');
    await looked(rita.page, '/console/mentions');
    let shown = 0;
    for (let m = 1; m <= n; m += 1) shown += Number(await looked(rita.page, `/console/handoffs/hs_20260218_mention_${m}`));
    assert.equal(shown, n, 'each is shown, as text');
    await rita.leave();
    await gateway.stop();
  });

  it('is text wherever it is shown', async () => {
    const gateway = await Gateway.start();
    const payload = PAYLOAD;
    const poisoned = (value) => {
      if (typeof value === 'string') return value + payload;
      if (Array.isArray(value)) return value.map(poisoned);
      if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poisoned(v)]));
      return value;
    };
    const clean = gateway.spec('clean_0001', (spec) => { spec.intent.summary = 'a summary'; spec.authorship = { mode: 'direct' }; });
    // Each field by itself, and all at once.
    const fields = [];
    const walk = (value, path) => {
      if (value && typeof value === 'object') for (const [name, inner] of Object.entries(value)) walk(inner, [...path, name]);
      else fields.push(path);
    };
    walk(clean, []);
    let n = 0;
    for (const path of fields) {
      const spec = gateway.spec(`nasty_${String(n += 1).padStart(4, '0')}`, (spec) => { spec.intent.summary = 'a summary'; spec.authorship = { mode: 'direct' }; });
      const holder = path.slice(0, -1).reduce((inner, name) => inner[name], spec);
      holder[path.at(-1)] = poisoned(String(holder[path.at(-1)]));
      await gateway.api('POST', '/v1/handoffs', spec);
    }
    const all = poisoned(clean);
    all.intent.input[payload] = { [payload]: payload };
    await gateway.api('POST', '/v1/handoffs', all);

    const rita = await (await Person.at(gateway)).logIn('rita');
    const { page } = rita;
    const seen = new Set();
    const look = async (path) => { if (await looked(page, path)) seen.add(path); };
    await look('/console/handoffs');
    const links = await page.locator('#list a[href^="/console/handoffs/"]').evaluateAll((all) => all.map((a) => a.getAttribute('href')));
    assert.ok(links.length >= fields.length - 2, `${links.length} handoffs`);
    for (const link of new Set(links)) await look(link);
    for (const path of ['/console', '/console/audit', '/console/approvals', `/console/codes?q=${encodeURIComponent(payload)}`]) await look(path);
    for (const entry of await gateway.entries('task.created')) await look(`/console/audit/${entry.sequence}`);
    assert.ok(seen.size > fields.length, `it was shown on ${seen.size} pages`);
    await rita.leave();
    await gateway.stop();
  });
});

describe('a route key', () => {
  it('with anything in it leads to its page', async () => {
    const gateway = await Gateway.start();
    const odd = 'odd route/"<b>&?#%.v1';
    gateway.editRoutes((route, routes) => { routes[odd] = { ...route }; });
    await gateway.api('POST', '/v1/reload');
    const rita = await (await Person.at(gateway)).logIn('rita');
    await rita.page.goto('/console/routes');
    if ((await gateway.api('GET', '/v1/routes')).body.routes.some(({ routeKey }) => routeKey === odd)) {
      await rita.page.getByRole('link', { name: odd }).click();
      assert.equal(await rita.page.locator('h1').innerText(), odd);
    }
    await rita.page.goto(`/console/routes/${KEY}`);
    assert.equal(await rita.page.locator('h1').innerText(), KEY);
    await rita.leave();
    await gateway.stop();
  });
});
