// What the agent asks of one element, in the page. Each answers with plain data; `problem` is for the model.
//
// What is typed goes into the element itself, never to whatever has the focus, and in one go with the question where it
// would be sent: nothing on the page can come in between.
(() => {
  const tag = element => element?.tagName, kind = element => (element.type || '').toLowerCase();
  const isInput = element => tag(element) === 'INPUT' &&
    !['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'].includes(kind(element));
  const isField = element => tag(element) === 'TEXTAREA' || isInput(element);
  const takesText = element => isField(element) ? !element.disabled && !element.readOnly : !!element?.isContentEditable;
  const isSet = element => isInput(element) &&
    ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range', 'number'].includes(kind(element));
  // Fields of a form may have the names of its own properties.
  const fields = form => [...Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, 'elements').get.call(form)];
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);

  // The addresses that what is typed into an element would be sent to: its document, those around it, its form.
  const where = element => {
    const page = element.nodeType === 9 ? element : element.ownerDocument, form = element.form;
    const all = [page.location.href, ...page.location.ancestorOrigins];
    if (form) {
      const senders = [...fields(form), ...Element.prototype.querySelectorAll.call(form, '[formaction]')];
      const actions = [form, ...senders].map(e => attribute(e, e === form ? 'action' : 'formaction'));
      for (const action of actions) if (action !== null) all.push(action === '' ? page.location.href : new URL(action, page.baseURI).href);
    }
    return all;
  };
  const isAsJudged = (element, judged) => JSON.stringify(where(element)) === JSON.stringify(judged);
  const changed = { problem: 'the page has just changed where this would be sent; look again' };

  const write = (element, text) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set.call(element, text);
    element.dispatchEvent(new InputEvent('input', { bubbles: true, composed: true, inputType: 'insertText', data: text }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
  };
  // Down and press; whether the page leaves the rest to the browser.
  const strike = (element, key, code, number, modifiers) => {
    const event = type => new KeyboardEvent(type, {
      key, code, keyCode: number, which: number, bubbles: true, cancelable: true, composed: true,
      altKey: !!(modifiers & 1), ctrlKey: !!(modifiers & 2), metaKey: !!(modifiers & 4), shiftKey: !!(modifiers & 8),
    });
    const isPressed = !(modifiers & 7) && (key.length === 1 || key === 'Enter');
    const isFree = element.dispatchEvent(event('keydown')) && (!isPressed || element.dispatchEvent(event('keypress')));
    return { isFree, release: () => element.dispatchEvent(event('keyup')) };
  };
  // What the browser makes of Enter.
  const send = element => {
    const form = element.form;
    if (tag(element) === 'TEXTAREA') return element.ownerDocument.execCommand('insertText', false, '\n');
    if (element.isContentEditable) return element.ownerDocument.execCommand('insertParagraph');
    if (!isInput(element)) return ['A', 'BUTTON', 'INPUT', 'SUMMARY'].includes(tag(element)) && element.click();
    if (!form) return;
    const all = fields(form);
    const sender = all.find(e => tag(e) === 'BUTTON' ? kind(e) === 'submit' : tag(e) === 'INPUT' && ['submit', 'image'].includes(kind(e)));
    if (sender) { if (!sender.disabled) sender.click(); }
    else if (all.filter(isInput).length < 2) HTMLFormElement.prototype.requestSubmit.call(form);
  };
  // The element that has the focus; `null`: a frame of another origin has it, or one that cannot be looked into.
  const focused = page => {
    for (;;) {
      let element = page.activeElement || page.body || page.documentElement;
      while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
      if (!['IFRAME', 'FRAME', 'OBJECT', 'EMBED', 'FENCEDFRAME', 'PORTAL'].includes(tag(element))) return element;
      let inner = null;
      try { inner = element.contentDocument; } catch {}
      if (!inner) return null;
      page = inner;
    }
  };
  // What the browser makes of a key without a character.
  const move = (element, key, modifiers) => {
    const page = element.ownerDocument, view = page.defaultView, scroll = top => view.scrollBy({ top, behavior: 'instant' });
    if (key === 'Backspace' || key === 'Delete') {
      if (takesText(element)) page.execCommand(key === 'Delete' ? 'forwardDelete' : 'delete');
    } else if (key === 'Tab') {
      const all = [...page.querySelectorAll('a[href],button,input,select,textarea,summary,[tabindex],[contenteditable]')]
        .filter(e => !e.disabled && e.tabIndex >= 0 && e.getClientRects().length);
      if (modifiers & 8) all.reverse();
      (all[all.indexOf(element) + 1] || all[0])?.focus();
    } else if (takesText(element) || modifiers & 7) {
      return;
    } else if (key === 'PageDown' || key === 'PageUp') {
      scroll(view.innerHeight * (key === 'PageDown' ? 0.9 : -0.9));
    } else if (key === 'Home' || key === 'End') {
      scroll(page.documentElement.scrollHeight * (key === 'End' ? 1 : -1));
    } else if (key === 'ArrowDown' || key === 'ArrowUp') {
      scroll(key === 'ArrowDown' ? 40 : -40);
    }
  };
  const EDITS = { a: 'selectAll', c: 'copy', x: 'cut', z: 'undo', y: 'redo' };

  return {
    // Where to click, in the coordinates of the window.
    point() {
      const element = this.nodeType === 1 ? this : this.parentElement;
      if (!element || !element.isConnected) return { problem: 'the element is not on the page any more' };
      if (element.matches('option')) return { problem: 'an option is chosen with `select` and the reference of its list' };
      if (element.matches(':disabled')) return { problem: 'the element is disabled' };
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      const box = [...element.getClientRects()].find(r => r.width > 0 && r.height > 0);
      // Hidden behind something drawn in its place, such as a styled checkbox.
      if (!box) return { hidden: true };
      let x = box.x + box.width / 2, y = box.y + box.height / 2;
      const hit = element.getRootNode().elementFromPoint?.(x, y);
      const label = hit?.closest?.('label');
      const isIts = !hit || hit === element || element.contains(hit) || hit.contains(element) || label?.control === element ||
        hit.shadowRoot?.contains(element);
      if (!isIts) {
        const text = (hit.innerText || '').trim().replace(/\s+/g, ' ').slice(0, 80);
        return { problem: `something covers it: ${hit.tagName.toLowerCase()}${hit.id ? '#' + hit.id : ''} "${text}"` };
      }
      try {
        for (let w = element.ownerDocument.defaultView; w !== w.top; w = w.parent) {
          const frame = w.frameElement, place = frame.getBoundingClientRect();
          x += place.x + frame.clientLeft; y += place.y + frame.clientTop;
        }
      } catch { return { hidden: true }; }
      return { x, y };
    },
    click() { this.click(); return {}; },
    // Whether it is a field, and where what is typed into it would be sent.
    ready() {
      if (!isField(this) && !this.isContentEditable) return { problem: 'this is no field that takes text' };
      if (!takesText(this)) return { problem: 'the field takes no text now' };
      return { where: where(this) };
    },
    // Replaces what a field holds.
    insert(text, judged) {
      if (!isAsJudged(this, judged)) return changed;
      this.scrollIntoView({ block: 'center', behavior: 'instant' });
      const page = this.ownerDocument;
      if (isSet(this)) {
        write(this, text);
      } else {
        this.focus();
        if (isField(this)) this.select(); else page.getSelection().selectAllChildren(this);
        const has = this.getRootNode().activeElement, isHere = isField(this) ? has === this : !!has?.contains(this);
        const isDone = isHere && (text === '' ? page.execCommand('delete') : page.execCommand('insertText', false, text));
        // A page that gives the focus on at once, or a field that is not drawn.
        if (!isDone && isField(this) && this.value !== text) write(this, text);
        else if (!isDone && !isField(this) && text !== '') return { problem: 'the field does not keep the focus; click it first' };
      }
      return { value: String(this.value ?? this.innerText ?? '').slice(0, 200) };
    },
    // Enter, in a field.
    enter(judged) {
      if (!isAsJudged(this, judged)) return changed;
      const { isFree, release } = strike(this, 'Enter', 'Enter', 13, 0);
      // The page may have changed its form by now.
      if (isFree && isAsJudged(this, judged)) send(this);
      release();
      return {};
    },
    // Of the page: who would get a key now.
    receiver() {
      const element = focused(this);
      return element ? { where: where(element) } : { problem: 'FOREIGN' };
    },
    // Of the page: one key for the element that has the focus.
    press(key, code, number, modifiers, judged) {
      const element = focused(this), page = element?.ownerDocument;
      if (!element || !isAsJudged(element, judged)) return changed;
      const { isFree, release } = strike(element, key, code, number, modifiers);
      if (isFree && focused(this) === element && isAsJudged(element, judged)) {
        const edit = modifiers & 6 && !(modifiers & 1) && EDITS[key.toLowerCase()];
        if (edit) page.execCommand(edit);
        else if (key.length === 1 && modifiers & 7) {}
        else if (key === 'Enter') send(element);
        else if (key.length > 1) move(element, key, modifiers);
        else if (takesText(element)) page.execCommand('insertText', false, key);
        else if (key === ' ' && ['BUTTON', 'INPUT', 'SUMMARY'].includes(tag(element))) element.click();
        else if (key === ' ') page.defaultView.scrollBy({ top: page.defaultView.innerHeight * 0.9, behavior: 'instant' });
      }
      release();
      return {};
    },
    choose(wanted) {
      const list = this.matches('option') ? this.closest('select') : this;
      if (list?.tagName !== 'SELECT') return { problem: 'this is no list of options; click it and then what it offers' };
      if (list.disabled) return { problem: 'the list is disabled' };
      const plain = text => text.trim().replace(/\s+/g, ' ').toLowerCase();
      const options = [...list.options], like = plain(wanted);
      const option = options.find(o => plain(o.label) === like) || options.find(o => o.value === wanted) ||
        options.find(o => plain(o.label).includes(like));
      if (!option || option.disabled) {
        return { problem: `there is no such option; there are: ${options.slice(0, 40).map(o => o.label.trim()).join(' | ')}`.slice(0, 1500) };
      }
      if (list.multiple) option.selected = true; else list.value = option.value, list.selectedIndex = option.index;
      list.dispatchEvent(new Event('input', { bubbles: true }));
      list.dispatchEvent(new Event('change', { bubbles: true }));
      return { value: option.label.trim().slice(0, 200) };
    },
    scroll(step) {
      this.scrollBy({ top: step * this.clientHeight * 0.8, behavior: 'instant' });
      return { at: Math.round(100 * (this.scrollTop + this.clientHeight) / Math.max(1, this.scrollHeight)) };
    },
    text() { return { value: (this.innerText ?? this.textContent ?? '').slice(0, 12000) }; },
  };
})()
