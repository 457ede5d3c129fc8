"""What the live page computes, as arrays, beside what the library computes."""

import base64
import json

import numpy as np

from bert_np import bert, masked_lm_logits, next_sentence_logits

# Runs the functions of the page on one text; arrays travel as base64.
RUN = """((text, pair, mask, temperature, off) => {
  const pack = (array) => {
    const bytes = new Uint8Array(Float32Array.from(array).buffer);
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192)
      text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return btoa(text);
  };
  const found = encode(text, pair, model.tokenizer), { params, config } = model;
  mask = mask ?? found.inputIds.map(() => 1);
  const changes = { temperature, off: new Set(off) };
  const { hidden, layers, pooled } =
    bert(found.inputIds, found.segmentIds, mask, params, config, changes);
  return { ids: found.inputIds, segments: found.segmentIds,
    hidden: hidden.map(pack), maps: layers.map(({ probs }) => pack(probs)),
    pooled: pooled && pack(pooled),
    mlm: params.mlm && pack(maskedLmLogits(hidden.at(-1), params, config)),
    nsp: params.nsp && pack(nextSentenceLogits(pooled, params)) };
})"""


def page_results(browser, text, pair="", mask=None, temperature=1, off=()):
    """The page's (ids, segment ids, {name: flat array}) for one text."""
    given = (text, pair, mask, temperature, list(off))
    found = browser.run(f"{RUN}({', '.join(map(json.dumps, given))})")
    unpack = lambda text: np.frombuffer(base64.b64decode(text), np.float32)  # noqa: E731
    arrays = {name: found[name] for name in ("pooled", "mlm", "nsp") if found.get(name)}
    for name in ("hidden", "maps"):
        arrays |= {f"{name}_{i}": text for i, text in enumerate(found[name])}
    return found["ids"], found["segments"], {n: unpack(a) for n, a in arrays.items()}


def library_results(model, ids, segments, mask=None):
    """What bert_np computes, under the same names."""
    params, config, _ = model
    trace, mask = {}, np.ones_like(ids) if mask is None else np.array(mask)
    out = bert(
        np.array([ids]),
        params,
        config,
        segment_ids=np.array([segments]),
        attention_mask=mask[None],
        trace=trace,
    )
    hidden = [trace["embeddings"]["output"], *(x["output"] for x in trace["layers"])]
    found = {f"hidden_{i}": x for i, x in enumerate(hidden)}
    found |= {f"maps_{i}": probs for i, probs in enumerate(out["attention_probs"])}
    if "pooler" in params:
        found["pooled"] = out["pooler_output"]
    if "mlm" in params:
        found["mlm"] = masked_lm_logits(hidden[-1], params, config)
    if "nsp" in params:
        found["nsp"] = next_sentence_logits(out["pooler_output"], params)
    return {name: array.ravel() for name, array in found.items()}


LIMITS = {"maps": 2e-6, "hidden": 2e-5, "pooled": 2e-5, "mlm": 1e-4, "nsp": 1e-4}


def assert_close(found, expected):
    """Compare all results, each within the limit of its kind."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        limit = LIMITS[name.split("_")[0]]
        np.testing.assert_allclose(found[name], array, rtol=0, atol=limit, err_msg=name)


def open_folder(page, folder):
    """Open a model in the page; return what it reports once it has run."""
    page.run("shown = undefined; report('')")
    page.choose_files("#folder", [folder])
    page.wait("shown || document.querySelector('#report.error')")
    return page.run("document.getElementById('report').textContent")


def drop(page, paths):
    """Drop files or folders of the disk on the page, as a mouse would."""
    data = {
        "items": [],
        "files": [str(path) for path in paths],
        "dragOperationsMask": 1,
    }
    for kind in ("dragEnter", "dragOver", "drop"):
        page.send("Input.dispatchDragEvent", type=kind, x=300, y=300, data=data)
