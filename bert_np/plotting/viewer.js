// Starts one viewer inside `root`. Everything is local to this call, except that
// the choices are kept under the name `keep` for the viewer that replaces it.
function startViewer(root, data, keep) {
  const [layers, heads, rows, columns] = data.shape; // columns: of keys
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const values = decode(data.values); // [layer][head][query][key], p * 255
  const shares = new Uint16Array(decode(data.shares).buffer); // p * 65535
  const state = { layer: 0, head: 0, several: false, picked: [], special: data.special,
    from: { queries: 0, keys: 0 }, chosen: {}, hover: null };
  const memory = document.body.dataset; // of texts
  if (keep) Object.assign(state, JSON.parse(memory[keep] ?? "{}"));
  if (!(state.special in data.choices)) state.special = data.special;

  // The page without script becomes a fold below the viewer.
  const still = document.createElement("details"), host = document.createElement("div");
  make("summary", still, { textContent: "The same data as a picture and a table" });
  still.append(...root.childNodes);
  root.append(host, still);
  still.style.margin = "10px 0";
  const shadow = host.attachShadow({ mode: "open" });
  host.dataset.lmSuppressShortcuts = "true"; // the arrow keys are ours in JupyterLab
  shadow.innerHTML = data.markup; // our own template; no token is in it
  const find = (selector) => shadow.querySelector(selector);

  // ---------------------------------------------------------------- numbers

  // A place is a layer and a head.
  const chosenPlace = () => [state.layer, state.head];
  const shownPlaces = () => state.several ? state.picked : [chosenPlace()];
  const rowOf = (query, [layer, head]) => (layer * heads + head) * rows + query;
  const isMasked = (query, key) => data.masked[query * columns + key] === "1";
  const weight = (query, key, place) => isUnknown(query, place) ? 0
    : Math.min(1, values[rowOf(query, place) * columns + key] / 255 / share(query, place));
  // Renormalising divides the rounding error, too. Where almost all of a row is
  // hidden, what is left of the rounded values says nothing.
  const share = (query, place) =>
    state.special === "renormalise" ? shares[rowOf(query, place)] / 65535 : 1;
  const isUnknown = (query, place) => share(query, place) < 0.02;
  const short = (query, key, place) =>
    isUnknown(query, place) ? "?" : weight(query, key, place).toFixed(2);
  const written = (query, key, place) => {
    const error = 1 / 510 / share(query, place);
    if (isUnknown(query, place))
      return `? (${(1 - share(query, place)).toFixed(2)} of its attention is hidden)`;
    const margin = error < 0.005 ? "" : ` \u00b1 ${error.toFixed(2)}`;
    return short(query, key, place) + margin + (isMasked(query, key) ? ", masked" : "");
  };
  const isGrey = (query, key, place) => isUnknown(query, place)
    || isMasked(query, key) && weight(query, key, place) === 0;
  const nameOf = ([layer, head]) => [["layer", data.layers, layer], ["head", data.heads, head]]
    .filter(([, numbers]) => numbers)
    .map(([name, numbers, i]) => `${name} ${numbers[i]}`).join(", ");

  // ------------------------------------------------------- the map and the lines

  // Their places in data.queries, data.keys: of all tokens, and of those that are shown.
  const all = {}, shown = {};
  const map = find(".map"), lines = find("svg"), firstPath = find("path");
  let cells = [], labels = {}, stops = [];

  const NAMES = { queries: "query", keys: "key" }, sides = Object.keys(NAMES);
  const described = (side) => shown[side].map((i, y) => ({ text: data[side][i],
    isBorder: y > 0 && data.sentences[side][i] !== data.sentences[side][shown[side][y - 1]] }));

  function build() { // anew for each choice of tokens and each part of a long text
    for (const side of sides) {
      all[side] = data[side].map((_, i) => i)
        .filter((i) => state.special === "show" || !data.ends.includes(data[side][i]));
      const slider = find(`.from-${side}`), { length } = all[side];
      slider.parentNode.hidden = length <= MOST_CELLS;
      slider.max = Math.max(0, length - MOST_CELLS);
      slider.value = state.from[side];
      const part = span(state.from[side], length);
      slider.setAttribute("aria-valuetext", `${part[0]} to ${part.at(-1)}`);
      shown[side] = part.map((i) => all[side][i]);
    }
    cells = buildGrid(map, described("queries"), described("keys"));
    buildLabels();
    fit();
    show();
  }

  function buildLabels() { // the tokens of the head view
    for (const side of sides) {
      find(`.${side}`).replaceChildren();
      labels[side] = described(side).map(({ text, isBorder }) => {
        const token = make("div", find(`.${side}`), { className: "token", tabIndex: -1,
          attributes: { role: "option" } });
        token.classList.toggle("below", isBorder);
        token.append(tokenText(text), document.createElement("b"));
        return token;
      });
    }
    const most = Math.max(shown.queries.length, shown.keys.length);
    lines.setAttribute("viewBox", `0 0 1 ${most}`);
    lines.style.setProperty("--rows", most);
  }

  // What an element of the map or of the head view stands for.
  function spotOf(target) {
    const cell = target.closest("td[role]"), token = target.closest(".token");
    if (cell) return { query: shown.queries[cell.parentNode.rowIndex - 1],
      key: shown.keys[cell.cellIndex - 1] };
    const [y, x] = sides.map((side) => labels[side].indexOf(token));
    if (y >= 0) return { query: shown.queries[y] };
    if (x >= 0) return { query: state.chosen.query, key: shown.keys[x] };
  }

  function listen(container) {
    container.addEventListener("pointerover", ({ target }) => {
      state.hover = spotOf(target) ?? null;
      mark();
    });
    for (const event of ["click", "focusin"])
      container.addEventListener(event, ({ target }) => {
        if (spotOf(target)) choose(spotOf(target));
      });
  }

  function choose(chosen) {
    Object.assign(state, { chosen, hover: null }); // the latest of pointer and keyboard counts
    mark();
  }

  function fit() { // as large as the page is wide, and within one screen
    const { width } = find(".views").getBoundingClientRect();
    const most = Math.max(shown.queries.length, shown.keys.length);
    const size = fitGrid(map, described("queries"), described("keys"),
      width - 10, Math.max(300, innerHeight - 150));
    find(".links").style.setProperty("--row", `${clamp(Math.min(size, 560 / most), 13, 36)}px`);
    const column = Math.min(300, find(".choices").clientWidth);
    find(".thumbs").style.maxWidth = `${clamp(Math.floor(column / (heads + 1)) - 3, 8, 48)
      * heads + 3 * heads + 20}px`;
  }

  function show() { // the chosen heads
    const places = shownPlaces(), isWritten = map.classList.contains("numbers");
    for (const name of ["layer", "head"]) {
      find(`.${name}`).value = state[name];
      find(`.${name}`).parentNode.querySelector("output").textContent = data[`${name}s`]?.[state[name]];
      find(`.${name}`).parentNode.hidden = state.several || (data[`${name}s`] ?? []).length < 2;
    }
    for (const part of [map, lines]) part.classList.toggle("bars", state.several);
    shown.queries.forEach((query, y) => shown.keys.forEach((key, x) => {
      const cell = cells[y][x];
      cell.classList.toggle("hatched", isMasked(query, key));
      cell.setAttribute("aria-label", places.map((place) => written(query, key, place)).join("; "));
      if (!state.several) return paintCell(cell, query, key, places[0], isWritten);
      cell.classList.remove("grey");
      paintBars(cell, places.map((place) => weight(query, key, place)), data.headColours);
    }));
    markThumbs(places);
    drawPicked(find(".picked"), state.several ? state.picked : [], data.headColours, nameOf, toggle);
    find(".state").textContent = [state.several ? "" : nameOf(chosenPlace()), ...data.remarks,
      data.notes[state.special]].filter(Boolean).join(" \u00b7 ");
    mark();
    const { layer, head, several, picked, special } = state;
    if (keep) memory[keep] = JSON.stringify({ layer, head, several, picked, special });
  }

  function paintCell(cell, query, key, place, isWritten) {
    const p = weight(query, key, place), isPlain = isGrey(query, key, place);
    cell.classList.toggle("grey", isPlain);
    cell.style.background = "";
    if (!isPlain) cell.style.backgroundColor = shades[step(p)];
    cell.style.color = isPlain || data.dark[step(p)] === "1" ? "black" : "white";
    cell.textContent = isWritten ? short(query, key, place) : "";
  }

  // As opaque as the attention is large, in steps of 1/32: one path for each step.
  function drawLines(query, key) {
    const isLeftOut = (i, j) => query !== undefined ? i !== query : key !== undefined && j !== key;
    const paths = shownPlaces().flatMap((place, head, { length }) => {
      const shift = 0.5 + (head - (length - 1) / 2) * 0.12, found = new Map();
      shown.queries.forEach((i, y) => shown.keys.forEach((j, x) => {
        const p = isLeftOut(i, j) ? 0 : Math.round(32 * weight(i, j, place)) / 32;
        if (!p) return;
        const name = i === query && j === key ? "pair" : "", line = `M0 ${y + shift}L1 ${x + shift}`;
        found.set(`${p} ${name}`, (found.get(`${p} ${name}`) ?? "") + line);
      }));
      return Array.from(found, ([drawn, d]) => drawPath(d, ...drawn.split(" "), head));
    });
    lines.replaceChildren(...paths);
  }

  function drawPath(d, opacity, name, head) {
    const path = firstPath.cloneNode();
    path.setAttribute("d", d);
    path.setAttribute("class", name);
    path.style.opacity = opacity;
    if (state.several) path.style.setProperty("--head", data.headColours[head]);
    return path;
  }

  // --------------------------------------------------------- the pointed-at tokens

  function mark() { // in both views and in words
    const { query, key } = state.hover ?? state.chosen;
    drawLines(query, key);
    for (const cell of map.querySelectorAll(".across, .down, .chosen"))
      cell.classList.remove("across", "down", "chosen");
    const y = shown.queries.indexOf(query), x = shown.keys.indexOf(key);
    if (y >= 0) for (const cell of cells[y]) cell.classList.add("across");
    if (x >= 0) for (const line of cells) line[x].classList.add("down");
    if (y >= 0 && x >= 0) {
      cells[y][x].classList.remove("across", "down");
      cells[y][x].classList.add("chosen");
    }
    const names = map.querySelectorAll("thead th");
    shown.queries.forEach((i, place) => {
      label(labels.queries[place], i === query, query === undefined && key !== undefined ? [i, key] : null);
      cells[place][0].parentNode.firstChild.classList.toggle("on", i === query);
    });
    shown.keys.forEach((j, place) => {
      label(labels.keys[place], j === key, query !== undefined ? [query, j] : null);
      names[place].classList.toggle("on", j === key);
    });
    markStops();
    find(".live").replaceChildren(...sentence(query, key));
  }

  function label(token, on, pair) { // a token of the head view and its weight
    const isOne = pair && !state.several;
    token.classList.toggle("on", on);
    token.style.setProperty("--weight", isOne ? `${100 * weight(...pair, chosenPlace())}%` : "0%");
    token.lastChild.textContent = isOne ? short(...pair, chosenPlace()) : "";
    token.setAttribute("aria-selected", on);
  }

  function markStops() { // one stop of the Tab key for each part
    const { query, key } = state.chosen;
    const y = Math.max(0, shown.queries.indexOf(query)), x = Math.max(0, shown.keys.indexOf(key));
    for (const element of stops) element.tabIndex = -1;
    stops = [cells[y][x], labels.queries[y], labels.keys[x]];
    for (const element of stops) element.tabIndex = 0;
  }

  const bold = (side, i) => tokenText(data[side][i]);

  function sentence(query, key) {
    const end = state.several || !nameOf(chosenPlace()) ? "" : ` (${nameOf(chosenPlace())})`;
    const each = (words) => shownPlaces().flatMap((place, i) =>
      [...state.several ? [i ? " \u00b7 " : "", colourDot(data.headColours[i]), `(${place.join(", ")}) `] : [], ...words(place)]);
    const strongest = (pairs, tokenOf) => each((place) => [...pairs]
      .sort((a, b) => weight(...b, place) - weight(...a, place)).slice(0, state.several ? 1 : 3)
      .flatMap((pair, rank) => [rank ? ", " : "", tokenOf(pair), `: ${written(...pair, place)}`]));
    if (query === undefined && key === undefined)
      return ["Point at a token or a cell, or use Tab and the arrow keys."];
    if (key === undefined)
      return [bold("queries", query), " attends most to ", ...strongest(
        all.keys.map((j) => [query, j]), ([, j]) => bold("keys", j)), end];
    if (query === undefined)
      return [bold("keys", key), " gets the most attention from ", ...strongest(
        all.queries.map((i) => [i, key]), ([i]) => bold("queries", i)), end];
    return [bold("queries", query), " attends to ", bold("keys", key), ": ",
      ...each((place) => [written(query, key, place)]), end];
  }

  // ------------------------------------------------------------ choosing heads

  let thumbs = [];
  const shades = palette(data.colours).map((colour) => `rgb(${colour})`);
  const pixels = packed([...palette(data.colours), ...palette(data.grey)]);

  function chooseHead(layer, head) {
    Object.assign(state, { layer, head });
    show();
  }

  function toggle(place) { // whether a head is one of several
    state.picked = togglePlace(state.picked, place, data.headColours);
    chooseHead(...state.picked.at(-1));
  }

  function buildThumbs() {
    const box = find(".thumbs");
    find(".chooser").hidden = find(".several").parentNode.hidden = layers * heads === 1;
    box.style.gridTemplateColumns = `auto repeat(${heads}, minmax(0, 1fr))`;
    make("span", box);
    for (let head = 0; head < heads; head++) make("span", box, { textContent: data.heads?.[head] ?? "" });
    thumbs = Array.from({ length: layers }, (_, layer) => {
      make("span", box, { className: "layer", textContent: data.layers?.[layer] ?? "" });
      return Array.from({ length: heads }, (_, head) => {
        const thumb = make("canvas", box, { title: nameOf([layer, head]),
          attributes: { "aria-label": nameOf([layer, head]) } });
        thumb.addEventListener("click", () =>
          state.several ? toggle([layer, head]) : chooseHead(layer, head));
        thumb.addEventListener("keydown", ({ key }) => { if (key === "Enter") thumb.click(); });
        return thumb;
      });
    });
  }

  function drawThumbs() {
    thumbs.forEach((line, layer) => line.forEach((thumb, head) => {
      const place = [layer, head], small = shrink((y, x) => {
        const query = all.queries[y], key = all.keys[x];
        return isGrey(query, key, place) ? -1 : weight(query, key, place);
      }, all.queries.length, all.keys.length, 48);
      paint(thumb, small.values, small.width, small.height, pixels, (p) => p < 0 ? 256 : step(p));
    }));
  }

  function markThumbs(places) {
    const [group, each] = state.several ? ["group", "checkbox"] : ["radiogroup", "radio"];
    find(".thumbs").setAttribute("role", group);
    thumbs.forEach((line, layer) => line.forEach((thumb, head) => {
      const i = places.findIndex((place) => place[0] === layer && place[1] === head);
      thumb.setAttribute("role", each);
      thumb.setAttribute("aria-checked", i >= 0);
      thumb.tabIndex = layer === state.layer && head === state.head ? 0 : -1;
      thumb.style.setProperty("--frame", state.several && i >= 0 ? data.headColours[i] : "");
    }));
  }

  // ------------------------------------------------------------------- start

  const redraw = () => { build(); drawThumbs(); };

  function startKeys() {
    onArrows(find(".thumbs"), (down, across) => {
      const [y, x] = thumbs.map((line) => line.indexOf(shadow.activeElement))
        .reduce((found, x, y) => x < 0 ? found : [y, x], chosenPlace());
      const place = [clamp(y + down, 0, layers - 1), clamp(x + across, 0, heads - 1)];
      if (!state.several) chooseHead(...place);
      thumbs[place[0]][place[1]].focus();
    });
    onArrows(map, (down, across) => {
      move({ queries: down, keys: across });
      map.querySelector(".chosen").focus();
    });
    const focus = (side) => labels[side][Math.max(0,
      shown[side].indexOf(state.chosen[NAMES[side]]))].focus();
    for (const side of sides)
      onArrows(find(`.${side}`), (down, across) => { // across: to the other column
        if (down) move({ [side]: down });
        focus(across < 0 ? "queries" : across > 0 ? "keys" : side);
      });
    for (const name of [".map", ".queries", ".keys"]) listen(find(name));
    shadow.addEventListener("keydown", ({ key }) => { if (key === "Escape") choose({}); });
    host.addEventListener("pointerleave", () => { state.hover = null; mark(); });
  }

  function move(by) { // the chosen tokens, and slide to them
    const chosen = { ...state.chosen }, from = { ...state.from };
    for (const side of Object.keys(by)) {
      const name = NAMES[side], { length } = all[side];
      const now = Math.max(0, all[side].indexOf(chosen[name]));
      const place = clamp(now + by[side], 0, length - 1);
      chosen[name] = all[side][place];
      state.from[side] = slideTo(from[side], place, length);
    }
    if (sides.some((side) => from[side] !== state.from[side])) build();
    choose(chosen);
  }

  find(".title").textContent = data.title;
  find(".thumbs").setAttribute("aria-label", "layer and head");
  sides.forEach((side, i) => {
    find(`.caption.${NAMES[side]}`).textContent = data.labels[i];
    find(`.${side}`).setAttribute("aria-label", data.labels[i]);
    find(`.from-${side}`).addEventListener("input", ({ target }) => {
      state.from[side] = Number(target.value);
      build();
    });
  });
  find(".rounding").textContent = data.rounding;
  find(".scale").textContent = data.scale;
  find(".bar").style.background = `linear-gradient(to right, ${
    Array.from({ length: 17 }, (_, i) => shades[step(i / 16)])})`;
  find(".swatches").hidden = !data.masked.includes("1");
  for (const [name, count] of [["layer", layers], ["head", heads]]) {
    find(`.${name}`).max = count - 1;
    find(`.${name}`).addEventListener("input", ({ target }) => {
      state[name] = Number(target.value);
      show();
    });
  }
  const special = find(".special");
  for (const [value, textContent] of Object.entries(data.choices))
    make("option", special, { value, textContent });
  special.parentNode.hidden = !special.options.length;
  special.value = state.special;
  special.addEventListener("change", () => {
    Object.assign(state, { special: special.value, chosen: {}, from: { queries: 0, keys: 0 } });
    redraw();
  });
  find(".several").checked = state.several;
  find(".several").addEventListener("change", ({ target }) => {
    Object.assign(state, { several: target.checked, picked: [chosenPlace()] });
    show();
  });
  buildThumbs();
  redraw();
  startKeys();
  new ResizeObserver(() => { fit(); show(); }).observe(host);
}
