// What a rendered page looks like, from its computed styles. Runs in a world of its own, so nothing of the page's scripts can
// meddle, changes nothing, and looks at a bounded number of elements.
(() => {
  const LIMIT = 4000;
  const px = value => { const n = parseFloat(value); return Number.isFinite(n) ? Math.round(n * 100) / 100 : 0; };
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const known = new Map();
  // [red, green, blue, alpha] of any CSS colour; null when it is not a colour or cannot be seen.
  const colour = text => {
    if (!text || !CSS.supports('color', text)) return null;
    if (known.has(text)) return known.get(text);
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    const found = a < 13 ? null : [r, g, b, a / 255];
    if (known.size < 5000) known.set(text, found);
    return found;
  };
  const hex = c => c && '#' + c.slice(0, 3).map(n => n.toString(16).padStart(2, '0')).join('').toUpperCase();
  const light = c => (0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]) / 255;
  const vivid = c => { const max = Math.max(c[0], c[1], c[2]), min = Math.min(c[0], c[1], c[2]); return max ? (max - min) / max : 0; };
  const tally = () => {
    const counts = new Map();
    return {
      add: (key, weight = 1) => { if (key && (counts.has(key) || counts.size < 2000)) counts.set(key, (counts.get(key) || 0) + weight); },
      ranked: () => [...counts].sort((a, b) => b[1] - a[1]).map(entry => entry[0]),
    };
  };
  const style = element => getComputedStyle(element);
  const isVisible = element => {
    const box = element.getBoundingClientRect(), s = style(element);
    return box.width > 0 && box.height > 0 && s.visibility !== 'hidden' && s.opacity !== '0';
  };
  const absolute = address => { try { const url = new URL(address, document.baseURI); return /^https?:$/.test(url.protocol) ? url.href : null; } catch { return null; } };
  const meta = (...names) => { for (const name of names) { const m = document.querySelector(`meta[property="${name}"],meta[name="${name}"]`); if (m?.content) return m.content.trim().slice(0, 1000); } return null; };

  const root = document.documentElement, body = document.body || root;
  const rootStyle = style(root), bodyStyle = style(body);
  const background = colour(bodyStyle.backgroundColor) || colour(rootStyle.backgroundColor)
    || (matchMedia('(prefers-color-scheme: dark)').matches && /dark/.test(rootStyle.colorScheme) ? [0, 0, 0, 1] : [255, 255, 255, 1]);

  const texts = tally(), links = tally(), fills = tally(), families = tally(), gaps = tally(), radii = tally();
  const stacks = new Map(), weights = tally();
  const family = stack => (stack || '').split(',')[0].trim().replace(/^["']|["']$/g, '').slice(0, 100);
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_ELEMENT);
  for (let element = walker.currentNode, n = 0; element && n < LIMIT; element = walker.nextNode(), n++) {
    if (!isVisible(element)) continue;
    const s = style(element), box = element.getBoundingClientRect();
    let letters = 0;
    for (const child of element.childNodes) if (child.nodeType === 3) letters += child.data.trim().length;
    const c = colour(s.color);
    if (letters > 0 && c) {
      (element.closest('a[href]') && !element.closest('button,[role=button],nav,header,footer') ? links : texts).add(hex(c), letters);
      families.add(family(s.fontFamily), letters);
      weights.add(s.fontWeight, letters);
      stacks.set(family(s.fontFamily), s.fontFamily);
    }
    const fill = colour(s.backgroundColor);
    if (fill && element !== body && element !== root) fills.add(hex(fill), Math.min(box.width * box.height, 1e6));
    for (const side of ['paddingTop', 'paddingLeft', 'marginTop', 'marginBottom', 'rowGap', 'columnGap']) {
      const gap = px(s[side]);
      if (gap >= 2 && gap <= 128) gaps.add(gap);
    }
    if (px(s.borderTopLeftRadius) > 0 && fill) radii.add(s.borderTopLeftRadius);
  }

  const look = element => {
    if (!element) return undefined;
    const s = style(element), border = px(s.borderTopWidth) > 0 ? hex(colour(s.borderTopColor)) : null;
    const found = { background: hex(colour(s.backgroundColor)) || 'transparent', textColor: hex(colour(s.color)), borderRadius: s.borderTopLeftRadius, padding: s.padding, fontWeight: s.fontWeight };
    if (border) found.borderColor = border;
    if (s.boxShadow !== 'none') found.shadow = s.boxShadow.slice(0, 200);
    for (const key of Object.keys(found)) if (!found[key]) delete found[key];
    return found;
  };
  const isButton = /(^|[-_ ])(btn|button|cta)([-_ ]|$)/i;
  const buttons = [...document.querySelectorAll('button,[role=button],input[type=submit],a[class]')].slice(0, 500)
    .filter(e => (e.tagName !== 'A' || isButton.test(e.className)) && isVisible(e));
  const score = e => {
    const fill = colour(style(e).backgroundColor), named = /primary|cta|submit|main/i.test(e.className + ' ' + e.id) ? 2 : 0;
    return named + (fill ? 1 + vivid(fill) + Math.abs(light(fill) - light(background)) : 0);
  };
  buttons.sort((a, b) => score(b) - score(a));
  const primary = buttons[0];
  const primaryLook = look(primary);
  const secondary = primaryLook && buttons.find(b => look(b).background !== primaryLook.background);
  const input = [...document.querySelectorAll('input:not([type=hidden]):not([type=submit]):not([type=checkbox]):not([type=radio]),textarea,select')].slice(0, 100).find(isVisible);

  const variable = (...names) => {
    for (const name of names) for (const prefix of ['--', '--color-', '--brand-', '--clr-', '--theme-', '--bs-', '--wp--preset--color--']) {
      const c = colour(rootStyle.getPropertyValue(prefix + name).trim());
      if (c) return hex(c);
    }
    return null;
  };
  const rgb = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
  const vivids = [primaryLook?.background, ...fills.ranked().slice(0, 40), ...links.ranked().slice(0, 5)]
    .filter(c => c?.startsWith('#') && vivid(rgb(c)) > 0.25 && c !== hex(background));
  const theme = hex(colour(meta('theme-color')));
  const texted = texts.ranked();
  const colors = {
    primary: variable('primary', 'brand', 'main') || vivids[0] || theme || texted[0],
    background: hex(background),
    textPrimary: hex(colour(bodyStyle.color)) || texted[0],
  };
  if (texted[0]) colors.textPrimary = texted[0];
  const optional = {
    secondary: variable('secondary') || vivids.find(c => c !== colors.primary),
    textSecondary: texted.find(c => c !== colors.textPrimary),
    link: links.ranked()[0],
    success: variable('success'), warning: variable('warning'), error: variable('error', 'danger', 'destructive'),
  };
  optional.accent = variable('accent') || vivids.find(c => c !== colors.primary && c !== optional.secondary);
  for (const [name, value] of Object.entries(optional)) if (value) colors[name] = value;

  const first = selector => [...document.querySelectorAll(selector)].slice(0, 50).find(isVisible);
  const h1 = first('h1'), heading = h1 || first('h2,h3'), paragraph = first('main p,article p,p') || body, code = first('code,pre,kbd');
  const split = stack => stack.split(',').map(f => f.trim().replace(/^["']|["']$/g, '')).filter(Boolean).slice(0, 20);
  const size = element => element && style(element).fontSize;
  const ratio = element => { const s = style(element), h = parseFloat(s.lineHeight), f = parseFloat(s.fontSize); return h && f ? Math.round(h / f * 100) / 100 : undefined; };
  const fontFamilies = { primary: family(style(paragraph).fontFamily), heading: heading ? family(style(heading).fontFamily) : undefined, code: code ? family(style(code).fontFamily) : undefined };
  const fontSizes = { h1: size(h1), h2: size(first('h2')), h3: size(first('h3')), body: size(paragraph), small: size(first('small')) };
  const weighed = weights.ranked().map(Number).filter(Boolean);
  const fontWeights = { regular: weighed.find(w => w >= 350 && w < 500), medium: weighed.find(w => w >= 500 && w < 600), bold: weighed.find(w => w >= 600), light: weighed.find(w => w < 350) };

  const clean = object => { for (const key of Object.keys(object)) if (object[key] === undefined || object[key] === null || object[key] === '') delete object[key]; return object; };
  const isLogo = /logo|brand/i;
  const drawing = svg => {
    if (!svg.hasAttribute('xmlns')) { svg = svg.cloneNode(true); svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg'); }
    const text = svg.outerHTML;
    return text.length <= 30000 ? 'data:image/svg+xml;base64,' + btoa(unescape(encodeURIComponent(text))) : null;
  };
  const logo = () => {
    let best = null, most = 0;
    const candidates = [...document.querySelectorAll('header img,header svg,nav img,nav svg,img[id],img[class],img[alt],a[href="/"] img,a[href="/"] svg,[class*=logo] img,[class*=logo] svg')].slice(0, 300);
    for (const element of candidates) {
      if (!isVisible(element)) continue;
      const named = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean)
        .some(e => isLogo.test(`${e.id} ${e.getAttribute('class') || ''} ${e.getAttribute('alt') || ''} ${e.getAttribute('aria-label') || ''}`));
      const home = element.closest('a[href]'), box = element.getBoundingClientRect();
      const leads = home && (() => { try { const u = new URL(home.href); return u.origin === location.origin && /^\/([a-z]{2})?\/?$/.test(u.pathname); } catch { return false; } })();
      const points = (named ? 3 : 0) + (isLogo.test(element.getAttribute('src') || '') ? 2 : 0) + (leads ? 2 : 0)
        + (element.closest('header,nav,[role=banner]') ? 1 : 0) + (box.top < 300 ? 1 : 0);
      if (points >= 3 && points > most) {
        const found = element.tagName === 'IMG' ? absolute(element.currentSrc || element.src) : drawing(element);
        if (found) { best = found; most = points; }
      }
    }
    return best;
  };
  const icon = document.querySelector('link[rel~=icon]') || document.querySelector('link[rel=apple-touch-icon]');
  const ogImage = meta('og:image', 'twitter:image');
  const images = clean({ logo: logo(), favicon: icon ? absolute(icon.href) : null, ogImage: ogImage && absolute(ogImage) });
  const header = first('header,[role=banner]'), footer = first('footer,[role=contentinfo]'), main = first('main,article,[class*=container],[class*=wrapper]');
  const multiples = unit => gaps.ranked().slice(0, 12).filter(g => g % unit === 0).length;
  const transition = primary && style(primary);
  const layout = {};
  if (header) layout.headerHeight = Math.round(header.getBoundingClientRect().height) + 'px';
  if (footer) layout.footerHeight = Math.round(footer.getBoundingClientRect().height) + 'px';
  if (main && style(main).maxWidth !== 'none') layout.grid = { maxWidth: style(main).maxWidth };
  const animations = transition && px(transition.transitionDuration) > 0
    ? { transitionDuration: transition.transitionDuration.split(',')[0], easing: (transition.transitionTimingFunction.match(/^[a-z-]+(\([^)]*\))?/) || [''])[0] } : undefined;
  const inputLook = look(input);
  const branding = {
    colorScheme: light(background) < 0.5 ? 'dark' : 'light',
    brandName: meta('og:site_name', 'application-name') || undefined,
    logo: images.logo,
    colors: clean(colors),
    fonts: [...new Set([fontFamilies.primary, ...families.ranked()])].filter(Boolean).slice(0, 10).map(name => ({ family: name })),
    typography: {
      fontFamilies: clean(fontFamilies),
      fontStacks: clean({ primary: split(style(paragraph).fontFamily), body: split(bodyStyle.fontFamily), heading: heading ? split(style(heading).fontFamily) : undefined }),
      fontSizes: clean(fontSizes),
      lineHeights: clean({ heading: heading ? ratio(heading) : undefined, body: ratio(paragraph) }),
      fontWeights: clean(fontWeights),
    },
    spacing: clean({ baseUnit: gaps.ranked().length ? (multiples(8) >= 3 ? 8 : multiples(5) > multiples(4) ? 5 : 4) : undefined, borderRadius: primaryLook?.borderRadius || radii.ranked()[0] }),
    components: clean({ buttonPrimary: primaryLook, buttonSecondary: look(secondary), input: inputLook }),
    images,
    animations,
    layout: Object.keys(layout).length ? layout : undefined,
  };
  return JSON.stringify(clean(branding));
})()
