// What actions ask of a page, in the page. Each answer is plain data.
({
  // Every element that matches, in document order; those in open shadow trees when there are no others.
  find(selector) {
    const found = [...document.querySelectorAll(selector)];
    if (found.length) return found;
    const walk = root => {
      for (const element of root.querySelectorAll('*')) {
        if (!element.shadowRoot) continue;
        found.push(...element.shadowRoot.querySelectorAll(selector));
        walk(element.shadowRoot);
      }
    };
    walk(document);
    return found;
  },
  // Where to click element `i` of what was found. One that cannot be hit (not drawn, covered) is clicked by script.
  aim(i) {
    const element = this[i];
    if (!element || !element.isConnected) return { gone: true };
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const box = [...element.getClientRects()].find(r => r.width > 0 && r.height > 0);
    if (box) {
      const x = box.x + box.width / 2, y = box.y + box.height / 2;
      const hit = element.getRootNode().elementFromPoint(x, y);
      const isIts = hit && (hit === element || element.contains(hit) || hit.contains(element) ||
        hit.closest('label')?.control === element || hit.shadowRoot?.contains(element));
      if (isIts) return { x, y };
    }
    // A click of a person moves the focus, too, and keys go where that is. The nearest that takes it; none: where it was.
    for (let e = element.closest('label')?.control || element; e; e = e.parentElement || e.getRootNode().host) {
      if (e.focus) e.focus({ preventScroll: true });
      if (e.getRootNode().activeElement === e) break;
    }
    if (element.click) element.click(); else element.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
    return {};
  },
  // By the height of what is seen; an element that does not scroll is brought into view.
  scroll(step, i) {
    const room = e => e.scrollHeight - e.clientHeight > 1 && /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
    if (i === undefined) {
      const page = document.scrollingElement || document.documentElement;
      let target = page;
      // The page itself does not scroll: what fills the window may.
      if (page.scrollHeight - innerHeight <= 1) {
        for (let e = document.elementFromPoint(innerWidth / 2, innerHeight / 2); e; e = e.parentElement) {
          if (room(e)) { target = e; break; }
        }
      }
      target.scrollBy({ top: step * (target === page ? innerHeight : target.clientHeight), behavior: 'instant' });
      return {};
    }
    const element = this[i];
    if (!element || !element.isConnected) return { gone: true };
    if (room(element)) element.scrollBy({ top: step * element.clientHeight, behavior: 'instant' });
    else element.scrollIntoView({ block: 'center', behavior: 'instant' });
    return {};
  },
  // Runs a script. Its value is that of its last expression, or what it returns: with `return` or `await` at its top it
  // is the body of a function. What did not compile has not run, so it may be compiled in the other way.
  async run(script, limit, mark) {
    try {
      let value;
      try {
        value = (0, eval)(`if(window.${mark}=1);${script}`);
      } catch (error) {
        if (!(error instanceof SyntaxError) || window[mark]) throw error;
        value = new (async () => {}).constructor(script)();
      } finally {
        delete window[mark];
      }
      value = await value;
      const type = typeof value;
      let json;
      try { json = JSON.stringify(value); } catch { /* cycles, big integers */ }
      if (typeof json !== 'string' && value !== undefined) json = JSON.stringify(String(value));
      if (typeof json === 'string' && json.length > limit) return { problem: `its value is larger than ${limit} characters` };
      return { type, json };
    } catch (error) {
      return { problem: `it failed: ${String(error && error.message || error)}`.slice(0, 500) };
    }
  },
})
