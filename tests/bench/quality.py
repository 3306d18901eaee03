"""The benchmark of extraction: the corpus's pages through the program `weir-extract`, by kind of page, against the last
release's figures."""
import collections
import difflib
import gzip
import html
import importlib.util
import json
import os
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASELINE = ROOT / "tests/bench/quality.json"
"""The last release's figures: per kind, and F1 and recall per page. No text of a page."""
CORPORA = ["wcxb", "mdcases"]
SECONDS = 60
"""Longest that one page may take; the program itself is bounded far below."""
LOSS = 0.01
"""How much a kind's F1 or recall may fall below the last release's, of 1."""
SHOWN = 40
"""Pages in the report, those that moved most first."""


def corpus():
    """Directory of the corpus, or None where it is not. It is data that the source tree does not hold."""
    given = os.environ.get("WEIR_BENCH_CORPUS")
    places = [pathlib.Path(given)] if given else [ROOT / "shared/corpus", ROOT.parent / "shared/corpus"]
    return next((place for place in places if (place / "score.py").is_file()), None)


def scorer(place):
    """The corpus's own measure."""
    spec = importlib.util.spec_from_file_location("corpus_score", place / "score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program():
    """The command of the extraction, as built."""
    given = os.environ.get("WEIR_BENCH_EXTRACT")
    return pathlib.Path(given or ROOT / os.environ.get("WEIR_BENCH_BIN", "target/release") / "weir-extract")


def extract(binary, page, item, full=False):
    """Markdown of one stored page."""
    options = item.get("options") or {}
    words = [binary, "--markdown", "--url", item["url"] or "about:blank"]
    if full or options.get("onlyMainContent") is False:
        words.append("--full-page")
    for name, flag in (("includeTags", "--include"), ("excludeTags", "--exclude")):
        for selector in options.get(name) or []:
            words += [flag, selector]
    answer = subprocess.run(words, input=page, capture_output=True, timeout=SECONDS, check=True)
    return answer.stdout.decode()


def stored(place, name, item):
    """The bytes that the page's server sent."""
    return gzip.decompress((place / name / "html" / f"{item['id']}.html.gz").read_bytes())


def measure(place, binary):
    """Figures by kind, rows by page, markdown by page."""
    score = scorer(place)
    texts, rows, figures = {}, {}, {}
    for name in CORPORA:
        items = score.load(place / name / "items.jsonl")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(lambda item: extract(binary, stored(place, name, item), item), items)
            for item, text in zip(items, made, strict=True):
                texts[f"{name}/{item['id']}"] = text
        found = score.score_corpus(items, {key: {"markdown": text} for key, text in texts.items()}, name)
        kinds = collections.defaultdict(list)
        for row in found:
            rows[f"{name}/{row['id']}"] = row
            kinds[name].append(row)
            # Cases of markdown are a handful of checks to a kind, so their kinds are no figures.
            if name != "mdcases":
                kinds[f"{name} {row['type']}"].append(row)
        for kind, group in kinds.items():
            total = score.summarise(group)
            figures[kind] = {key: round(total[key], 4) for key in ("P", "R", "F1", "shF1") if key in total}
    return figures, rows, texts


def quality(report, site, databases, scale):
    """Word F1, precision and recall of main content on the development corpus by kind of page, and the checks of
    markdown, each against the last release; a loss over one point is a miss. Writes target/quality.html, which shows
    the pages that moved most. WEIR_BENCH_CORPUS names the corpus, WEIR_BENCH_ACCEPT=1 makes the figures the release's."""
    place = corpus()
    if place is None:
        print("quality: the corpus is not here (WEIR_BENCH_CORPUS names its directory); nothing was measured")
        return
    binary = program()
    figures, rows, texts = measure(place, binary)
    before = json.loads(BASELINE.read_text()) if BASELINE.is_file() else {"figures": {}, "pages": {}}
    compare(report, figures, before["figures"])
    moved = movements(rows, before["pages"])
    for change, key in moved[:10]:
        if abs(change) >= 0.001:
            print(f"    moved {change:+.3f}  {key}  {rows[key]['type']}")
    out = ROOT / "target/quality.html"
    out.parent.mkdir(exist_ok=True)
    out.write_text(side_by_side(place, binary, moved[:SHOWN], rows, texts), encoding="utf-8")
    print(f"    side by side: {out.relative_to(ROOT)}")
    if os.environ.get("WEIR_BENCH_ACCEPT"):
        accepted = {key: [round(row["F1"], 4), round(row.get("R", row["F1"]), 4)] for key, row in sorted(rows.items())}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in accepted.items())
        kinds = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(figures.items()))
        BASELINE.write_text(f'{{"figures": {{\n{kinds}\n}}, "pages": {{\n{lines}\n}}}}\n')


