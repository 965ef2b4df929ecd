// Pictures of every page at both widths, light and dark: node shots.mjs DIRECTORY

import { mkdirSync } from 'node:fs';
import { Gateway, KEY, Person, closeBrowser, launch } from './support.mjs';
import { pages, populate } from './scene.mjs';

const directory = process.argv[2] ?? 'shots';
const only = process.argv[3];
mkdirSync(directory, { recursive: true });
const gateway = await Gateway.start();
try {
  await populate(gateway);
  await launch();
  for (const width of [1280, 390]) {
    for (const colorScheme of ['light', 'dark']) {
      const person = await Person.at(gateway, { viewport: { width, height: width === 390 ? 844 : 800 }, colorScheme });
      await person.page.goto('/console/login');
      if (!only) await person.page.screenshot({ path: `${directory}/login-${width}-${colorScheme}.png` });
      await person.logIn('rita');
      for (const [name, path] of pages(KEY)) {
        if (only && name !== only) continue;
        await person.page.goto(path);
        await person.page.screenshot({ path: `${directory}/${name}-${width}-${colorScheme}.png`, fullPage: true });
      }
      await person.leave();
    }
  }
} finally {
  await closeBrowser();
  await gateway.stop();
}
