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
  let source = null, asking = false, again = false, timer = 0, heard = 0;

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
  const takeOver = (fresh) => {
    const known = new Set([...document.querySelectorAll('[data-key]')].map((row) => row.dataset.key));
    for (const part of document.querySelectorAll('[data-part]')) {
      const other = fresh.getElementById(part.id);
      if (!other || isBusy(part)) continue;
      keepOpen(part, other);
      const focused = part.contains(document.activeElement) && document.activeElement.getAttribute('href');
      if (part.innerHTML === other.innerHTML) continue;
      part.replaceChildren(...other.childNodes);
      for (const row of part.querySelectorAll('[data-key]')) {
        if (!known.has(row.dataset.key)) row.classList.add('fresh');
      }
      if (focused) [...part.querySelectorAll('a')].find((link) => link.getAttribute('href') === focused)?.focus();
    }
    tick();
  };
  const ask = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { 'X-Handoffd-Look': 'page' }, credentials: 'same-origin' });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    } catch {
      lose();
    } finally {
      asking = false;
      if (again) { again = false; later(); }
    }
  };
  const later = () => { if (!timer) timer = setTimeout(() => { timer = 0; ask(); }, 400); };
  // Whoever was not heard of for a while may have missed something.
  const hear = () => {
    heard = Date.now();
    if (body.dataset.connected) return;
    say('Live');
    body.dataset.connected = 'yes';
    later();
  };
  const lose = () => { say('Not connected'); delete body.dataset.connected; };
  const open = () => {
    heard = Date.now();
    source = new EventSource(body.dataset.live);
    source.addEventListener('open', hear);
    source.addEventListener('beat', hear);
    for (const news of ['entry', 'condition']) source.addEventListener(news, () => { hear(); later(); });
    source.addEventListener('over', () => { source.close(); location.reload(); });
    source.addEventListener('error', () => {
      lose();
      // Refused, not interrupted: the browser does not try again. Whether the session is over, the page itself is told.
      if (source?.readyState === EventSource.CLOSED) later();
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
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { source?.close(); source = null; lose(); say('Paused'); } else if (!source) { open(); }
  });
  addEventListener('pagehide', () => source?.close());
  if (!document.hidden) open();
})();
