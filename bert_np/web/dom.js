// The page's elements by their names, and its colours.
"use strict";

const find = (id) => document.getElementById(id);

const ATTENTION = palette(DATA.colours.attention), SIGNED = palette(DATA.colours.signed);

const attentionColour = (p) => `rgb(${ATTENTION[step(p)]})`;
const inkOn = (p) => DATA.colours.ink[step(p)] === "1" ? "#000" : "#fff";
const signedColour = (value, limit) => `rgb(${SIGNED[signedStep(value, limit)]})`;
const signedStep = (value, limit) => step(value / limit / 2 + 0.5);

const PIXELS = { attention: packed(ATTENTION), signed: packed(SIGNED),
  grey: packed(ATTENTION.map((_, i) => Array(3).fill(210 - 0.6 * i))) };
