// All heads as small maps, and the chosen one large.
"use strict";

function mapOf(layer, head) { // (T, T) of one head
  const T = shown.tokens.length;
  return shown.result.layers[layer].probs.subarray(head * T * T, (head + 1) * T * T);
}

// Whether the second sentence begins at this position.
const isBorder = (i) => i > 0 && shown.segmentIds[i] !== shown.segmentIds[i - 1];

const chosenPlace = () => [state.layer, state.head];
const nameOf = ([layer, head]) => `layer ${layer}, head ${head}`;
const weightOf = (query, key, place = chosenPlace()) =>
  mapOf(...place)[query * shown.tokens.length + key];

// ------------------------------------------------------------------ all heads

function buildThumbs() { // anew for each model
  const { num_hidden_layers: L, num_attention_heads: A } = model.config, box = find("thumbs");
  box.replaceChildren();
  box.style.gridTemplateColumns = `auto repeat(${A}, minmax(0, 1fr))`;
  box.style.setProperty("--heads", A);
  document.body.style.setProperty("--overview", `${clamp(34 * A, 280, 410)}px`);
  make("span", box);
  for (let head = 0; head < A; head++) make("span", box, { textContent: head });
  for (let layer = 0; layer < L; layer++) {
    make("span", box, { textContent: layer, className: "layer" });
    for (let head = 0; head < A; head++) {
      const canvas = make("canvas", box, { id: `thumb-${layer}-${head}`, attributes: {
        role: "radio", "aria-label": `layer ${layer}, head ${head}` } });
      canvas.addEventListener("click", () => chooseThumb([layer, head]));
      canvas.addEventListener("keydown", ({ key }) => { if (key === "Enter") canvas.click(); });
    }
  }
}

const thumb = (layer, head) => find(`thumb-${layer}-${head}`);

function drawThumbs() {
  const { num_hidden_layers: L, num_attention_heads: A } = model.config;
  const T = shown.tokens.length;
  for (let layer = 0; layer < L; layer++)
    for (let head = 0; head < A; head++) {
      const values = mapOf(layer, head), isOff = state.off.has(`${layer}.${head}`);
      const small = shrink((y, x) => values[y * T + x], T, T, 72);
      paint(thumb(layer, head), small.values, small.width, small.height,
        isOff ? PIXELS.grey : PIXELS.attention);
      thumb(layer, head).setAttribute("aria-label",
        `layer ${layer}, head ${head}${isOff ? ", switched off" : ""}`);
    }
}

// With several heads at once, the numbers are those of the last that was chosen.
function chooseThumb(place) {
  if (state.picked.length) state.picked = togglePlace(state.picked, place, DATA.colours.heads);
  const [layer, head] = state.picked.at(-1) ?? place;
  choose({ layer, head });
}

function markThumb() {
  const places = state.picked.length ? state.picked : [chosenPlace()];
  const [group, each] = state.picked.length ? ["group", "checkbox"] : ["radiogroup", "radio"];
  find("thumbs").setAttribute("role", group);
  for (const canvas of find("thumbs").querySelectorAll("canvas")) {
    const i = places.findIndex((place) => canvas === thumb(...place));
    canvas.setAttribute("role", each);
    canvas.setAttribute("aria-checked", i >= 0);
    canvas.style.setProperty("--frame", state.picked.length ? DATA.colours.heads[i] ?? "" : "");
    canvas.tabIndex = canvas === thumb(state.layer, state.head) ? 0 : -1;
  }
  find("several").checked = state.picked.length > 0;
  drawPicked(find("picked"), state.picked, DATA.colours.heads, nameOf, chooseThumb);
}

function startThumbs() {
  onArrows(find("thumbs"), (down, across) => {
    const { num_hidden_layers: L, num_attention_heads: A } = model.config;
    const now = document.activeElement.id.split("-").slice(1).map(Number);
    const [layer, head] = [clamp(now[0] + down, 0, L - 1), clamp(now[1] + across, 0, A - 1)];
    if (!state.picked.length) choose({ layer, head });
    thumb(layer, head).focus();
  });
  find("several").addEventListener("change", () =>
    choose({ picked: find("several").checked ? [chosenPlace()] : [] }));
}

// ------------------------------------------------------------------- one head

let cells = []; // of the large map, as far as it is shown

const shownQueries = () => span(state.rowFrom, shown.tokens.length);
const shownKeys = () => span(state.columnFrom, shown.tokens.length);
const named = (places) => places.map((i) => ({ text: shown.tokens[i], isBorder: isBorder(i) }));

