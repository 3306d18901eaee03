// The page of a live view: shows the pictures that come over one WebSocket and, with control, sends input back.
// The capability stands in the address behind the '#'; it is sent as the first message and kept nowhere else.
'use strict';

const $ = (id) => document.getElementById(id);
const picture = $('picture'), stage = $('stage'), keys = $('keys'), address = $('address'), ask = $('ask');
const paint = picture.getContext('2d', { alpha: false, desynchronized: true });
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

// Close codes of the service.
const ENDED = 4000, FULL = 4002, REFUSED = 4003, OFF = 4005;
const MOST_UPLOAD = 10 * 1024 * 1024;

let socket = null, hasControl = false, state = null, tries = 0, retryTimer = 0, isOver = false;
// Size of the page in the picture, CSS pixels.
let page = { width: 1280, height: 720 };

// --- Connection ------------------------------------------------------------------------------------

function connect() {
  clearTimeout(retryTimer);
  const url = new URL(location.pathname.replace(/\/$/, '') + '/socket', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  url.hash = '';
  const own = new WebSocket(url);
  own.binaryType = 'arraybuffer';
  socket = own;
  own.onopen = () => own.send(location.hash.slice(1));
  own.onmessage = ({ data }) => {
    if (socket !== own) return;
    if (typeof data === 'string') take(JSON.parse(data)); else show(data, own);
  };
  own.onclose = ({ code, reason }) => {
    if (socket !== own) return;
    socket = null;
    if (code === ENDED) over('Ended', 'The session has ended', reasonText(reason));
    else if (code === REFUSED) over('Refused', 'This link is not valid', 'It may be incomplete, or meant for another session.');
    else if (code === OFF) over('Off', 'No live view', 'This session was started without a live view.');
    else if (code === FULL) over('Full', 'Too many viewers', 'As many people watch this session as may.', true);
    else reconnect();
  };
}

function reconnect() {
  const wait = Math.min(10_000, 400 * 2 ** tries) * (0.75 + Math.random() / 2);
  tries += 1;
  releaseKeys(false);
  setMode('Reconnecting');
  document.body.classList.remove('live');
  if (tries > 1) curtain('Reconnecting', 'The connection was lost. The session goes on meanwhile.');
  retryTimer = setTimeout(connect, wait);
}

function retryNow() {
  if (!socket && !isOver) { tries = 0; connect(); }
}
addEventListener('online', retryNow);
document.addEventListener('visibilitychange', () => { if (!document.hidden) retryNow(); });
addEventListener('hashchange', () => location.reload());

function over(mode, title, text, mayRetry = false) {
  isOver = true;
  state = null;
  document.body.classList.remove('live', 'control-on', 'loading');
  document.body.classList.add('ended');
  for (const element of document.querySelectorAll('.control')) element.hidden = true;
  address.readOnly = true;
  ask.hidden = true;
  $('progress').hidden = true;
  setMode(mode);
  curtain(title, text, mayRetry);
}

function reasonText(reason) {
  return {
    deleted: 'It was closed.',
    ttl: 'Its time was up.',
    idle: 'Nothing used it for a while.',
    crashed: 'Its browser stopped unexpectedly.',
  }[reason] ?? 'Its browser is closed.';
}

function curtain(title, text, mayRetry = false) {
  $('curtain').hidden = false;
  $('curtain-title').textContent = title;
  $('curtain-text').textContent = text;
  $('retry').hidden = !mayRetry;
  document.body.classList.toggle('stale', !document.body.classList.contains('connecting'));
}
$('retry').onclick = () => location.reload();

function setMode(text) { $('mode').textContent = text; }

function send(order) {
  if (socket?.readyState === WebSocket.OPEN && (hasControl || order.type === 'ack')) socket.send(JSON.stringify(order));
}

// --- What comes ------------------------------------------------------------------------------------

function take(message) {
  switch (message.type) {
    case 'hello':
      hasControl = message.control;
      tries = 0;
      document.body.classList.toggle('control-on', hasControl);
      document.body.classList.add('live');
      for (const element of document.querySelectorAll('.control')) element.hidden = !hasControl;
      address.readOnly = !hasControl;
      picture.tabIndex = hasControl ? 0 : -1;
      setMode(hasControl ? 'You are in control' : 'View only');
      if (isFitted) sendFit();
      break;
    case 'state':
      // Until its first picture comes, the other tab's is only a shadow.
      if (state && state.active !== message.active) document.body.classList.add('switching');
      state = message;
      render();
      break;
    case 'notice':
      notice(message.text);
      // The console, which shows this view in a frame, lists what is told. Nobody of another origin hears of it.
      if (parent !== window) parent.postMessage({ liveView: 'notice', text: message.text }, location.origin);
      break;
    case 'clipboard':
      navigator.clipboard?.writeText(message.text).catch(() => notice('Your browser did not allow the copy.'));
      break;
  }
}

async function show(data, own) {
  const head = new DataView(data);
  if (head.byteLength < 8 || head.getUint8(0) !== 1) return;
  try {
    const image = await createImageBitmap(new Blob([new Uint8Array(data, 8)], { type: 'image/jpeg' }));
    if (socket === own) {
      const size = { width: head.getUint16(2), height: head.getUint16(4) };
      if (picture.width !== image.width || picture.height !== image.height || size.width !== page.width || size.height !== page.height) {
        picture.width = image.width;
        picture.height = image.height;
        page = size;
        layOut();
      }
      paint.drawImage(image, 0, 0);
      if (!isOver) {
        document.body.classList.remove('connecting', 'stale', 'switching');
        $('curtain').hidden = true;
      }
    }
    image.close();
  } catch { /* A picture that cannot be read is followed by the next one. */ }
  if (own.readyState === WebSocket.OPEN) own.send('{"type":"ack"}');
}

/** The largest place for the picture that keeps its shape. */
function layOut() {
  const width = stage.clientWidth, height = stage.clientHeight;
  const scale = Math.min(width / page.width, height / page.height, isFitted ? 1 : Infinity);
  picture.style.width = `${Math.floor(page.width * scale)}px`;
  picture.style.height = `${Math.floor(page.height * scale)}px`;
}
new ResizeObserver(() => { layOut(); fitSoon(); }).observe(stage);

function render() {
  const active = state.tabs.find((tab) => tab.id === state.active);
  renderTabs();
  if (document.activeElement !== address || address.readOnly) address.value = active ? active.url : '';
  address.title = active ? active.url : '';
  document.title = active ? `${active.title || active.url} – live view` : 'Live view';
  $('back').disabled = !state.back;
  $('forward').disabled = !state.forward;
  document.body.classList.toggle('loading', state.loading);
  $('progress').hidden = !state.loading;
  const reload = state.loading ? 'Stop' : 'Reload';
  $('reload').title = reload;
  $('reload').setAttribute('aria-label', reload);
  if (state.crashed) curtain('The page crashed', hasControl ? 'Reload it to go on.' : 'The session goes on.');
  renderAsk();
}

function renderTabs() {
  const strip = $('tabs');
  const old = new Map([...strip.children].map((element) => [element.dataset.id, element]));
  let at = 0;
  for (const tab of state.tabs) {
    let element = old.get(tab.id);
    if (!element) element = makeTab(tab.id);
    old.delete(tab.id);
    if (strip.children[at] !== element) strip.insertBefore(element, strip.children[at] ?? null);
    at += 1;
    const label = tab.title || tab.url || 'New tab', isActive = tab.id === state.active;
    const [button, close] = element.children;
    button.textContent = tab.url === 'about:blank' ? 'New tab' : label;
    button.title = label;
    button.setAttribute('aria-selected', String(isActive));
    button.disabled = !hasControl;
    button.tabIndex = isActive ? 0 : -1;
    close.hidden = !hasControl;
    close.setAttribute('aria-label', `Close ${label}`);
    if (isActive && !element.classList.contains('active')) requestAnimationFrame(() => element.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
    element.classList.toggle('active', isActive);
  }
  for (const element of old.values()) element.remove();
}

function makeTab(id) {
  const element = document.createElement('div');
  element.className = 'tab';
  element.dataset.id = id;
  element.setAttribute('role', 'presentation');
  const button = document.createElement('button');
  button.type = 'button';
  button.setAttribute('role', 'tab');
  button.onclick = () => send({ type: 'tab', id });
  button.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = (step < 0 ? element.previousElementSibling : element.nextElementSibling)?.firstElementChild;
    if (next) { next.focus(); next.click(); }
  };
  const close = document.createElement('button');
  close.type = 'button';
  close.className = 'icon close';
  close.title = 'Close';
  close.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>';
  close.onclick = () => send({ type: 'closeTab', id });
  element.append(button, close);
  return element;
}

let noticeTimer = 0;
function notice(text) {
  $('notice').textContent = text;
  $('notice').hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { $('notice').hidden = true; }, 6_000);
}

