// What the main-content filter left out of a page: the page's blocks in order, each with whether its text is in the
// result. The page's HTML is only read (a parsed document runs and loads nothing); what comes out of here is text.

const BLOCKS = new Set("ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY BUTTON CAPTION DD DIV DL DT FIELDSET FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6 HEADER HR LI MAIN NAV OL P PRE SECTION SUMMARY TABLE TBODY TD TFOOT TH THEAD TR UL DETAILS LABEL SELECT OPTION".split(" "));
const SILENT = new Set("SCRIPT STYLE NOSCRIPT TEMPLATE HEAD SVG CANVAS IFRAME OBJECT EMBED VIDEO AUDIO MATH LINK META".split(" "));
const LANDMARKS = { NAV: "navigation", FOOTER: "footer", HEADER: "header", ASIDE: "aside", FORM: "form",
  DIALOG: "dialog" };
const LONGEST = 2_000_000;
const MOST_BLOCKS = 5000;

/// Letters and digits only: how words are set off differs between HTML and markdown.
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

/// The blocks of text in a parsed page, in order: their text and the element that they stand in.
function blocksOf(page) {
  const blocks = [];
  const walk = document.createTreeWalker(page.body || page.documentElement, NodeFilter.SHOW_TEXT);
  let owner = null;
  let text = "";
  const flush = () => {
    const words = text.replace(/\s+/g, " ").trim();
    text = "";
    if (words && owner) blocks.push({ text: words, owner });
  };
  while (walk.nextNode() && blocks.length < MOST_BLOCKS) {
    const node = walk.currentNode;
    if (silent(node.parentElement)) continue;
    const block = blockOf(node.parentElement);
    if (block !== owner) {
      flush();
      owner = block;
    }
    text += node.data;
  }
  flush();
  return blocks;
}

/// `null` where the page is too long to be compared here.
export function leftOut(rawHtml, kept) {
  if (rawHtml.length > LONGEST || kept.length > LONGEST) return null;
  const inResult = ` ${bare(kept)} `;
  return blocksOf(new DOMParser().parseFromString(rawHtml, "text/html")).map(({ text, owner }) => {
    const core = bare(text);
    return { text: text.slice(0, 2000), tag: owner.tagName.toLowerCase(), place: placeOf(owner),
      kept: !core || inResult.includes(` ${core} `) };
  });
}

function silent(element) {
  for (let at = element; at; at = at.parentElement) if (SILENT.has(at.tagName.toUpperCase())) return true;
  return false;
}

function blockOf(element) {
  let at = element;
  while (at && !BLOCKS.has(at.tagName) && at.parentElement) at = at.parentElement;
  return at;
}

function placeOf(element) {
  for (let at = element; at; at = at.parentElement) if (LANDMARKS[at.tagName]) return LANDMARKS[at.tagName];
  return null;
}

/// The text of filtered HTML, or of markdown without its marks.
export function keptText(page) {
  if (typeof page.html === "string") return blocksOf(new DOMParser().parseFromString(page.html,
      "text/html")).map((block) => block.text).join(" ");
  return String(page.markdown || "").replace(/\]\([^)]*\)/g, " ").replace(/\\(.)/g, "$1");
}
