(() => {
  // The current page as markdown: what is visible, in reading order.
  const SKIP = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'IFRAME', 'OBJECT', 'SVG', 'svg', 'CANVAS', 'VIDEO', 'AUDIO', 'SELECT', 'INPUT', 'TEXTAREA', 'HEAD']);
  const BLOCK = new Set(['ADDRESS', 'ARTICLE', 'ASIDE', 'BLOCKQUOTE', 'BODY', 'DD', 'DETAILS', 'DIV', 'DL', 'DT', 'FIELDSET', 'FIGCAPTION', 'FIGURE', 'FOOTER', 'FORM', 'HEADER', 'LI', 'MAIN', 'NAV', 'P', 'SECTION', 'SUMMARY']);
  const hidden = (element) => {
    const style = getComputedStyle(element);
    return style.display === 'none' || style.visibility === 'hidden';
  };
  const inline = (node) => children(node).replace(/\s+/g, ' ').trim();
  const indent = (text, mark) => text.replace(/\n/g, `\n${' '.repeat(mark.length)}`);

  function list(element) {
    let number = element.start ?? 1;
    const items = [...element.children].filter((item) => item.tagName === 'LI' && !hidden(item)).map((item) => {
      const mark = element.tagName === 'OL' ? `${number++}. ` : '- ';
      return mark + indent(children(item).trim().replace(/\n{2,}(?=\s*(?:[-\d]))/g, '\n'), mark);
    });
    return `\n\n${items.join('\n')}\n\n`;
  }

  function table(element) {
    const rows = [...element.rows].map((row) => [...row.cells].map((cell) => inline(cell).replace(/\|/g, '\\|')));
    if (!rows.length) return '';
    const width = Math.max(...rows.map((row) => row.length));
    const line = (cells) => `| ${Array.from({ length: width }, (_, i) => cells[i] ?? '').join(' | ')} |`;
    return `\n\n${[line(rows[0]), `|${' --- |'.repeat(width)}`, ...rows.slice(1).map(line)].join('\n')}\n\n`;
  }

  function children(node) {
    return [...node.childNodes].map(markdown).join('');
  }

  function markdown(node) {
    if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/\s+/g, ' ');
    if (node.nodeType !== Node.ELEMENT_NODE || SKIP.has(node.tagName) || hidden(node)) return '';
    const { tagName } = node;
    const heading = /^H([1-6])$/.exec(tagName);
    if (heading) return `\n\n${'#'.repeat(Number(heading[1]))} ${inline(node)}\n\n`;
    switch (tagName) {
      case 'BR': return '\n';
      case 'HR': return '\n\n---\n\n';
      case 'UL': case 'OL': return list(node);
      case 'TABLE': return table(node);
      case 'PRE': return `\n\n\`\`\`\n${node.innerText.replace(/\n$/, '')}\n\`\`\`\n\n`;
      case 'CODE': return `\`${node.innerText}\``;
      case 'BLOCKQUOTE': return `\n\n${children(node).trim().replace(/^/gm, '> ')}\n\n`;
      case 'B': case 'STRONG': return inline(node) && `**${inline(node)}**`;
      case 'I': case 'EM': return inline(node) && `*${inline(node)}*`;
      case 'IMG': return node.currentSrc || node.src ? `![${node.alt}](${node.currentSrc || node.src})` : '';
      case 'A': {
        const text = inline(node);
        return text && node.href && !node.href.startsWith('javascript:') ? `[${text}](${node.href})` : text;
      }
      default: {
        const text = children(node.shadowRoot ?? node);
        return BLOCK.has(tagName) ? `\n\n${text}\n\n` : text;
      }
    }
  }

  // Blank lines inside of fences are the page's own.
  return markdown(document.body ?? document.documentElement)
    .split(/(```[^]*?```)/)
    .map((part, i) => (i % 2 ? part : part.replace(/[ \t]+\n/g, '\n').replace(/\n[ \t]+(?=[^\s\-\d])/g, '\n').replace(/\n{3,}/g, '\n\n')))
    .join('')
    .trim();
})()
