// The page: what is chosen, the runs of the model, the address, and the start.
"use strict";

let model; // what openModel returns
let shown; // the text that the page shows, and the model's results for it
let lastPass = 0, lastWork = 1; // milliseconds of the last run, and its size
const state = { text: "", pair: "", layer: 0, head: 0, query: 0, key: 0,
  rowFrom: 0, columnFrom: 0, picked: [], off: new Set(), hidden: new Set(), temperature: 1 };

const isChanged = () => state.off.size > 0 || state.hidden.size > 0 || state.temperature !== 1;

// -------------------------------------------------------------------- running

function run() {
  let found;
  try {
    found = encodeText();
  } catch (error) {
    if (!(error instanceof BertError)) throw error;
    return tell(error.message); // and the last picture stays
  }
  clearTimeout(run.timer);
  const guess = lastPass / lastWork * workOf(found);
  if (guess < 500) return compute(found);
  tell(`Computing, about ${Math.ceil(guess / 1000)} s …`);
  run.timer = setTimeout(() => compute(found), 40); // so that this is seen
}

const workOf = ({ tokens }) => tokens.length * model.count;

function compute(found) {
  tell("");
  if (shown) followTokens(shown.tokens, found.tokens);
  const start = performance.now(), everything = found.inputIds.map(() => 1);
  const pass = (mask, changes) =>
    bert(found.inputIds, found.segmentIds, mask, model.params, model.config, changes);
  const plain = pass(everything, NO_CHANGES);
  const result = isChanged()
    ? pass(everything.map((_, i) => state.hidden.has(i) ? 0 : 1), state) : plain;
  [lastPass, lastWork] = [performance.now() - start, workOf(found)];
  shown = { ...found, plain, result };
  const { num_hidden_layers: L, num_attention_heads: A } = model.config;
  for (const [name, count] of Object.entries(
    { layer: L, head: A, query: found.tokens.length, key: found.tokens.length }))
    state[name] = clamp(state[name], 0, count - 1);
  state.picked = state.picked.filter(([layer, head]) => layer < L && head < A);
  draw();
}

function encodeText() {
  for (const name of ["text", "pair"]) { // half of a surrogate pair is no character
    const found = state[name].match(/\p{Cs}/u);
    if (found) throw new BertError(`${name}[${found.index}] is a lone surrogate and no `
      + "character; type the text again");
  }
  if (!state.text.trim()) throw new BertError("Type a sentence.");
  const found = encode(state.text, state.pair.trim() ? state.pair : "", model.tokenizer);
  const length = found.tokens.length, limit = model.config.max_position_embeddings;
  if (length > limit)
    throw new BertError(`The text has ${length} tokens, allowed: at most ${limit}.`);
  if (state.pair.trim() && model.config.type_vocab_size < 2)
    throw new BertError("This model has only one segment, so it cannot take a pair.");
  return found;
}

function tell(text) {
  find("message").textContent = text;
  find("message").hidden = !text;
}

// Keep the chosen and hidden tokens where the text around them changes.
function followTokens(old, tokens) {
  let start = 0, end = 0;
  const most = Math.min(old.length, tokens.length);
  while (start < most && old[start] === tokens[start]) start++;
  while (end < most - start && old.at(-1 - end) === tokens.at(-1 - end)) end++;
  const moved = (i) => i >= old.length - end ? i + tokens.length - old.length : i;
  for (const name of ["query", "key"]) state[name] = moved(state[name]);
  state.hidden = new Set(Array.from(state.hidden, moved).filter((i) => i < tokens.length));
}

function runSoon() {
  clearTimeout(runSoon.timer);
  runSoon.timer = setTimeout(run, lastPass > 60 ? 200 : 0); // until typing pauses
}

// -------------------------------------------------------------------- drawing

function draw() { // after each run
  slideToChosen();
  drawTokens();
  drawThumbs();
  buildMap();
  drawGuesses();
  drawStates();
  drawChoice();
}

function drawChoice() { // what depends on the chosen cell
  markThumb();
  markTokens();
  drawNumbers();
  drawChanges();
  saveSoon();
}

function choose(choice) {
  Object.assign(state, choice);
  const { rowFrom, columnFrom } = state;
  slideToChosen();
  if (rowFrom !== state.rowFrom || columnFrom !== state.columnFrom) buildMap();
  else drawMap();
  drawChoice();
}

function drawTokens() {
  const box = find("tokens");
  box.replaceChildren();
  shown.tokens.forEach((token, query) => {
    const chip = make("button", box, { type: "button",
      className: shown.segmentIds[query] ? "token second" : "token",
      title: `position ${query}, id ${shown.inputIds[query]}` });
    chip.append(tokenText(token));
    chip.addEventListener("click", () => choose({ query }));
  });
}

function markTokens() {
  find("tokens").childNodes.forEach((chip, i) => {
    chip.setAttribute("aria-pressed", i === state.query);
    chip.classList.toggle("seen", i === state.key);
    chip.classList.toggle("hatched", state.hidden.has(i));
  });
  find("strips").querySelectorAll(".names > :not(.stage)").forEach((name, i) =>
    name.classList.toggle("on", i === state.query));
}

function drawChanges() {
  const { layer, head, key, temperature } = state;
  find("off").checked = state.off.has(`${layer}.${head}`);
  find("offText").textContent = `switch head (${layer}, ${head}) off`;
  find("hide").checked = state.hidden.has(key);
  find("hideText").replaceChildren("hide the key ", coloured(key, "key"), " from all heads");
  find("temperature").value = Math.log10(temperature);
  find("temperatureText").textContent = temperature.toFixed(2);
  find("undo").disabled = !isChanged();
}

