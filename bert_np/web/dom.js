// Elements, colours and arrow keys: what all parts of the page use.
"use strict";

const find = (id) => document.getElementById(id);

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

function palette(hex) { // six digits for each of 256 steps -> [r, g, b] of each
  return Array.from({ length: hex.length / 6 }, (_, i) =>
    [0, 2, 4].map((at) => parseInt(hex.slice(6 * i + at, 6 * i + at + 2), 16)));
}

const ATTENTION = palette(DATA.colours.attention), SIGNED = palette(DATA.colours.signed);

const step = (share) => clamp(Math.round(255 * share), 0, 255);
const attentionColour = (p) => `rgb(${ATTENTION[step(p)]})`;
const inkOn = (p) => DATA.colours.ink[step(p)] === "1" ? "#000" : "#fff";
const signedColour = (value, limit) => `rgb(${SIGNED[step(value / limit / 2 + 0.5)]})`;

// A palette as one number for each colour, as the memory of a canvas has it.
const packed = (colours) => new Uint32Array(
  Uint8Array.from(colours.flatMap((colour) => [...colour, 255])).buffer);
const PIXELS = { attention: packed(ATTENTION), signed: packed(SIGNED),
  grey: packed(ATTENTION.map((_, i) => Array(3).fill(210 - 0.6 * i))) };

// Paint values of shape (height, width), one pixel each; shareOf gives 0 to 1.
function paint(canvas, values, width, height, pixels, shareOf = (p) => p) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
  const memory = new Uint32Array(image.data.buffer);
  for (let i = 0; i < memory.length; i++) memory[i] = pixels[step(shareOf(values[i]))];
  pen.putImageData(image, 0, 0);
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
    move(...by);
  });
}
