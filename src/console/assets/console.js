// Keeps pages up to date and counts down. Every page works without it.
'use strict';
(() => {
  const body = document.body;

  // Times: the server wrote them as of when the page was made.
  const skew = Date.parse(body.dataset.now || '') - Date.now() || 0;
  const relative = (at) => {
    const seconds = Math.round((Date.now() + skew - at) / 1000);
    const amount = Math.abs(seconds);
    if (amount < 5) return 'just now';
    const words = amount < 90 ? `${amount} s`
      : amount < 5400 ? `${Math.round(amount / 60)} min`
      : amount < 129600 ? `${Math.round(amount / 3600)} h`
      : `${Math.round(amount / 86400)} days`;
    return seconds < 0 ? `in ${words}` : `${words} ago`;
  };
  const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  const tick = () => {
    for (const time of document.querySelectorAll('time[datetime]')) {
      const at = Date.parse(time.dateTime);
      if (Number.isNaN(at)) continue;
      const left = Math.ceil((at - Date.now() - skew) / 1000);
      const text = time.closest('.countdown')
        ? (left > 0 ? `in ${clock(left)}` : 'over')
        : relative(at);
      if (time.textContent !== text) time.textContent = text;
    }
  };
  tick();
  setInterval(tick, 1000);

  // Where the sections do not fit side by side, the one that is shown is in sight.
  const sections = document.getElementById('sections');
  const here = sections?.querySelector('[aria-current]');
  if (here) {
    const fade = () => sections.classList.toggle('moved', sections.scrollLeft > 0);
    sections.addEventListener('scroll', fade, { passive: true });
    sections.scrollLeft = here.offsetLeft - (sections.clientWidth - here.offsetWidth) / 2;
    fade();
  }

  // Where there is little room, a form of filters that nobody has used is folded.
  if (matchMedia('(max-width: 46rem)').matches) {
    for (const fold of document.querySelectorAll('details[data-fold]')) fold.open = false;
  }

  // Live: an entry in the ledger, or another condition, makes the page ask for itself again, and take over the parts that say so.
  const state = document.getElementById('live');
  if (!body.dataset.live || !window.EventSource) return;
  const say = (text) => { if (state) state.textContent = text; };
  let source = null, asking = false, again = false, timer = 0, heard = 0, failed = 0, retry = 0;

  // What somebody types into, or has marked to copy, is left alone; what they opened stays open.
  const isBusy = (part) => {
    const marked = getSelection();
    return (marked && !marked.isCollapsed && part.contains(marked.anchorNode))
      || (part.contains(document.activeElement) && document.activeElement.matches('input, select, textarea'));
  };
  const nameOf = (fold) => `${fold.closest('[data-key]')?.dataset.key ?? ''} ${fold.querySelector('summary')?.textContent}`;
  const keepOpen = (part, other) => {
    const open = new Set([...part.querySelectorAll('details[open]')].map(nameOf));
    for (const fold of other.querySelectorAll('details')) fold.open = open.has(nameOf(fold));
  };
  // Whoever goes through a page with the keyboard stays where they are: at the same link, fold or button.
  const FOCUSABLE = 'a[href], summary, button';
  const called = (element) => element.matches('a') ? `a ${element.getAttribute('href')}`
    : element.matches('summary') ? `summary ${nameOf(element.parentElement)}` : `button ${element.textContent}`;
  const takeOver = (fresh) => {
    const known = new Set([...document.querySelectorAll('[data-key]')].map((row) => row.dataset.key));
    for (const part of document.querySelectorAll('[data-part]')) {
      const other = fresh.getElementById(part.id);
      if (!other || isBusy(part)) continue;
      keepOpen(part, other);
      if (part.innerHTML === other.innerHTML) continue;
      const here = document.activeElement;
      const focused = part.contains(here) && here.matches(FOCUSABLE) && called(here);
      part.replaceChildren(...other.childNodes);
      for (const row of part.querySelectorAll('[data-key]')) {
        if (!known.has(row.dataset.key)) row.classList.add('fresh');
      }
      if (focused) [...part.querySelectorAll(FOCUSABLE)].find((element) => called(element) === focused)?.focus({ preventScroll: true });
    }
    tick();
  };
  const lose = () => { say('Not connected'); delete body.dataset.connected; };
  // Live is a page that has what there is and hears of what comes.
  const settle = () => {
    if (source?.readyState !== EventSource.OPEN) return;
    failed = 0;
    if (body.dataset.connected) return;
    say('Live');
    body.dataset.connected = 'yes';
  };
  const ask = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await fetch(location.href, {
        headers: { 'X-Handoffd-Look': 'page' }, credentials: 'same-origin', signal: AbortSignal.timeout(30_000),
      });
      // The session is over: the page itself leads to the login.
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(answer.statusText);
      takeOver(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      settle();
    } catch {
      tryAgain();
    } finally {
      asking = false;
      if (again) { again = false; later(); }
    }
  };
  const later = () => { if (!timer) timer = setTimeout(() => { timer = 0; ask(); }, 400); };
  // Whatever was refused is asked for again: after 2 seconds, then 4, and in the end every 30.
  const tryAgain = () => {
    if (!source) return;
    lose();
    if (retry) return;
    failed += 1;
    retry = setTimeout(() => {
      retry = 0;
      if (source?.readyState === EventSource.CLOSED) open();
      else ask();
    }, Math.min(2 ** failed, 30) * 1000);
  };
  // Whoever was not heard of for a while may have missed something.
  const hear = () => {
    heard = Date.now();
    if (!body.dataset.connected && !retry) later();
  };
  const open = () => {
    heard = Date.now();
    const opened = source = new EventSource(body.dataset.live);
    source.addEventListener('open', hear);
    source.addEventListener('beat', hear);
    for (const news of ['entry', 'condition']) source.addEventListener(news, () => { hear(); later(); });
    source.addEventListener('over', () => { opened.close(); location.reload(); });
    source.addEventListener('error', () => {
      if (opened !== source) return;
      lose();
      // Interrupted, the browser tries again by itself; refused, it does not. Whether the session is over, the page itself
      // is told.
      if (opened.readyState === EventSource.CLOSED) { later(); tryAgain(); }
    });
  };
  // A connection can be open and dead: beats come every so often, and when several are missing it is made anew.
  const silence = 4000 * Number(body.dataset.beat);
  setInterval(() => {
    if (!source || source.readyState === EventSource.CLOSED || Date.now() - heard <= silence) return;
    lose();
    source.close();
    open();
  }, 1000);
  // A page that nobody looks at asks for nothing.
  const leave = () => {
    source?.close();
    source = null;
    clearTimeout(retry);
    retry = failed = 0;
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { leave(); lose(); say('Paused'); } else if (!source) { open(); }
  });
  addEventListener('pagehide', leave);
  addEventListener('pageshow', () => { if (!source && !document.hidden) open(); });
  if (!document.hidden) open();
})();
