// Starts one viewer inside `root`. Everything is local to this call.
function startViewer(root, data) {
  "use strict";
  const [layers, heads, rows, columns] = data.shape; // columns: of keys
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const values = decode(data.values); // [layer][head][query][key], p * 255
  const shares = new Uint16Array(decode(data.shares).buffer); // p * 65535
  const state = { layer: 0, head: 0, special: data.special, chosen: {}, hover: null };

  // The page without script becomes a fold below the viewer.
  const still = document.createElement("details"), host = document.createElement("div");
  still.append(Object.assign(document.createElement("summary"), {
    textContent: "The same data without script" }), ...root.childNodes);
  root.append(host, still);
  still.style.margin = "10px 0";
  const shadow = host.attachShadow({ mode: "open" });
  host.dataset.lmSuppressShortcuts = "true"; // the arrow keys are ours in JupyterLab
  shadow.innerHTML = data.markup; // our own template; no token is in it
  const find = (selector) => shadow.querySelector(selector);

  const make = (kind, parent, className = "", text = "") => {
    const element = document.createElement(kind);
    Object.assign(element, { className, textContent: text });
    return parent.appendChild(element);
  };
  const bdi = (token) => // isolated, so that no script turns the text around it
    Object.assign(document.createElement("bdi"), { textContent: token });

  // ---------------------------------------------------------------- numbers

  const row = (layer, head, query) => (layer * heads + head) * rows + query;
  const isMasked = (query, key) => data.masked[query * columns + key] === "1";
  const weight = (query, key, layer = state.layer, head = state.head) => {
    const at = row(layer, head, query), value = values[at * columns + key] / 255;
    return isUnknown(query, layer, head) ? 0
      : Math.min(1, value / share(query, layer, head));
  };
  // Renormalising divides the rounding error, too. Where almost all of a row is
  // hidden, what is left of the rounded values says nothing.
  const share = (query, layer = state.layer, head = state.head) =>
    state.special === "renormalise" ? shares[row(layer, head, query)] / 65535 : 1;
  const isUnknown = (query, layer, head) => share(query, layer, head) < 0.02;
  const short = (query, key) => isUnknown(query) ? "?" : weight(query, key).toFixed(2);
  const written = (query, key) => {
    const error = 1 / 510 / share(query);
    if (isUnknown(query))
      return `? (${(1 - share(query)).toFixed(2)} of its attention is hidden)`;
    const margin = error < 0.005 ? "" : ` \u00b1 ${error.toFixed(2)}`;
    return short(query, key) + margin + (isMasked(query, key) ? ", masked" : "");
  };
  const shade = (value) => {
    const at = 6 * Math.round(255 * value);
    return "#" + data.colours.slice(at, at + 6);
  };
  const isGrey = (query, key, layer, head) => isUnknown(query, layer, head)
    || isMasked(query, key) && weight(query, key, layer, head) === 0;
  const paint = (query, key, layer, head) => isGrey(query, key, layer, head)
    ? data.grey : shade(weight(query, key, layer, head));
  const where = (layer = state.layer, head = state.head) =>
    [["layer", data.layers, layer], ["head", data.heads, head]]
      .filter(([, numbers]) => numbers)
      .map(([name, numbers, i]) => `${name} ${numbers[i]}`).join(", ");

  // ------------------------------------- elements that take focus and arrows

  const places = new WeakMap();
  const enrol = (grid, choose, spotOf, beside) =>
    grid.forEach((line, y) => line.forEach((element, x) => {
      element.tabIndex = x + y ? -1 : 0; // one stop of the Tab key for the grid
      places.set(element, { grid, beside, x, y, spot: spotOf(y, x), choose: () => {
        grid.flat().forEach((other) => { other.tabIndex = other === element ? 0 : -1; });
        choose(y, x);
      } });
    }));
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    Home: [0, -Infinity], End: [0, Infinity] };
  shadow.addEventListener("keydown", (event) => {
    const place = places.get(event.target), step = STEPS[event.key];
    if (event.key === "Escape") { state.chosen = {}; mark(); }
    if (!place || !step) return;
    event.preventDefault();
    event.stopPropagation(); // or the notebook moves to another cell
    const clamp = (i, count) => Math.max(0, Math.min(count - 1, i));
    const grid = step[1] && place.beside || place.grid; // across the head view
    const line = grid[clamp(place.y + step[0], grid.length)];
    line[clamp(place.x + step[1], line.length)].focus();
  });
  shadow.addEventListener("focusin", (event) => {
    state.hover = null; // the latest of pointer and keyboard counts
    places.get(event.target)?.choose();
  });
  shadow.addEventListener("pointerover", (event) => {
    const place = places.get(event.target.closest("[tabindex]"));
    state.hover = place?.spot ? place.spot() : null;
    mark();
  });
  host.addEventListener("pointerleave", () => { state.hover = null; mark(); });

  // ------------------------------------------------------------ the two views

  // Their places in data.queries, data.keys: of all tokens, and of those that are shown.
  let allQueries = [], allKeys = [], shownQueries = [], shownKeys = [];
  let cells = [], queries = [], keys = [], lines = [];
  const firstLine = find("svg line");

  function build() { // anew for each choice of tokens
    const kept = (tokens) => tokens.map((_, i) => i)
      .filter((i) => state.special === "show" || !data.ends.includes(tokens[i]));
    [allQueries, allKeys] = [kept(data.queries), kept(data.keys)];
    [shownQueries, shownKeys] = ["queries", "keys"].map((side, i) =>
      slide(side, [allQueries, allKeys][i]));
    const most = Math.max(shownQueries.length, shownKeys.length);
    const size = [[6, 46], [12, 36], [24, 24], [40, 17], [Infinity, 14]]
      .find(([count]) => most <= count)[1];
    const letters = Math.min(16, Math.round(size * 0.74)), style = find(".viewer").style;
    style.setProperty("--row", `${size}px`);
    style.setProperty("--letters", `${letters}px`);
    style.setProperty("--stroke", most <= 12 ? "4px" : most <= 24 ? "3px" : "1.5px");
    style.setProperty("--digits", most <= 6 ? "15px" : "12px");
    state.chosen = {};
    buildLinks(size, most * size);
    const longest = Math.max(...shownKeys.map((j) => [...data.keys[j]].length));
    buildMatrix(longest * letters * 0.62 > size);
    show();
  }

  function slide(side, all) { // the part of a long text that fits one screen
    const slider = find(`.from-${side}`), most = data.most;
    slider.max = Math.max(0, all.length - most);
    slider.parentNode.hidden = all.length <= most;
    const from = Number(slider.value);
    slider.setAttribute("aria-valuetext", `${from} to ${from + most - 1}`);
    return all.slice(from, from + most);
  }

  function buildLinks(size, height) {
    const column = (box, tokens) => tokens.map((text) => {
      const token = make("div", box, "token");
      token.setAttribute("role", "option");
      token.append(bdi(text));
      make("b", token);
      return token;
    });
    for (const name of [".queries", ".keys", "svg"]) find(name).replaceChildren();
    find("svg").style.height = `${height}px`;
    queries = column(find(".queries"), shownQueries.map((i) => data.queries[i]));
    keys = column(find(".keys"), shownKeys.map((j) => data.keys[j]));
    const grids = [queries.map((token) => [token]), keys.map((token) => [token])];
    const spots = [(y) => () => ({ query: shownQueries[y] }),
      (y) => () => ({ query: state.chosen.query, key: shownKeys[y] })];
    grids.forEach((grid, side) => enrol(grid, (y) => {
      state.chosen = spots[side](y)();
      mark();
    }, spots[side], grids[1 - side]));
    const middle = (y) => (y + 0.5) * size;
    lines = shownQueries.flatMap((query, y) => shownKeys.map((key, x) => {
      const line = find("svg").appendChild(firstLine.cloneNode());
      const ends = { x1: "0", y1: middle(y), x2: "100%", y2: middle(x) };
      for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
      return { line, query, key };
    }));
  }

  function buildMatrix(turned) {
    const head = find("thead"), body = find("tbody");
    head.replaceChildren();
    body.replaceChildren();
    head.classList.toggle("turned", turned);
    const names = make("tr", head);
    make("td", names);
    for (const j of shownKeys) make("th", names).append(bdi(data.keys[j]));
    cells = shownQueries.map((i) => {
      const line = make("tr", body);
      make("th", line).append(bdi(data.queries[i]));
      return shownKeys.map(() => {
        const cell = make("td", line);
        cell.setAttribute("role", "gridcell");
        return cell;
      });
    });
    const spot = (y, x) => () => ({ query: shownQueries[y], key: shownKeys[x] });
    enrol(cells, (y, x) => { state.chosen = spot(y, x)(); mark(); }, spot);
  }

  function show() { // the chosen layer and head
    find("select.layer").value = state.layer;
    find("select.head").value = state.head;
    shownQueries.forEach((query, y) => shownKeys.forEach((key, x) => {
      const cell = cells[y][x], isLight = data.dark[Math.round(255 * weight(query, key))] === "1";
      cell.classList.toggle("masked", isMasked(query, key));
      cell.style.backgroundColor = paint(query, key);
      cell.style.color = isGrey(query, key) || isLight ? "black" : "white";
      cell.textContent = Math.max(shownQueries.length, shownKeys.length) <= 12
        ? short(query, key) : "";
      cell.setAttribute("aria-label", written(query, key));
    }));
    for (const { line, query, key } of lines) line.style.opacity = weight(query, key);
    thumbs.flat().forEach((thumb, i) => {
      const chosen = i === state.layer * heads + state.head;
      thumb.setAttribute("aria-checked", chosen);
      thumb.tabIndex = chosen ? 0 : -1;
    });
    find(".state").textContent = [where(), ...data.remarks,
      data.notes[state.special]].filter(Boolean).join(" \u00b7 ");
    mark();
  }

  function mark() { // the chosen tokens, in both views and in words
    const { query, key } = state.hover ?? state.chosen;
    for (const old of shadow.querySelectorAll(".on, .pair, .row, .column"))
      old.classList.remove("on", "pair", "row", "column");
    find("svg").classList.toggle("some", query !== undefined || key !== undefined);
    for (const each of lines) {
      each.line.classList.toggle("on", each.query === query
        || query === undefined && each.key === key);
      each.line.classList.toggle("pair", each.query === query && each.key === key);
    }
    const [names, ...tableRows] = shadow.querySelectorAll("tr");
    shownQueries.forEach((i, y) => {
      label(queries[y], i === query, query === undefined && key !== undefined ? [i, key] : null);
      tableRows[y].firstChild.classList.toggle("on", i === query);
      if (key !== undefined) cells[y][shownKeys.indexOf(key)].classList.add("column");
    });
    shownKeys.forEach((j, x) => {
      label(keys[x], j === key, query !== undefined ? [query, j] : null);
      names.children[x + 1].classList.toggle("on", j === key);
      if (query !== undefined) cells[shownQueries.indexOf(query)][x].classList.add("row");
    });
    find(".live").replaceChildren(...sentence(query, key));
  }

  function label(token, on, pair) { // a token of the head view and its weight
    token.classList.toggle("on", on);
    token.style.setProperty("--weight", pair ? `${100 * weight(...pair)}%` : "0%");
    token.lastChild.textContent = pair ? short(...pair) : "";
    token.setAttribute("aria-selected", on);
  }

  function sentence(query, key) {
    const place = where() && ` (${where()})`;
    const [looking, seen] = [bdi(data.queries[query]), bdi(data.keys[key])];
    const strongest = (pairs, tokenOf) => pairs
      .sort((a, b) => weight(...b) - weight(...a)).slice(0, 3)
      .flatMap((pair, rank) => [rank ? ", " : "", bdi(tokenOf(pair)), `: ${written(...pair)}`]);
    if (query === undefined && key === undefined)
      return ["Point at a token or a cell, or use Tab and the arrow keys."];
    if (key === undefined)
      return [looking, " attends most to ", ...strongest(
        allKeys.map((j) => [query, j]), ([, j]) => data.keys[j]), place];
    if (query === undefined)
      return [seen, " gets most from ", ...strongest(
        allQueries.map((i) => [i, key]), ([i]) => data.queries[i]), place];
    return [looking, " attends to ", seen, `: ${written(query, key)}`, place];
  }

  // ------------------------------------------------- choosing layer and head

  const choose = (layer, head) => { Object.assign(state, { layer, head }); show(); };
  const thumbs = [];
  let thumbSize; // pixels

  function buildThumbs() {
    const box = find(".thumbs"), most = Math.max(layers, heads);
    thumbSize = most <= 4 ? 48 : most <= 8 ? 34 : most <= 12 ? 24 : 17;
    find(".chooser").hidden = layers * heads === 1;
    box.style.gridTemplateColumns = `auto repeat(${heads}, auto)`;
    box.style.setProperty("--thumb", `${thumbSize}px`);
    make("span", box);
    for (let head = 0; head < heads; head++) make("span", box, "", data.heads?.[head]);
    for (let layer = 0; layer < layers; layer++) {
      make("span", box, "layer", data.layers?.[layer]);
      thumbs.push(Array.from({ length: heads }, (_, head) => {
        const thumb = make("canvas", box);
        thumb.setAttribute("role", "radio");
        thumb.setAttribute("aria-label", thumb.title = where(layer, head));
        return thumb;
      }));
    }
    enrol(thumbs, choose, () => undefined);
  }

  function drawThumb(thumb, layer, head) {
    // Where a thumbnail has too few pixels, one shows the largest of some cells.
    const block = Math.ceil(Math.max(allQueries.length, allKeys.length) / thumbSize);
    const [height, width] = [allQueries, allKeys].map((all) => Math.ceil(all.length / block));
    Object.assign(thumb, { width, height });
    const pen = thumb.getContext("2d"), image = pen.createImageData(width, height);
    const largest = new Map();
    allQueries.forEach((query, y) => allKeys.forEach((key, x) => {
      const value = weight(query, key, layer, head);
      const at = 4 * (Math.floor(y / block) * width + Math.floor(x / block));
      if (value < largest.get(at)) return;
      largest.set(at, value);
      const colour = parseInt(paint(query, key, layer, head).slice(1), 16);
      image.data.set([colour >> 16, colour >> 8 & 255, colour & 255, 255], at);
    }));
    pen.putImageData(image, 0, 0);
  }

  const redraw = () => {
    build();
    thumbs.forEach((line, layer) => line.forEach((thumb, head) => drawThumb(thumb, layer, head)));
  };

  function fill(select, names, value, change) {
    for (const [i, name] of names) make("option", select, "", name).value = i;
    select.parentNode.hidden = names.length < 2;
    select.value = value;
    select.addEventListener("change", () => change(select.value));
  }

  // ------------------------------------------------------------------- start

  find(".title").textContent = data.title;
  find(".query").textContent = data.queryLabel;
  find(".key").textContent = data.keyLabel;
  find(".queries").setAttribute("aria-label", data.queryLabel);
  find(".keys").setAttribute("aria-label", data.keyLabel);
  find(".rounding").textContent = data.rounding;
  find(".scale").textContent = data.scale;
  find(".bar").style.background = `linear-gradient(to right, ${
    Array.from({ length: 17 }, (_, i) => shade(i / 16))})`;
  for (const part of shadow.querySelectorAll(".swatch"))
    part.hidden = !data.masked.includes("1");
  fill(find("select.layer"), Object.entries(data.layers ?? []), 0, (i) => choose(+i, state.head));
  fill(find("select.head"), Object.entries(data.heads ?? []), 0, (i) => choose(state.layer, +i));
  fill(find("select.special"), Object.entries(data.choices), state.special,
    (name) => { state.special = name; redraw(); });
  for (const side of ["queries", "keys"]) find(`.from-${side}`).addEventListener("input", build);
  buildThumbs();
  redraw();
}