// ------------------------------------------------------------------- controls

function startControls() {
  for (const name of ["text", "pair"])
    find(name).addEventListener("input", () => {
      state[name] = find(name).value;
      fitHeight(find(name));
      showHint("");
      runSoon();
    });
  find("mask").addEventListener("click", insertMask);
  const toggle = (set, item) => set.delete(item) || set.add(item);
  find("off").addEventListener("change", () => {
    toggle(state.off, `${state.layer}.${state.head}`);
    run();
  });
  find("hide").addEventListener("change", () => {
    toggle(state.hidden, state.key);
    run();
  });
  find("temperature").addEventListener("input", () => {
    state.temperature = 10 ** Number(find("temperature").value);
    runSoon();
  });
  find("undo").addEventListener("click", () => {
    Object.assign(state, { off: new Set(), hidden: new Set(), temperature: 1 });
    run();
  });
  addEventListener("resize", () => {
    for (const name of ["text", "pair"]) fitHeight(find(name));
    if (!shown) return;
    buildMap();
    drawNumbers();
  });
  addEventListener("hashchange", () => { if (readAddress()) run(); });
}

function insertMask() { // in place of the selected words, or at the cursor
  const field = find("text"), { selectionStart: from, selectionEnd: to, value } = field;
  const chosen = value.slice(from, to), after = chosen.match(/\s*$/)[0];
  const before = from && !/\s$/.test(value.slice(0, from)) ? " " : "";
  const space = after || (/^\S/.test(value.slice(to)) ? " " : "");
  field.setRangeText(`${before}[MASK]${space}`, from, to, "end");
  field.dispatchEvent(new Event("input"));
  field.focus();
}

function fitHeight(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

function writeFields() {
  for (const name of ["text", "pair"]) {
    find(name).value = state[name];
    fitHeight(find(name));
  }
}

function showExamples() {
  const box = find("examples"), examples = model.examples ?? DATA.general;
  box.replaceChildren();
  if (examples.length) make("span", box, { className: "note", textContent: "Try:" });
  for (const example of examples)
    make("button", box, { type: "button", textContent: example.name, title: example.hint })
      .addEventListener("click", () => tryExample(example));
}

function tryExample({ name, hint, ...choice }) {
  start(choice);
  showHint(`${name[0].toUpperCase()}${name.slice(1)}: ${hint}`);
}

function showHint(text) {
  find("hint").textContent = text;
  find("hint").hidden = !text;
}

// Begin with a text and a cell, and without changes.
function start(choice) {
  Object.assign(state, { text: "", pair: "", layer: 0, head: 0, query: 0, key: 0, picked: [],
    off: new Set(), hidden: new Set(), temperature: 1 }, choice);
  shown = undefined; // the tokens of another text are not followed
  showHint("");
  writeFields();
  run();
}

// -------------------------------------------------------------------- address

function writeAddress() {
  const { text, pair, layer, head, query, key, temperature } = state;
  const items = { text, pair, layer, head, query, key,
    heads: state.picked.map((place) => place.join(".")).join(" "),
    off: [...state.off].join(" "), hide: [...state.hidden].join(" "),
    temperature: temperature === 1 ? "" : temperature.toFixed(3),
    model: model.isBuiltIn ? "" : model.name };
  const kept = Object.entries(items).filter(([, value]) => value !== "");
  return `#${new URLSearchParams(kept)}`;
}

function saveSoon() {
  clearTimeout(saveSoon.timer);
  saveSoon.timer = setTimeout(() => history.replaceState(null, "", writeAddress()), 300);
}

// Take the state from the address; false if it holds none.
function readAddress() {
  const items = new URLSearchParams(location.hash.slice(1));
  if (!items.has("text") || location.hash === writeAddress()) return false;
  const whole = (name) => clamp(Math.trunc(Number(items.get(name))) || 0, 0, 1e6);
  const list = (name, form) => (items.get(name) ?? "").split(" ").filter((x) => form.test(x));
  const warmth = Number(items.get("temperature"));
  Object.assign(state, { text: items.get("text"), pair: items.get("pair") ?? "",
    layer: whole("layer"), head: whole("head"), query: whole("query"), key: whole("key"),
    picked: list("heads", /^\d+\.\d+$/).slice(0, DATA.colours.heads.length)
      .map((place) => place.split(".").map(Number)),
    off: new Set(list("off", /^\d+\.\d+$/)),
    hidden: new Set(list("hide", /^\d+$/).map(Number)),
    temperature: warmth >= 0.1 && warmth <= 10 ? warmth : 1 });
  shown = undefined;
  writeFields();
  const wanted = items.get("model") ?? "";
  if (wanted !== (model.isBuiltIn ? "" : model.name))
    report(`This address was made with the model ${wanted || DATA.model.name}; `
      + `this page now runs ${model.name}.`);
  return true;
}

// ---------------------------------------------------------------------- start

function showModel() {
  const { config, name, count, tokenizer, params } = model, number = count.toLocaleString("en");
  const case_ = tokenizer.lowercase ? "uncased" : "cased";
  const heads = ["mlm", "nsp"].filter((head) => params[head]).map((n) => n.toUpperCase()).join(" and ");
  report(`Running: ${name}, ${case_}, ${config.num_hidden_layers} layers of `
    + `${config.num_attention_heads} attention heads, hidden size ${config.hidden_size}, `
    + `${number} parameters, ${heads ? `output heads: ${heads}` : "no MLM head"}.`);
  buildThumbs();
  showExamples();
}

async function begin() {
  startThumbs();
  startMap();
  startControls();
  startOpening();
  await openBuiltIn();
}

begin();