// --- Dialogs and file choosers ---------------------------------------------------------------------

let asked = '';

function renderAsk() {
  const { dialog, chooser } = state;
  const now = JSON.stringify([dialog, chooser, state.active]);
  if (now === asked) return;
  asked = now;
  ask.hidden = !dialog && !chooser;
  if (ask.hidden) { if (hasControl && document.activeElement === document.body) keys.focus({ preventScroll: true }); return; }
  const input = $('ask-input'), yes = $('ask-yes'), no = $('ask-no');
  input.hidden = dialog?.kind !== 'prompt' || !hasControl;
  if (dialog) {
    let host = '';
    try { host = new URL(dialog.url).host; } catch { /* A page without an address of its own. */ }
    $('ask-title').textContent = dialog.kind === 'beforeunload' ? 'Leave this page?' : `${host || 'The page'} says`;
    $('ask-text').textContent = dialog.kind === 'beforeunload' ? 'What was entered may be lost.' : dialog.message;
    input.value = dialog.default;
    yes.textContent = dialog.kind === 'beforeunload' ? 'Leave' : 'OK';
    no.textContent = dialog.kind === 'beforeunload' ? 'Stay' : 'Cancel';
    no.hidden = !hasControl || dialog.kind === 'alert';
  } else {
    $('ask-title').textContent = chooser.multiple ? 'The page asks for files' : 'The page asks for a file';
    $('ask-text').textContent = hasControl ? 'Up to 10 MB. You can also drop it on the page.' : '';
    yes.textContent = chooser.multiple ? 'Choose files' : 'Choose a file';
    no.textContent = 'Cancel';
    no.hidden = !hasControl;
    $('files').multiple = chooser.multiple;
  }
  yes.hidden = !hasControl;
  if (hasControl) (input.hidden ? yes : input).focus();
  if (!input.hidden) input.select();
}