def compare(report, figures, before):
    """One line per figure; what the last release had less one point is the target."""
    for kind, now in sorted(figures.items()):
        for key in ("F1", "R"):
            if key not in now:
                continue
            old = before.get(kind, {}).get(key)
            # In hundredths of a point, so that rounding decides nothing.
            target = None if old is None else (">=", round(100 * (old - LOSS), 2))
            note = f"precision {now['P']:.3f}" if key == "F1" and "P" in now else ""
            if old is not None:
                note = f"{note}{', ' if note else ''}{100 * (now[key] - old):+.2f} against the last release"
            report.failed |= old is not None and now[key] < old - LOSS
            report.line(f"quality: {kind}, {'F1' if key == 'F1' else 'recall'}", 100 * now[key], "points", target, note=note)


def movements(rows, before):
    """(change of F1, page), largest change first; pages that the last release did not know count by what they miss."""
    changes = []
    for key, row in rows.items():
        known = before.get(key)
        changes.append((row["F1"] - known[0], key) if known else (0.0, key))
    return sorted(changes, key=lambda pair: (-abs(pair[0]), rows[pair[1]]["F1"], pair[1]))


def side_by_side(place, binary, moved, rows, texts):
    """One document: of each page the text that is kept and the text that is left out. All of it is shown as text: a
    page's own markup must not run in the reader's browser."""
    score = scorer(place)
    known = {f"{name}/{item['id']}": (name, item) for name in CORPORA for item in score.load(place / name / "items.jsonl")}
    parts = []
    for change, key in moved:
        name, item = known[key]
        whole = extract(binary, stored(place, name, item), item, full=True)
        kept, gone = split(whole, texts[key])
        wanted = collections.Counter(score.tokens(item.get("text") or ""))
        head = f"{key} · {rows[key]['type']} · F1 {rows[key]['F1']:.3f} ({change:+.3f})"
        if "P" in rows[key]:
            head += f" · P {rows[key]['P']:.3f} · R {rows[key]['R']:.3f}"
        columns = "".join(
            f"<section><h3>{title}</h3>{shown(lines, wanted, score.tokens, marks)}</section>"
            for title, lines, marks in (("Kept", kept, False), ("Left out", gone, True))
        )
        parts.append(f"<details><summary>{html.escape(head)}</summary><p>{html.escape(item['url'])}</p><div>{columns}</div></details>")
    return DOCUMENT.replace("BODY", "\n".join(parts) or "<p>No page has moved.</p>")


def split(whole, kept):
    """Lines of the main content, and those of the whole page that are not in it, in order."""
    lines = [line for line in kept.splitlines() if line.strip()]
    rest = [line for line in whole.splitlines() if line.strip()]
    matcher = difflib.SequenceMatcher(None, rest, lines, autojunk=False) if len(rest) * len(lines) < 4_000_000 else None
    if matcher is None:
        known = set(lines)
        return lines, [line for line in rest if line not in known]
    gone = [rest[n] for tag, a, b, _, _ in matcher.get_opcodes() if tag != "equal" for n in range(a, b)]
    return lines, gone


def shown(lines, wanted, tokens, left_out):
    """Lines as text. Marked: of what is kept the lines that the truth has not, of what is left out those that it has."""
    out = []
    for line in lines:
        words = tokens(re.sub(r"\]\([^)]*\)", "]", line))
        inside = sum(word in wanted for word in words) * 2 > len(words)
        mark = bool(wanted) and len(words) > 3 and inside == left_out
        text = html.escape(line[:2000])
        out.append(f"<mark>{text}</mark>" if mark else text)
    return "<pre>" + "\n".join(out) + "</pre>"


# No script runs in it and nothing is fetched, whatever the text holds.
DOCUMENT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Extraction, side by side</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:90rem;padding:0 1rem;
background:light-dark(#fff,#121e2a);color:light-dark(#10263a,#e4edf5)}
details{border-top:1px solid light-dark(#ccc,#334455);padding:.4rem 0}summary{cursor:pointer}p{overflow-wrap:anywhere}
h3{font-size:1em;margin:.5rem 0}div{display:grid;grid-template-columns:1fr 1fr;gap:1rem}section{min-width:0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;max-height:40rem;overflow:auto;margin:0;
padding:.5rem;background:light-dark(#f6f6f6,#0e1923)}mark{background:light-dark(#ffd9d9,#6b2320);color:inherit}
@media (max-width:700px){div{grid-template-columns:1fr}}</style>
<h1>Extraction, side by side</h1><p>Pages that moved most, first. Marked: kept without being in the truth, or left out
though it is there.</p>
BODY
</html>
"""