function buildMap() { // anew for each text and each window
  const queries = shownQueries(), keys = shownKeys(), T = shown.tokens.length;
  cells = buildGrid(find("map"), named(queries), named(keys));
  cells.forEach((line, y) => line.forEach((cell, x) => {
    cell.addEventListener("click", () => choose({ query: queries[y], key: keys[x] }));
    cell.addEventListener("pointerenter", () => say(queries[y], keys[x]));
  }));
  const top = find("mapBox").getBoundingClientRect().top + scrollY + 20;
  fitGrid(find("map"), named(queries), named(keys), find("mapBox").clientWidth - 6,
    Math.max(28 * T, innerHeight - top)); // within the first screen
  find("slides").hidden = T <= MOST_CELLS;
  for (const side of ["rowFrom", "columnFrom"]) {
    find(side).max = Math.max(0, T - MOST_CELLS);
    find(side).value = state[side];
  }
  drawMap();
}

function drawMap() {
  const queries = shownQueries(), keys = shownKeys(), { picked } = state;
  find("map").classList.toggle("bars", picked.length > 0);
  cells.forEach((line, y) => line.forEach((cell, x) => {
    cell.setAttribute("aria-label", sentence(queries[y], keys[x]));
    if (picked.length) return paintBars(cell,
      picked.map((place) => weightOf(queries[y], keys[x], place)), DATA.colours.heads);
    const p = weightOf(queries[y], keys[x]), isHidden = state.hidden.has(keys[x]);
    cell.style.background = isHidden && p === 0 ? DATA.colours.masked : attentionColour(p);
    cell.style.color = isHidden && p === 0 ? "#000" : inkOn(p);
    cell.classList.toggle("hatched", isHidden);
    cell.textContent = p < 0.005 ? "" : p.toFixed(2);
  }));
  markCell();
}

function markCell() {
  const queries = shownQueries(), keys = shownKeys();
  const rows = find("map").querySelectorAll("tbody tr");
  const names = find("map").querySelectorAll("thead th");
  names.forEach((name, x) => name.classList.toggle("on", keys[x] === state.key));
  cells.forEach((line, y) => {
    rows[y].firstChild.classList.toggle("on", queries[y] === state.query);
    line.forEach((cell, x) => {
      const isChosen = queries[y] === state.query && keys[x] === state.key;
      cell.classList.toggle("chosen", isChosen);
      cell.classList.toggle("across", queries[y] === state.query);
      cell.setAttribute("aria-selected", isChosen);
      cell.tabIndex = isChosen ? 0 : -1;
    });
  });
  if (!cells.flat().some((cell) => cell.tabIndex === 0)) cells[0][0].tabIndex = 0;
  const isOff = state.off.has(`${state.layer}.${state.head}`);
  find("place").textContent = state.picked.length > 1 ? `${state.picked.length} heads at once`
    : `Layer ${state.layer}, head ${state.head}${isOff ? " (switched off)" : ""}`;
  say(state.query, state.key);
}

const hiddenNote = (key) => state.hidden.has(key) ? ", hidden" : "";

function sentence(query, key) {
  const places = state.picked.length ? state.picked : [chosenPlace()];
  return `${shown.tokens[query]} attends to ${shown.tokens[key]}: ${places.map((place) =>
    weightOf(query, key, place).toFixed(3)).join("; ")}${hiddenNote(key)}`;
}

function say(query, key) {
  const [looking, seen] = [query, key].map((i) => tokenText(shown.tokens[i]));
  looking.className = "query";
  seen.className = "key";
  const values = state.picked.flatMap((place, i) => [i ? " · " : "",
    colourDot(DATA.colours.heads[i]), `(${place.join(", ")}) ${weightOf(query, key, place).toFixed(3)}`]);
  const one = `${weightOf(query, key).toFixed(3)}${hiddenNote(key)} (${nameOf(chosenPlace())})`;
  find("live").replaceChildren(looking, " attends to ", seen, ": ",
    ...values.length ? [...values, hiddenNote(key)] : [one]);
}

function slideToChosen() { // so that the chosen cell is in the window
  for (const [side, place] of [["rowFrom", state.query], ["columnFrom", state.key]])
    state[side] = slideTo(state[side], place, shown.tokens.length);
}

function startMap() {
  onArrows(find("map"), (down, across) => {
    const last = shown.tokens.length - 1;
    choose({ query: clamp(state.query + down, 0, last),
      key: clamp(state.key + across, 0, last) });
    find("map").querySelector(".chosen").focus();
  });
  find("map").addEventListener("pointerleave", () => say(state.query, state.key));
  for (const side of ["rowFrom", "columnFrom"])
    find(side).addEventListener("input", () => {
      state[side] = Number(find(side).value);
      buildMap();
    });
  find("bar").style.background =
    `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(attentionColour)})`;
}