$('ask-form').onsubmit = (event) => {
  event.preventDefault();
  if (state?.dialog) {
    const text = state.dialog.kind === 'prompt' ? $('ask-input').value : undefined;
    send({ type: 'dialog', accept: true, text });
    keys.focus({ preventScroll: true });
  } else if (state?.chooser) $('files').click();
};
$('ask-no').onclick = () => {
  send(state?.dialog ? { type: 'dialog', accept: false } : { type: 'cancelChooser' });
  keys.focus({ preventScroll: true });
};
ask.onkeydown = (event) => {
  if (event.key === 'Escape' && !$('ask-no').hidden) $('ask-no').click();
};
$('files').onchange = () => { upload($('files').files); $('files').value = ''; };

async function upload(list) {
  const files = [...list];
  if (!files.length || !hasControl || !socket) return;
  if (!state?.chooser) return notice('The page does not ask for a file now. Click its upload button first.');
  if (files.reduce((sum, file) => sum + file.size, 0) > MOST_UPLOAD) return notice('At most 10 MB can be handed over here.');
  const head = new TextEncoder().encode(JSON.stringify({ files: files.map(({ name, type, size }) => ({ name, type, size })) }));
  const length = new DataView(new ArrayBuffer(4));
  length.setUint32(0, head.length);
  socket.send(await new Blob([length, head, ...files]).arrayBuffer());
}
stage.ondragover = (event) => { if (hasControl) event.preventDefault(); };
stage.ondrop = (event) => { event.preventDefault(); upload(event.dataTransfer.files); };

