// The numbers behind one cell: the worked example of the course, on the real model.
"use strict";

function drawNumbers() {
  const { query: i, key: j } = state, T = shown.tokens.length, box = find("numbers");
  const D = model.config.hidden_size / model.config.num_attention_heads;
  const layer = shown.result.layers[state.layer], row = mapOf(state.layer, state.head)
    .subarray(i * T, (i + 1) * T);
  const vector = (name, t) => { // of this head: D numbers
    const at = (t * model.config.num_attention_heads + state.head) * D;
    return layer[name].subarray(at, at + D);
  };
  const scores = shown.tokens.map((_, t) => dot(vector("q", i), 0, vector("k", t), 0, D)
    / Math.sqrt(D) / state.temperature);
  find("behindTitle").replaceChildren("Where the ", row[j].toFixed(3), " comes from: ",
    coloured(i, "query"), " looks at ", coloured(j, "key"));
  box.replaceChildren();
  drawProducts(box, vector("q", i), vector("k", j));
  drawScale(box, scores[j], D);
  drawSoftmax(box, scores, row);
  drawValue(box, vector("v", j), row[j], vector("context", i));
}

function coloured(position, className) {
  return Object.assign(tokenText(shown.tokens[position]), { className });
}

function stepBox(box, number, title, ...text) {
  const part = make("div", box, { className: "step" });
  make("h3", part, { textContent: `${number}. ${title}` });
  make("p", part).append(...text);
  return part;
}

function drawProducts(box, q, k) {
  const products = q.map((value, d) => value * k[d]), sum = dot(q, 0, k, 0, q.length);
  const part = stepBox(box, 1, "Multiply and add", "The query vector of ",
    coloured(state.query, "query"), " and the key vector of ", coloured(state.key, "key"),
    ` have D = ${q.length} numbers each in this head. Multiply them number by number.`);
  drawVectors(part, { "query q": q, "key k": k, "product": products });
  make("p", part, { className: "result" }).append(
    "Sum of the products, q · k = ", strong(signed(sum, 3)));
}

function drawScale(box, score, D) {
  const { temperature } = state, root = Math.sqrt(D);
  const raw = score * temperature * root, isWarm = temperature !== 1;
  const part = stepBox(box, 2, "Divide by √D", "The spread of a sum of D products grows like √D, ",
    `so the sum is divided by √${D} = ${root.toFixed(3)}`,
    isWarm ? `, and here by the temperature ${temperature.toFixed(2)} too.` : ".");
  make("p", part, { className: "result" }).append(
    `${signed(raw, 3)} / ${root.toFixed(3)}${isWarm ? ` / ${temperature.toFixed(2)}` : ""} = `,
    strong(signed(score, 3)), " is the score");
}

function drawSoftmax(box, scores, row) {
  const isSeen = (t) => !state.hidden.has(t), seen = scores.filter((_, t) => isSeen(t));
  const largest = Math.max(...seen.length ? seen : [0]);
  const part = stepBox(box, 3, "Softmax over the row", "Doing this for every key gives ",
    coloured(state.query, "query"), ` its row of scores. Subtract the largest, ${
      signed(largest, 3)}, take exp, and divide by the sum: the row sums to 1. A score `,
    "counts only against the other scores of its row.");
  const parts = scores.map((score, t) => isSeen(t) ? Math.exp(score - largest) : 0);
  const onMap = (p) => [attentionColour(p), inkOn(p)];
  const scroll = make("div", part, { className: "scroll" });
  if (scores.length > 40) scroll.tabIndex = 0; // so that arrow keys scroll it
  drawTable(scroll, shown.tokens.map((_, t) => coloured(t, "key")), {
    "score": { values: scores, text: (score, t) => isSeen(t) ? signed(score) : "hidden" },
    "exp": { values: parts, sum: true },
    "probability": { values: row, sum: true, paint: onMap },
  }, state.key);
}

function drawValue(box, v, p, context) {
  const isOff = state.off.has(`${state.layer}.${state.head}`);
  const part = stepBox(box, 4, "Move the value", coloured(state.key, "key"),
    ` hands over its value vector, weighted by ${p.toFixed(3)}. The sum over all keys is the `,
    "context of ", coloured(state.query, "query"), isOff
      ? "; this head is switched off, so its context is set to 0."
      : " in this head. The contexts of all heads, side by side, go through the output matrix "
        + "and are added to the hidden state.");
  drawVectors(part, { "value v": v, [`${p.toFixed(3)} × v`]: v.map((value) => p * value),
    "context": context });
}

// Vectors of one length, coloured by sign and size on a common scale.
function drawVectors(part, vectors) {
  const all = Object.values(vectors).flatMap((vector) => Array.from(vector, Math.abs));
  const limit = Math.max(1e-6, ...all), paint = (value) =>
    [signedColour(value, limit), Math.abs(value) > 0.6 * limit ? "#fff" : "#000"];
  const rows = Object.entries(vectors).map(([name, values]) => [name, { values, paint }]);
  drawTable(part, Array.from(Object.values(vectors)[0].keys()), Object.fromEntries(rows));
}

// Rows of numbers under common headings, cut so that no part is wider than the page.
function drawTable(part, headings, rows, chosen) {
  const room = Math.floor((find("numbers").clientWidth - 90) / 50);
  const count = clamp(room - 1, 4, 20), length = headings.length;
  for (let from = 0; from < length; from += count) {
    const places = headings.map((_, i) => i).slice(from, from + count);
    const table = make("table", part, { className: "vectors" }), head = make("tr", table);
    make("th", head);
    for (const i of places)
      make("th", head, { scope: "col", className: i === chosen ? "on" : "" }).append(headings[i]);
    for (const [name, row] of Object.entries(rows)) {
      const line = make("tr", table);
      make("th", line, { textContent: name, scope: "row" });
      places.forEach((i) => drawNumber(line, row, i, i === chosen));
      if (row.sum && from + count >= length) {
        const total = row.values.reduce((sum, value) => sum + value, 0);
        make("td", line, { className: "total", textContent: `Σ ${total.toFixed(2)}` });
      }
    }
  }
}

function drawNumber(line, { values, text = (value) => signed(value), paint }, i, isChosen) {
  const cell = make("td", line, { textContent: text(values[i], i),
    className: isChosen ? "on" : "" });
  if (paint) [cell.style.background, cell.style.color] = paint(values[i]);
}

const signed = (value, digits = 2) => // a minus sign, but none before 0.00
  value.toFixed(digits).replace(/^-(?=.*[1-9])/, "−").replace("-", "");

function strong(text) {
  return Object.assign(document.createElement("strong"), { textContent: text });
}
