#!/usr/bin/env python3
"""Grows the trees that say which blocks of a page are content: worker/extract/src/blocks/trees.txt.

  grow.py CORPUS PROGRAM [--folds] [--out FILE]

CORPUS: the development corpus (score.py, wcxb/items.jsonl.gz, wcxb/html). PROGRAM: a built `weir-extract`, whose
`--facts` gives each page's blocks with their facts. --folds: only says how trees do on sites they have not seen, five
folds by site. Needs numpy and lightgbm (`pip install numpy lightgbm==4.7.0`); the same corpus, program and version
give the same file. No text of a page goes into it.
"""
import argparse
import collections
import gzip
import hashlib
import importlib.util
import json
import pathlib
import subprocess
import urllib.parse

import lightgbm
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[1] / "src/blocks/trees.txt"
# Shallow and strongly held: more leaves, more trees and slower ones were no better on other sites.
TREES = 160
SETTINGS = dict(
    objective="binary", num_leaves=8, max_depth=5, learning_rate=0.08, min_data_in_leaf=60, min_sum_hessian_in_leaf=0.1,
    feature_fraction=0.4, bagging_fraction=0.7, bagging_freq=1, lambda_l2=3.0, seed=7, deterministic=True,
    num_threads=1, verbose=-1,
)
# As in src/blocks/choose.rs.
RECALL, SURELY_NOT, LIKELY, FEW_BLOCKS, FEW_WORDS = 1.3, 0.5, 0.25, 24, 270
FOLDS = 5
SHORT = 4
"""Words below which a block is only found in the truth as a whole."""
NEAR = 8
"""Blocks on each side that say which of several like short blocks is the one in the truth."""


def site(url):
    """The part of a host that one owner has, roughly."""
    parts = (urllib.parse.urlsplit(url).hostname or "").split(".")
    wide = 3 if len(parts) > 2 and parts[-2] in ("co", "com", "org", "gov", "ac", "edu", "net") else 2
    return ".".join(parts[-wide:])


def labels(blocks, truth):
    """How much of each block the truth has, 0 to 1: by runs of three words; short blocks as a whole, as often as the
    truth has them, and there where their neighbours are in it."""
    joined = " " + " ".join(truth) + " "
    runs = set(zip(truth, truth[1:], truth[2:]))
    found = np.full(len(blocks), -1.0)
    for k, words in enumerate(blocks):
        if len(words) >= SHORT:
            inside = [False] * len(words)
            for j in range(len(words) - 2):
                if (words[j], words[j + 1], words[j + 2]) in runs:
                    inside[j] = inside[j + 1] = inside[j + 2] = True
            found[k] = sum(inside) / len(words)

    def near(k):
        weight = total = 0.0
        for j in range(max(0, k - NEAR), min(len(blocks), k + NEAR + 1)):
            if j != k and len(blocks[j]) >= SHORT:
                w = min(len(blocks[j]), 40) / (1 + abs(j - k))
                weight += w
                total += w * found[j]
        return total / weight if weight else 0.5

    alike = collections.defaultdict(list)
    for k, words in enumerate(blocks):
        if words:
            alike[tuple(words)].append(k)
    for words, places in alike.items():
        times = joined.count(" " + " ".join(words) + " ") if len(words) < 60 else 1
        order = sorted(places, key=lambda k: (-near(k), k))
        if len(words) < SHORT:
            for rank, k in enumerate(order):
                found[k] = float(rank < times and (len(places) > 1 or near(k) > 0.05))
        elif len(places) > 1 and found[places[0]] > 0.5:
            for k in order[max(1, times):]:
                found[k] = 0.0
    return np.maximum(found, 0.0)


def read(corpus, program):
    """All pages with their blocks; the names of the facts."""
    spec = importlib.util.spec_from_file_location("corpus_score", corpus / "score.py")
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    pages, names = [], []
    for item in score.load(corpus / "wcxb/items.jsonl"):
        stored = gzip.decompress((corpus / "wcxb/html" / f"{item['id']}.html.gz").read_bytes())
        words = [program, "--facts", "--url", item["url"] or "about:blank"]
        told = json.loads(subprocess.run(words, input=stored, capture_output=True, check=True).stdout)
        names = told["names"] or names
        blocks = [score.tokens(text) for text, _ in told["rows"]]
        truth = score.tokens(item["text"])
        number = {}
        counted = [np.array([number.setdefault(w, len(number)) for w in b], dtype=np.int32) for b in blocks]
        wanted = np.bincount([number.setdefault(w, len(number)) for w in truth], minlength=len(number))
        pages.append(dict(
            kind=item["type"], site=site(item["url"]), words=counted, truth=wanted,
            facts=np.array([row for _, row in told["rows"]], dtype=np.float32).reshape(len(blocks), len(told["names"])),
            label=labels(blocks, truth), size=np.array([len(b) for b in blocks], dtype=float),
        ))
    return pages, names


