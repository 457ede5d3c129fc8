// Hidden states as strips: one line for each token, one picture for each stage.
"use strict";

const LINE = 18; // pixels of a token's strip

function drawStates() {
  const { hidden } = shown.result, H = model.config.hidden_size, T = shown.tokens.length;
  const limit = stateLimit(hidden), box = find("strips");
  find("statesNote").textContent = `One line for each token, one picture for each stage, ${H} `
    + "numbers across: blue below 0, white at 0, red above. The colours reach full "
    + `strength at ±${limit.toFixed(1)}, which 1 in 100 numbers exceeds.`;
  box.replaceChildren();
  const names = make("div", box, { className: "names" });
  make("div", names, { className: "stage" });
  shown.tokens.forEach((_, t) => {
    const name = make("div", names, { className: t === state.query ? "on" : "" });
    name.append(coloured(t, "query"));
  });
  hidden.forEach((x, stage) => {
    const part = make("div", box, { className: "strip" });
    make("div", part, { className: "stage", textContent: stageName(stage) });
    const canvas = make("canvas", part, { tabIndex: 0, attributes: { role: "img",
      "aria-label": `hidden states, ${stageName(stage)}; arrow keys read out the numbers` } });
    paint(canvas, x, H, T, PIXELS.signed, (value) => signedStep(value, limit));
    canvas.style.height = `${T * LINE}px`;
    listen(canvas, stage);
  });
}

const stageName = (stage) => stage ? `after layer ${stage - 1}` : "embeddings";

function stateLimit(hidden) { // the 99th percentile of all absolute values
  const sizes = Float32Array.from(hidden.flatMap((x) => Array.from(x, Math.abs))).sort();
  return Math.max(1e-6, sizes[Math.floor(0.99 * (sizes.length - 1))]);
}

function listen(canvas, stage) {
  const H = model.config.hidden_size, T = shown.tokens.length, at = { t: 0, i: 0 };
  const read = () => {
    const value = shown.result.hidden[stage][at.t * H + at.i];
    find("stateValue").replaceChildren(coloured(at.t, "query"),
      `, ${stageName(stage)}, dimension ${at.i}: ${value.toFixed(3)}`);
  };
  canvas.addEventListener("pointermove", (event) => {
    const { width, height } = canvas.getBoundingClientRect();
    at.t = clamp(Math.floor(event.offsetY / height * T), 0, T - 1);
    at.i = clamp(Math.floor(event.offsetX / width * H), 0, H - 1);
    read();
  });
  canvas.addEventListener("focus", read);
  onArrows(canvas, (down, across) => {
    at.t = clamp(at.t + down, 0, T - 1);
    at.i = clamp(at.i + across, 0, H - 1);
    read();
  });
}
