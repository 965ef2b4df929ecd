// Pictures of every page at both widths, light and dark: node shots.mjs DIRECTORY [PAGE…]
//
// The gateway has lived through an hour before, so that there is a history to see.

import { mkdirSync } from 'node:fs';
import { Clock, Gateway, Person, closeBrowser, launch } from './support.mjs';
import { TROUBLED, WAITING, WAITING_SETTINGS, pages, populate, propose, trouble } from './scene.mjs';

const [directory = 'shots', ...only] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const wanted = (name) => !only.length || only.includes(name);

const clock = new Clock();
clock.set(-58 * 60);
const gateway = await Gateway.start('', clock.environment);

async function anHour() {
  let n = 0;
  for (let minute = -58; minute < 0; minute += 1) {
    clock.set(minute * 60);
    const allowed = 3 + Math.round(4 * Math.abs(Math.sin(minute / 7))) + (minute % 3 === 0 ? 2 : 0);
    const refused = minute > -24 && minute < -15 ? 4 + (minute % 4) : minute % 6 === 0 ? 1 : 0;
    for (let i = 0; i < allowed; i += 1) await gateway.submit(`cycle_${n += 1}`);
    for (let i = 0; i < refused; i += 1) {
      await gateway.submit(`stray_${n += 1}`, (spec) => {
        if (n % 3 === 0) spec.safety.e2eActor = 'myself';
        else if (n % 5 === 0) spec.intent.input = { chain: 'bitcoin' };
        else spec.routing.routeKey = 'nowhere.execution-plane.v1';
      });
    }
  }
}

async function picture(gateway, list, width, colorScheme) {
  const person = await Person.at(gateway, { viewport: { width, height: width === 390 ? 844 : 800 }, colorScheme });
  await person.page.goto('/console/login');
  const take = (name) => person.page.screenshot({ path: `${directory}/${name}-${width}-${colorScheme}.png`, fullPage: true });
  if (wanted('login')) await take('login');
  await person.logIn('rita');
  for (const [name, path] of list) {
    if (!wanted(name)) continue;
    await person.page.goto(path);
    await take(name);
  }
  await person.leave();
}

async function pictures(gateway, list) {
  for (const width of [1280, 390]) for (const colorScheme of ['light', 'dark']) await picture(gateway, list, width, colorScheme);
}

const waiting = await Gateway.start(WAITING_SETTINGS);
try {
  await anHour();
  clock.set(0);
  await populate(gateway);
  await launch();
  for (const list of [pages(), TROUBLED]) {
    if (list === TROUBLED) await trouble(gateway);
    await pictures(gateway, list);
  }
  await propose(waiting);
  await pictures(waiting, WAITING);
} finally {
  await closeBrowser();
  await gateway.stop();
  await waiting.stop();
  clock.gone();
}