def measures(page, kept):
    """Precision, recall and F1 of the words of the kept blocks."""
    chosen = [words for words, is_kept in zip(page["words"], kept) if is_kept]
    total = page["truth"].sum()
    if not total or not sum(map(len, chosen)):
        return 0.0, 0.0, 0.0
    counts = np.bincount(np.concatenate(chosen), minlength=len(page["truth"]))[: len(page["truth"])]
    both = np.minimum(counts, page["truth"]).sum()
    p, r = both / sum(map(len, chosen)), both / total
    return p, r, 2 * p * r / (p + r) if both else 0.0


def choice(page, likely, stage, heading):
    """The blocks that src/blocks/choose.rs keeps."""
    rules = stage == 0
    if page["size"].sum() < FEW_WORDS or len(likely) < FEW_BLOCKS:
        return rules
    order = np.argsort(-likely, kind="stable")
    size = page["size"][order]
    found, kept = np.cumsum(likely[order] * size), np.cumsum(size)
    measure = (1 + RECALL**2) * found / (kept + RECALL**2 * found[-1] + 1e-9)
    bound = likely[order][int(np.argmax(measure))]
    out = np.where(rules, likely >= min(bound, SURELY_NOT), likely >= max(bound, LIKELY))
    first = np.flatnonzero(heading == 1)
    if len(first):
        out[first[0]] |= rules[first[0]]
    return out if out.any() else rules


def grow(pages):
    """A model of these pages. Each page counts as much as another, each of its words as well; a block that is in the
    truth in part counts on both sides."""
    useful = [p for p in pages if p["truth"].sum() > 20 and (p["label"] * p["size"]).sum() > 0.4 * p["truth"].sum()]
    facts = np.concatenate([p["facts"] for p in useful])
    label = np.concatenate([p["label"] for p in useful])
    weight = np.concatenate([p["size"] / max(1.0, p["size"].sum()) for p in useful]) * len(useful)
    both = np.concatenate([weight * label, weight * (1 - label)])
    held = both > 0
    rows = np.concatenate([facts, facts])[held]
    sides = np.concatenate([np.ones(len(label)), np.zeros(len(label))])[held]
    data = lightgbm.Dataset(rows, sides, weight=both[held])
    return lightgbm.train(SETTINGS, data, TREES)


def folds(pages, names):
    """Says how trees do on sites they were not grown on."""
    stage, heading = names.index("stage"), names.index("is_head")
    number = [int(hashlib.sha256(("0" + p["site"]).encode()).hexdigest(), 16) % FOLDS for p in pages]
    rows = collections.defaultdict(list)
    for fold in range(FOLDS):
        model = grow([p for p, n in zip(pages, number) if n != fold])
        for page, n in zip(pages, number):
            if n != fold:
                continue
            facts = page["facts"]
            likely = model.predict(facts) if len(facts) else np.zeros(0)
            kept = choice(page, likely, facts[:, stage] if len(facts) else likely, facts[:, heading] if len(facts) else likely)
            pair = measures(page, facts[:, stage] == 0 if len(facts) else kept), measures(page, kept)
            for group in ("all", page["kind"], f"fold {fold}"):
                rows[group].append(pair)
    print(f"{'':16}  rules: P      R      F1     trees: P      R      F1")
    for group, pairs in sorted(rows.items()):
        before, after = np.mean([a for a, _ in pairs], axis=0), np.mean([b for _, b in pairs], axis=0)
        print(f"{group:16}     " + "  ".join(f"{100 * v:5.2f}" for v in before) + "         " + "  ".join(f"{100 * v:5.2f}" for v in after))


def line(node, names):
    """A tree, left first."""
    if "leaf_value" in node:
        return f"{node['leaf_value']:.4g}"
    # A bound that is no 32-bit number is rounded down, so that no fact moves to the other side.
    bound = np.float32(node["threshold"])
    if float(bound) > node["threshold"]:
        bound = np.nextafter(bound, np.float32(-np.inf))
    sides = " ".join(line(node[side], names) for side in ("left_child", "right_child"))
    return f"{names[node['split_feature']]}<{bound!s} {sides}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpus", type=pathlib.Path)
    arguments.add_argument("program")
    arguments.add_argument("--folds", action="store_true")
    arguments.add_argument("--out", type=pathlib.Path, default=OUT)
    given = arguments.parse_args()
    pages, names = read(given.corpus, given.program)
    if given.folds:
        folds(pages, names)
        return
    model = grow(pages)
    lines = [line(tree["tree_structure"], names) for tree in model.dump_model()["tree_info"]]
    head = "# Trees over the facts of a block, written by train/grow.py: a line a tree, left first."
    given.out.write_text("\n".join([head, *lines]) + "\n")
    print(f"{len(lines)} trees, {given.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
