// Runs before any script of a page, in the page's own world. It watches what the page is still waiting for
// (timers, requests, changes of the document), and offers one hidden function that resolves with the
// document once the page has come to rest. It changes nothing that a page can see, except that the
// watched functions are proxies. KEY is a random name; the engine replaces it.
(() => {
  // A page waits for the pictures of its view transitions, which nobody takes here: 4 s, in which nothing moves. To skip one
  // does all of it but the movement.
  const skip = transition => { transition.ready.catch(() => {}); transition.skipTransition(); return transition; };
  addEventListener('pageswap', event => { if (event.viewTransition) skip(event.viewTransition); }, true);
  if (window !== window.top || Object.prototype.hasOwnProperty.call(window, 'KEY')) return;
  // What is used later, before the page takes it away.
  const { Promise, matchMedia } = window, { then } = Promise.prototype, { apply, defineProperty } = Reflect;
  const clock = performance.now.bind(performance), entriesOf = performance.getEntriesByType.bind(performance);
  const nativeSet = window.setTimeout, nativeClear = window.clearTimeout, hasOwn = Object.hasOwn;
  const { stop } = window, { open, close } = Document.prototype, clear = window.Storage && Storage.prototype.clear;
  const sleep = ms => new Promise(done => apply(nativeSet, window, [done, ms]));
  const wrap = (owner, name, run, trap = 'apply') => {
    const native = owner && owner[name];
    if (typeof native !== 'function') return;
    const slot = Object.getOwnPropertyDescriptor(owner, name);
    const value = new Proxy(native, { [trap]: run });
    if (slot && hasOwn(slot, 'value')) Object.defineProperty(owner, name, { ...slot, value });
  };
  // The document's own: an element that the page names like one of them takes its place otherwise.
  const own = name => {
    const { get, value } = Object.getOwnPropertyDescriptor(Document.prototype, name);
    return (...args) => apply(get || value, document, args);
  };
  const readyState = own('readyState'), rootOf = own('documentElement'), bodyOf = own('body'), typeOf = own('doctype');
  const timing = window.PerformanceResourceTiming && Object.getOwnPropertyDescriptor(PerformanceResourceTiming.prototype, 'responseStatus');
  const contentType = own('contentType'), query = own('querySelector'), queryAll = own('querySelectorAll');

  wrap(Document.prototype, 'startViewTransition', (native, self, args) => skip(apply(native, self, args)));

  // What happened last, and whether anything asynchronous ever did.
  let lastActivity = 0, lastChange = 0, isAsync = false, leavingAt = -1e9;
  // Whether text may still come by a way that is not counted: a long timer, a socket, a worker.
  let mayGrow = false;
  // Whether something was started that goes on beside the document, or longer than it.
  let hasHelpers = false;
  let wake = null;
  const touch = () => { lastActivity = clock(); if (wake) wake(); };
  // Until something that was waited for has come, at most 100 ms.
  const news = () => new Promise(done => { wake = done; apply(nativeSet, window, [done, 100]); });

  // Short timers, three deep: a page that polls by re-arming a timer is not waited for.
  const timers = new Map();
  let depth = 0;
  wrap(window, 'setTimeout', (native, self, args) => {
    const [callback, delay] = args, ms = +delay || 0;
    if (ms > 1100 && ms < 4000) mayGrow = true;
    if (typeof callback !== 'function' || ms > 1100 || depth >= 3) return apply(native, self, args);
    const level = depth + 1;
    let id;
    const fire = function (...given) {
      timers.delete(id);
      isAsync = true;
      const before = depth;
      depth = level;
      try { return apply(callback, this, given); } finally { depth = before; touch(); }
    };
    id = apply(native, self, [fire, ...args.slice(1)]);
    timers.set(id, clock() + ms);
    return id;
  });
  const forget = (native, self, args) => { timers.delete(args[0]); return apply(native, self, args); };
  wrap(window, 'clearTimeout', forget);
  wrap(window, 'clearInterval', forget);

  // Requests: from the call until the body is read, because that is when the page goes on.
  const requests = new Map();
  let nextRequest = 0;
  const begin = () => { isAsync = true; requests.set(++nextRequest, clock()); return nextRequest; };
  const end = id => { if (requests.delete(id)) touch(); };
  const follow = (native, self, args) => {
    const id = begin();
    try {
      const answer = apply(native, self, args);
      answer.then(() => end(id), () => end(id));
      return answer;
    } catch (error) { end(id); throw error; }
  };
  wrap(window, 'fetch', (native, self, args) => {
    for (const part of args) if (part !== null && typeof part === 'object' && part.keepalive) hasHelpers = true;
    return follow(native, self, args);
  });
  wrap(window.Navigator && Navigator.prototype, 'sendBeacon', (native, self, args) => { hasHelpers = true; return apply(native, self, args); });
  for (const reader of ['json', 'text', 'arrayBuffer', 'blob', 'bytes', 'formData']) wrap(window.Response && Response.prototype, reader, follow);
  wrap(window.XMLHttpRequest && XMLHttpRequest.prototype, 'send', (native, self, args) => {
    const id = begin();
    self.addEventListener('loadend', () => end(id), { once: true });
    try { return apply(native, self, args); } catch (error) { end(id); throw error; }
  });

  for (const name of ['WebSocket', 'EventSource', 'Worker', 'SharedWorker']) {
    wrap(window, name, (native, args, target) => { mayGrow = hasHelpers = true; return Reflect.construct(native, args, target); }, 'construct');
  }

  // Elements that wait to be scrolled to.
  const observed = [];
  wrap(window.IntersectionObserver && IntersectionObserver.prototype, 'observe', (native, self, args) => {
    if (observed.length < 300 && args[0]) observed.push(args[0]);
    return apply(native, self, args);
  });

  // Leaving for another document.
  if (window.navigation) {
    navigation.addEventListener('navigate', event => {
      if (!event.destination.sameDocument && event.downloadRequest === null && !event.hashChange) leavingAt = clock();
    });
  }
  // A form that is sent leads away in a task of its own, which says so above.
  let sentAt = -1e9;
  const send = () => { sentAt = lastActivity = clock(); };
  wrap(window.HTMLFormElement && HTMLFormElement.prototype, 'submit', (native, self, args) => { send(); return apply(native, self, args); });
  addEventListener('submit', event => {
    send();
    // The page's listeners have been called by then.
    apply(nativeSet, window, [() => { if (event.defaultPrevented) sentAt = -1e9; }, 0]);
  }, true);
  // The browser loads nothing for this frame any more: what the page was leaving for gave no document (an app's link, a
  // download), or the document was cut off. `isLast`: it is read as it is then.
  let cutAt = Infinity;
  const stopped = isLast => {
    leavingAt = sentAt = -1e9;
    if (isLast && readyState() === 'loading') cutAt = clock();
    touch();
    return readyState();
  };
  // A page cannot close the tab of its reader.
  wrap(window, 'close', () => {});

  let parsedAt = 0;
  document.addEventListener('DOMContentLoaded', () => {
    parsedAt = clock();
    new MutationObserver(records => {
      lastActivity = lastChange = clock();
      for (const { addedNodes } of records) {
        for (const node of addedNodes) {
          const isLoad = node.nodeName === 'SCRIPT' ? node.src && node.type !== 'text/plain' : node.nodeName === 'LINK' && node.rel === 'stylesheet';
          if (!isLoad) continue;
          const id = begin(), done = () => end(id);
          node.addEventListener('load', done, { once: true });
          node.addEventListener('error', done, { once: true });
        }
      }
    }).observe(document, { childList: true, subtree: true, characterData: true });
  }, { once: true });

  const skipped = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'NAV', 'HEADER', 'FOOTER']);
  const visibleText = limit => {
    let text = '';
    const walk = node => {
      for (let child = node.firstChild; child && text.length < limit; child = child.nextSibling) {
        if (child.nodeType === 3) { const words = child.data.trim(); if (words) text += words + ' '; }
        else if (child.nodeType === 1 && !skipped.has(child.nodeName)) { walk(child); if (child.shadowRoot) walk(child.shadowRoot); }
      }
    };
    if (bodyOf()) walk(bodyOf());
    return text.replace(/\s+/g, ' ').trim();
  };
  // Whether the page shows something, or could not show more because it has no scripts.
  const hasContent = () => {
    if (!query('script')) return true;
    const text = visibleText(600);
    if (text.length >= 600) return true;
    // Only scripts in the page, which have all run, and nothing that could bring more.
    if (text.length > 0 && !isAsync && !mayGrow && !observed.length && !query('script[src],script[type=module]')) return true;
    return text.length >= 300 || text.length >= 80 && !/(^|\s)(loading|please wait|chargement|cargando|wird geladen)\b|…$|\.\.\.$/i.test(text);
  };
  const isBusy = now => {
    if (now - leavingAt < 5000 || now - sentAt < 300) return true;
    for (const due of timers.values()) if (now < due + 150) return true;
    for (const since of requests.values()) {
      // A request that stays open is a subscription, unless the page is still empty.
      if (now - since < 2000 || (now - since < 8000 && (now - lastChange < 300 || !hasContent()))) return true;
    }
    const refresh = query('meta[http-equiv="refresh" i]');
    if (refresh && /^\s*[012](\D|$)/.test(refresh.content) && /url/i.test(refresh.content)) return now - parsedAt < 3000;
    return false;
  };
  const rest = async (until, mayScroll) => {
    const began = clock();
    for (;;) {
      const now = clock(), since = now - began;
      if (now > until) return;
      const busy = isBusy(now);
      if (!busy && now - lastActivity >= (isAsync ? 40 : 12) && (since > 1500 || hasContent() || mayScroll && hasLazyParts())) return;
      // A page that never stops changing has had its time once it shows something.
      if (since > 3000 && leavingAt < 0 && requests.size === 0 && hasContent()) return;
      await (busy ? news() : sleep(since > 100 ? 20 : 6));
    }
  };
  // Whether something below the window waits to be scrolled to: empty boxes, not images.
  const hasLazyParts = () => observed.some(element => {
    if (!element.isConnected || element.nodeName === 'IMG' || element.getBoundingClientRect().top < innerHeight) return false;
    return element.textContent.trim().length < 30 && !element.querySelector('img,video,svg,canvas,iframe');
  });
  const scrollThrough = async () => {
    for (let step = 1; step <= 20 && step * innerHeight < rootOf().scrollHeight; step++) {
      scrollTo({ top: step * innerHeight, behavior: 'instant' });
      await Promise.race([new Promise(requestAnimationFrame), sleep(60)]);
      await sleep(4);
    }
    scrollTo({ top: 0, behavior: 'instant' });
  };

  // Open shadow roots become plain content: what a reader sees, in the order of the flattened tree.
  const flatten = () => {
    const inert = document.implementation.createHTMLDocument('');
    const copy = (node, inShadow) => {
      if (node.nodeName === 'TEMPLATE') return inert.importNode(node, true);
      const made = inert.importNode(node, false);
      const isSlot = inShadow && node.nodeName === 'SLOT';
      const assigned = isSlot ? node.assignedNodes({ flatten: true }) : [];
      const children = node.shadowRoot ? node.shadowRoot.childNodes : assigned.length ? assigned : node.childNodes;
      for (const child of children) made.append(copy(child, node.shadowRoot ? true : assigned.length ? false : inShadow));
      return made;
    };
    return copy(rootOf(), false);
  };
  const serialize = () => {
    let root = rootOf();
    if (!root) return '';
    for (const element of queryAll('*')) if (element.shadowRoot) { root = flatten(); break; }
    const type = typeOf();
    return (type ? `<!DOCTYPE ${type.name}>` : '') + root.outerHTML;
  };

  // Ends what this document does, before another page of its site takes its place in the tab. Its origin; null where something
  // of it may go on. Listeners go with the document that is opened, those for its end too.
  let hasQuit = false;
  const quit = () => {
    hasQuit = true;
    try {
      apply(stop, window, []);
      const last = apply(nativeSet, window, [() => {}, 0]);
      if (hasHelpers || last > 20000) return null;
      for (let id = last; id > 0; id--) apply(nativeClear, window, [id]);
      apply(open, document, []);
      apply(close, document, []);
      window.name = '';
      apply(clear, window.localStorage, []);
      apply(clear, window.sessionStorage, []);
      return location.origin;
    } catch { return null; }
  };

  // A promise asks whatever it resolves with for its `then`. What has none of its own would be asked by way of its prototype,
  // where a page could put one that tells something else.
  const answer = limit => {
    const html = limit ? serialize() : null;
    const entry = entriesOf('navigation')[0];
    const root = rootOf(), body = bodyOf();
    return {
      __proto__: null,
      then: undefined,
      url: location.href,
      status: entry && timing && apply(timing.get, entry, []) || 0,
      contentType: contentType(),
      html: html && html.length > limit ? null : html,
      leaving: clock() - leavingAt < 5000,
      blank: visibleText(1) === '',
      width: root ? root.scrollWidth : 0,
      height: root ? Math.max(root.scrollHeight, body ? body.scrollHeight : 0) : 0,
    };
  };
  const ready = async ({ budget, extra, limit, scroll }) => {
    // The next document has not been swapped in yet.
    if (hasQuit) return { __proto__: null, then: undefined, url: 'about:blank', status: 0, contentType: '', html: null, width: 0, height: 0 };
    // In a sandbox without scripts (a header of the site) neither timers nor listeners are called, so nothing can be waited
    // for here. Nothing changes after the document either.
    if (!apply(matchMedia, window, ['(scripting: enabled)']).matches) {
      const early = readyState() !== 'complete' && budget > 0;
      const told = answer(early ? 0 : limit);
      told.early = early;
      return told;
    }
    const until = clock() + budget;
    const loaded = new Promise(done => addEventListener('load', done, { once: true }));
    while (readyState() !== 'complete') {
      await Promise.race([loaded, sleep(100)]);
      // Something below never loads (a picture, a beacon): the page itself is there.
      const now = clock();
      if (readyState() === 'interactive' && parsedAt && now - parsedAt > 3000 && now - lastActivity > 300 && hasContent()) break;
      // The parser has had time for what has come.
      if (now - cutAt > 300) break;
      // A document that is still to come has not been answered until it says something.
      if (now > until && (readyState() !== 'loading' || visibleText(1))) break;
    }
    await sleep(0);
    await rest(Math.min(until, clock() + 8000), true);
    if (scroll && observed.length && clock() < until - 1000 && hasLazyParts()) {
      await scrollThrough();
      await rest(Math.min(until, clock() + 3000), false);
    }
    if (extra > 0) await sleep(extra);
    return answer(limit);
  };
  const tell = options => {
    const told = ready(options);
    defineProperty(told, 'then', { __proto__: null, value: then });
    defineProperty(told, 'constructor', { __proto__: null, value: Promise });
    return told;
  };
  Object.defineProperty(window, 'KEY', { value: Object.freeze(Object.assign(tell, { quit, stopped })) });
})();
