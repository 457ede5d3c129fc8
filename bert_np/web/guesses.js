// What the model believes: words for each [MASK], and whether the pair belongs together.
"use strict";

const TOP = 6; // words for each [MASK]

function drawGuesses() {
  const box = find("guesses"), { mlm, nsp } = model.params;
  const places = shown.tokens.flatMap((token, i) => token === "[MASK]" ? [i] : []);
  box.replaceChildren();
  const note = (text) => make("p", box, { className: "note", textContent: text });
  if (!mlm) note("This model has no MLM head, so it makes no guesses.");
  else if (!places.length)
    note("Nothing to guess. Select a word of the sentence and press “insert [MASK]”.");
  else places.forEach((place) => drawWords(box, place, places.length > 1));
  if (nsp && shown.result.pooled && shown.segmentIds.includes(1)) drawPair(box);
  if (isChanged()) note(changeInWords());
  else if (mlm && places.length) note("Change the model below and watch the bars.");
  clearTimeout(drawGuesses.timer);
  drawGuesses.timer = setTimeout(() => {
    find("spoken").textContent = Array.from(box.querySelectorAll("ol"),
      (list) => list.getAttribute("aria-label")).join("; ");
  }, 800);
}

// Probabilities of all words of the vocabulary at one position.
function wordProbs({ hidden }, place) {
  const H = model.config.hidden_size, x = hidden.at(-1).subarray(place * H, (place + 1) * H);
  const logits = maskedLmLogits(x, model.params, model.config);
  return softmax(logits.slice(0, model.tokenizer.tokens.length));
}

function drawWords(box, place, isNumbered) {
  const probs = wordProbs(shown.result, place), before = wordProbs(shown.plain, place);
  const order = (p) => Array.from(p.keys()).sort((a, b) => p[b] - p[a]);
  const best = order(probs).slice(0, TOP), first = order(before)[0];
  if (!best.includes(first)) best.push(first); // what it was without the changes
  if (isNumbered) make("p", box, { className: "which",
    textContent: `[MASK] at position ${place}` });
  const list = make("ol", box, { className: "bars" });
  for (const id of best)
    drawBar(list, model.tokenizer.tokens[id], probs[id], before[id]);
  list.setAttribute("aria-label", `[MASK] at position ${place}: ${best.slice(0, 3)
    .map((id) => `${model.tokenizer.tokens[id]} ${probs[id].toFixed(2)}`).join(", ")}`);
}

function drawBar(list, word, p, before) {
  const item = make("li", list), isMoved = isChanged() && Math.abs(p - before) >= 0.005;
  make("span", item, { className: "word" }).append(tokenText(word));
  const bar = make("span", item, { className: "track", attributes: { "aria-hidden": true } });
  make("span", bar, { className: "fill" }).style.width = `${100 * p}%`;
  if (isMoved) make("span", bar, { className: "was" }).style.left = `${100 * before}%`;
  make("span", item, { className: "number",
    textContent: p.toFixed(3) + (isMoved ? ` was ${before.toFixed(3)}` : "") });
}

function drawPair(box) {
  const follows = ({ pooled }) => softmax(nextSentenceLogits(pooled, model.params))[0];
  const [p, before] = [follows(shown.result), follows(shown.plain)];
  make("p", box, { className: "which", textContent: "Does the second sentence follow the first?" });
  const list = make("ol", box, { className: "bars",
    attributes: { "aria-label": `the second sentence follows: ${p.toFixed(2)}` } });
  drawBar(list, "follows", p, before);
  drawBar(list, "random", 1 - p, 1 - before);
}

// How far the changes turn the final vectors, for a model with or without guesses.
function changeInWords() {
  const [x, y] = [shown.plain, shown.result].map(({ hidden }) => hidden.at(-1));
  const H = model.config.hidden_size, T = shown.tokens.length;
  const cosines = shown.tokens.map((_, t) => dot(x, t * H, y, t * H, H)
    / Math.sqrt(dot(x, t * H, x, t * H, H) * dot(y, t * H, y, t * H, H)));
  const mean = cosines.reduce((sum, c) => sum + c, 0) / T;
  const least = cosines.indexOf(Math.min(...cosines));
  return "A line marks where each bar ended without the changes. Cosine of the final hidden "
    + `states with and without them: mean ${mean.toFixed(3)}, smallest `
    + `${cosines[least].toFixed(3)} at “${shown.tokens[least]}”.`;
}