// --- Bar -------------------------------------------------------------------------------------------

$('new-tab').onclick = () => { send({ type: 'newTab' }); address.focus(); };
$('back').onclick = () => send({ type: 'back' });
$('forward').onclick = () => send({ type: 'forward' });
$('reload').onclick = () => send({ type: state?.loading ? 'stop' : 'reload' });
$('keyboard').onclick = () => keys.focus();
$('bar').onsubmit = (event) => {
  event.preventDefault();
  if (!hasControl) return;
  send({ type: 'navigate', url: address.value });
  keys.focus({ preventScroll: true });
};
address.onfocus = () => { if (!address.readOnly) address.select(); };
address.onblur = () => { if (state) render(); };
address.onkeydown = (event) => {
  if (event.key === 'Escape' && !address.readOnly) { keys.focus({ preventScroll: true }); }
};

let isFitted = false, fitTimer = 0;
$('fit').onclick = () => {
  isFitted = !isFitted;
  $('fit').setAttribute('aria-pressed', String(isFitted));
  if (isFitted) sendFit(); else send({ type: 'viewport' });
};
function sendFit() {
  const within = (value) => Math.max(240, Math.min(1920, Math.floor(value)));
  send({ type: 'viewport', width: within(stage.clientWidth), height: within(stage.clientHeight) });
}
function fitSoon() {
  if (!isFitted) return;
  clearTimeout(fitTimer);
  fitTimer = setTimeout(sendFit, 250);
}

// --- Pointer ---------------------------------------------------------------------------------------

function place(event) {
  const box = picture.getBoundingClientRect();
  const at = (value, start, size, full) => Math.round((value - start) / size * full * 10) / 10;
  return { x: at(event.clientX, box.left, box.width, page.width), y: at(event.clientY, box.top, box.height, page.height) };
}
function modifiers(event) {
  // A Mac's command key does there what control does on the other side.
  const control = event.ctrlKey || (isMac && event.metaKey);
  return (event.altKey ? 1 : 0) | (control ? 2 : 0) | (event.metaKey && !isMac ? 4 : 0) | (event.shiftKey ? 8 : 0);
}

let held = 0, move = null, wheel = null, isPainting = false;
/** Moves and wheel turns go out once per picture of this screen. */
function soon() {
  if (isPainting) return;
  isPainting = true;
  requestAnimationFrame(() => { isPainting = false; flush(); });
}
function flush() {
  if (move) send(move);
  if (wheel) send(wheel);
  move = wheel = null;
}
function mouse(event, kind) {
  if (kind !== 'move') flush();
  return { type: 'mouse', event: kind, ...place(event), button: kind === 'move' ? 0 : event.button, buttons: event.buttons,
    clicks: kind === 'move' ? 0 : Math.min(3, event.detail || 1), modifiers: modifiers(event) };
}

picture.addEventListener('mousedown', (event) => {
  if (!hasControl) return;
  event.preventDefault();
  keys.focus({ preventScroll: true });
  held |= 1 << event.button;
  send(mouse(event, 'down'));
});
addEventListener('mouseup', (event) => {
  if (!hasControl || !(held & 1 << event.button)) return;
  held &= ~(1 << event.button);
  send(mouse(event, 'up'));
});
addEventListener('mousemove', (event) => {
  if (!hasControl || (event.target !== picture && !held)) return;
  move = mouse(event, 'move');
  soon();
});
picture.addEventListener('wheel', (event) => {
  if (!hasControl) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 32 : event.deltaMode === 2 ? page.height : 1;
  const clamp = (value) => Math.max(-9_000, Math.min(9_000, value));
  wheel = { type: 'wheel', ...place(event), dx: clamp((wheel?.dx ?? 0) + event.deltaX * unit),
    dy: clamp((wheel?.dy ?? 0) + event.deltaY * unit), modifiers: modifiers(event) };
  soon();
}, { passive: false });
picture.addEventListener('contextmenu', (event) => { if (hasControl) event.preventDefault(); });

