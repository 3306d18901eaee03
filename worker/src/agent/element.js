// What the agent asks of one element, in the page. Each answers with plain data; `problem` is for the model.
({
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
  // Makes a field ready for typing. `where` are the addresses that what is typed would be sent to.
  ready(text) {
    const element = this, tag = element.tagName, kind = (element.type || '').toLowerCase();
    const isField = tag === 'TEXTAREA' || tag === 'INPUT' && !['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file'].includes(kind);
    if (!isField && !element.isContentEditable) return { problem: 'this is no field that takes text' };
    if (element.disabled || element.readOnly) return { problem: 'the field takes no text now' };
    const where = [element.ownerDocument.location.href], form = element.form;
    if (form) {
      where.push(form.getAttribute('action') === null ? location.href : new URL(form.getAttribute('action'), document.baseURI).href);
      for (const sender of form.querySelectorAll('[formaction]')) where.push(sender.formAction);
    }
    return { where, set: ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range', 'number'].includes(kind) };
  },
  focus() {
    this.scrollIntoView({ block: 'center', behavior: 'instant' });
    this.focus();
    if (this.select) this.select();
    else getSelection().selectAllChildren(this);
    return {};
  },
  set(text) {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(this, text);
    this.dispatchEvent(new Event('input', { bubbles: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    return {};
  },
  holds() { return { value: String(this.value ?? this.innerText ?? '').slice(0, 200) }; },
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
})
