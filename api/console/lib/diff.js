// Which lines went and which came. Myers' way by the middle is not needed here: the common ends are cut off first, and
// what is left is bounded.

const MOST_CELLS = 4_000_000;

/// Lines as `{kind: "same" | "gone" | "new", text}`. `null` where the texts are too long and too different to compare.
export function lines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const left = a.slice(head, a.length - tail);
  const right = b.slice(head, b.length - tail);
  if (left.length * right.length > MOST_CELLS) return null;
  const same = (text) => ({ kind: "same", text });
  return [...a.slice(0, head).map(same), ...middle(left, right), ...a.slice(a.length - tail).map(same)];
}

function middle(a, b) {
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ kind: "same", text: a[i] });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      out.push({ kind: "gone", text: a[i] });
      i += 1;
    } else {
      out.push({ kind: "new", text: b[j] });
      j += 1;
    }
  }
  return out;
}

/// The changes with some lines around them; longer stretches of the same fold into a count.
export function folded(all, around = 3) {
  const near = new Uint8Array(all.length);
  all.forEach((line, at) => {
    if (line.kind === "same") return;
    for (let i = Math.max(0, at - around); i <= Math.min(all.length - 1, at + around); i += 1) near[i] = 1;
  });
  const out = [];
  let hidden = 0;
  all.forEach((line, at) => {
    if (near[at]) {
      if (hidden) out.push({ kind: "fold", text: `${hidden} ${hidden === 1 ? "line" : "lines"} the same` });
      hidden = 0;
      out.push(line);
    } else hidden += 1;
  });
  if (hidden) out.push({ kind: "fold", text: `${hidden} ${hidden === 1 ? "line" : "lines"} the same` });
  return out;
}
