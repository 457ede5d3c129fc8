// What the pages share: elements, tokens, colours, arrow keys, a map as a table.
"use strict";

function make(kind, parent, options = {}) {
  const { attributes = {}, ...properties } = options;
  const element = Object.assign(document.createElement(kind), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return parent.appendChild(element);
}

// A token as text that no script of another direction turns around.
function tokenText(token) {
  return Object.assign(document.createElement("bdi"), { textContent: token });
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

// ------------------------------------------------------------------- colours

function palette(hex) { // six digits for each colour -> [r, g, b] of each
  return Array.from({ length: hex.length / 6 }, (_, i) =>
    [0, 2, 4].map((at) => parseInt(hex.slice(6 * i + at, 6 * i + at + 2), 16)));
}

// A palette as one number for each colour, as the memory of a canvas has it.
function packed(colours) {
  return new Uint32Array(Uint8Array.from(colours.flatMap((colour) => [...colour, 255])).buffer);
}

function step(share) { // the place of a share, 0 to 1, among 256 colours
  return clamp(Math.round(255 * share), 0, 255);
}

// Paint values of shape (height, width), one pixel each.
function paint(canvas, values, width, height, pixels, placeOf = step) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
  const memory = new Uint32Array(image.data.buffer);
  for (let i = 0; i < memory.length; i++) memory[i] = pixels[placeOf(values[i])];
  pen.putImageData(image, 0, 0);
}

// A map of at most `most` rows and columns: each value is the largest of a block.
function shrink(valueOf, rows, columns, most) {
  const block = Math.ceil(Math.max(rows, columns) / most);
  const [height, width] = [rows, columns].map((count) => Math.ceil(count / block));
  const values = new Float32Array(height * width).fill(-1);
  for (let y = 0; y < rows; y++)
    for (let x = 0; x < columns; x++) {
      const at = Math.floor(y / block) * width + Math.floor(x / block);
      values[at] = Math.max(values[at], valueOf(y, x));
    }
  return { values, width, height };
}

// ------------------------------------------------------------------ keyboard

const STEPS = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  Home: [0, -Infinity], End: [0, Infinity],
};

// Within `container` an arrow key calls move(rows, columns); one Tab stop leads there.
function onArrows(container, move) {
  container.addEventListener("keydown", (event) => {
    const by = STEPS[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // or a notebook moves to another cell
    move(...by);
  });
}

// ----------------------------------------------------------- a map as a table

// The part of a long text that the map shows: at most 40 positions.
const MOST_CELLS = 40;

function span(from, total) {
  const count = Math.min(total, MOST_CELLS), first = clamp(from, 0, total - count);
  return Array.from({ length: count }, (_, i) => first + i);
}

// Slide the part as little as needed to show a position.
function slideTo(from, place, total) {
  return clamp(clamp(from, place - MOST_CELLS + 1, place), 0, Math.max(0, total - MOST_CELLS));
}

// Build an empty map and return its cells. `queries` and `keys` are lists of
// { text, isBorder }; a border stands where the second sentence begins.
function buildGrid(table, queries, keys) {
  const head = make("tr", make("thead", document.createElement("table")));
  const body = document.createElement("tbody");
  make("td", head);
  for (const { text, isBorder } of keys) {
    const name = make("th", head, { className: "key", scope: "col" });
    name.classList.toggle("beside", isBorder);
    name.append(tokenText(text));
  }
  const cells = queries.map((query) => {
    const row = make("tr", body), name = make("th", row, { className: "query", scope: "row" });
    name.append(tokenText(query.text));
    name.classList.toggle("below", query.isBorder);
    return keys.map((key) => {
      const cell = make("td", row, { tabIndex: -1, attributes: { role: "gridcell" } });
      cell.classList.toggle("below", query.isBorder);
      cell.classList.toggle("beside", key.isBorder);
      return cell;
    });
  });
  table.replaceChildren(head.parentNode, body);
  return cells;
}

// Make the cells as large as they may be in a box of this size.
function fitGrid(table, queries, keys, width, height) {
  const longest = (names) => Math.min(16, Math.max(...names.map(({ text }) => [...text].length)));
  const sizeFor = (letters, labels) => clamp(Math.floor(Math.min(
    (width - 0.62 * letters * longest(queries) - 14) / keys.length,
    (height - labels) / queries.length)), 10, 42);
  let size = sizeFor(16, 28), letters = clamp(Math.round(size * 0.5), 10, 16);
  const isTurned = longest(keys) * letters * 0.6 > size;
  if (isTurned) size = sizeFor(letters, 0.62 * letters * longest(keys) + 10);
  letters = clamp(Math.round(size * 0.5), 10, 16);
  table.style.setProperty("--cell", `${size}px`);
  table.style.setProperty("--letters", `${letters}px`);
  table.classList.toggle("turned", isTurned);
  table.classList.toggle("numbers", size >= 27);
  return size;
}

// ------------------------------------------------------------ several heads at once

// A place is a layer and a head. Add one to a list of places, or take it out;
// the list keeps at least one and at most as many as there are colours.
function togglePlace(places, place, colours) {
  const others = places.filter((other) => String(other) !== String(place));
  const found = others.length === places.length ? [...others, place] : others;
  return found.length && found.length <= colours.length ? found : places;
}

// One bar for each head, side by side, as high as its attention.
function paintBars(cell, weights, colours) {
  const width = 100 / weights.length, last = Math.max(1, weights.length - 1);
  cell.textContent = "";
  cell.style.background = weights.map((p, i) => `linear-gradient(${colours[i]} 0 0) ${
    100 * i / last}% 100% / ${width}% ${100 * p}% no-repeat`).join(", ");
}

function colourDot(colour) {
  const dot = Object.assign(document.createElement("span"), { className: "dot" });
  dot.style.background = colour;
  return dot;
}

// The heads that are shown, each as a button that takes it out.
function drawPicked(box, places, colours, nameOf, takeOut) {
  box.hidden = !places.length;
  box.replaceChildren();
  places.forEach((place, i) => {
    const chip = make("button", box, { type: "button", title: "remove this head" });
    chip.append(colourDot(colours[i]), nameOf(place));
    chip.addEventListener("click", () => takeOut(place));
  });
  make("div", box, { className: "caption", textContent: `Choose up to ${colours.length} `
    + "thumbnails. The bars in a cell stand in this order, each as high as the attention." });
}