for (const [name, kind] of [['touchstart', 'start'], ['touchmove', 'move'], ['touchend', 'end'], ['touchcancel', 'cancel']]) {
  picture.addEventListener(name, (event) => {
    if (!hasControl) return;
    event.preventDefault();
    const points = [...event.touches].slice(0, 10).map((touch) => ({ id: Math.abs(touch.identifier) % 1000, ...place(touch) }));
    send({ type: 'touch', event: kind, points, modifiers: modifiers(event) });
  }, { passive: false });
}

// --- Keyboard --------------------------------------------------------------------------------------

picture.addEventListener('focus', () => { if (hasControl) keys.focus({ preventScroll: true }); });
keys.addEventListener('focus', () => stage.classList.add('focused'));
keys.addEventListener('blur', () => { stage.classList.remove('focused'); releaseKeys(true); });

// Something without a width that a phone's keyboard can delete.
const NOTHING = '\u200b';
keys.value = NOTHING;

const pressed = new Map();
function releaseKeys(tell) {
  if (tell) for (const key of pressed.values()) send({ ...key, event: 'up', text: '', repeat: false });
  pressed.clear();
}

keys.addEventListener('keydown', (event) => {
  if (!hasControl || event.isComposing || event.keyCode === 229 || event.key === 'Dead' || event.key === 'Unidentified') return;
  const mods = modifiers(event), isCommand = (mods & 2) !== 0 && !event.getModifierState('AltGraph');
  const letter = event.key.toLowerCase();
  if (event.key === 'F6') { event.preventDefault(); address.focus(); return; }
  // The paste event follows with the text.
  if (isCommand && letter === 'v') return;
  if (isCommand && (letter === 'c' || letter === 'x')) send({ type: 'copy' });
  // These belong to the window around.
  if (isCommand && (letter === 't' || letter === 'n' || letter === 'w')) return;
  event.preventDefault();
  const isText = [...event.key].length === 1 && !isCommand && (!event.altKey || event.getModifierState('AltGraph') || isMac);
  const text = isText ? event.key : event.key === 'Enter' ? '\r' : '';
  const key = { type: 'key', event: 'down', key: event.key, code: event.code, keyCode: event.keyCode & 0xffff, text,
    modifiers: isText && event.getModifierState('AltGraph') ? mods & 8 : mods, location: event.location, repeat: event.repeat };
  // The command key of a Mac is control over there, and so is what it is pressed with.
  if (isMac && event.key === 'Meta') Object.assign(key, { key: 'Control', code: 'ControlLeft', keyCode: 17 });
  pressed.set(event.code, key);
  send(key);
});
keys.addEventListener('keyup', (event) => {
  const key = pressed.get(event.code);
  if (!key) return;
  event.preventDefault();
  pressed.delete(event.code);
  send({ ...key, event: 'up', text: '', repeat: false, modifiers: modifiers(event) });
  // A Mac tells no release of keys that were held with command.
  if (isMac && event.key === 'Meta') releaseKeys(true);
});
keys.addEventListener('compositionupdate', (event) => send({ type: 'compose', text: event.data }));
keys.addEventListener('compositionend', (event) => {
  send({ type: 'compose', text: '' });
  if (event.data) send({ type: 'text', text: event.data });
  keys.value = NOTHING;
});
keys.addEventListener('input', (event) => {
  if (event.isComposing || event.inputType === 'insertFromPaste') return;
  // Keyboards of phones write without keys.
  const text = keys.value.replaceAll(NOTHING, '');
  if (event.inputType === 'deleteContentBackward') press('Backspace', 8);
  else if (event.inputType === 'insertLineBreak') press('Enter', 13, '\r');
  else if (text) send({ type: 'text', text });
  keys.value = NOTHING;
});
function press(key, keyCode, text = '') {
  const order = { type: 'key', key, code: key, keyCode, modifiers: 0 };
  send({ ...order, event: 'down', text });
  send({ ...order, event: 'up' });
}
keys.addEventListener('paste', (event) => {
  event.preventDefault();
  if (event.clipboardData.files.length) { upload(event.clipboardData.files); return; }
  const text = event.clipboardData.getData('text/plain');
  if (text.length > 80_000) notice('The text is too long to paste here.');
  else if (text) send({ type: 'text', text });
});

connect();
