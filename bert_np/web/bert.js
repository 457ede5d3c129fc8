// BERT on one page: the functions of minimal.py, in its order and by its names.
//
// An array of shape (T, H) is one Float32Array, row after row, so that x[t, i]
// is x[t * H + i]. The batch has one text. W is kept as the file has it,
// (out, in): its row o is column o of minimal.py's W. What the page shows besides
// the results is returned too, and `changes` are what a reader may do to the
// model: switch heads off, and divide all scores by a temperature.
"use strict";

const NO_CHANGES = { temperature: 1, off: new Set() };

function bert(inputIds, segmentIds, attentionMask, params, config, changes = NO_CHANGES) {
  let x = embed(inputIds, segmentIds, params.embeddings, config);
  const hidden = [x], layers = [];
  params.layers.forEach((layer, number) => {
    const off = Array.from({ length: config.num_attention_heads },
      (_, head) => changes.off.has(`${number}.${head}`));
    const options = { attentionMask, config, off, temperature: changes.temperature };
    const [output, attention] = encoderLayer(x, layer, options);
    hidden.push(x = output);
    layers.push(attention);
  });
  const pooled = params.pooler
    && linear(x.subarray(0, config.hidden_size), params.pooler).map(Math.tanh);
  return { hidden, layers, pooled }; // hidden: L + 1 arrays (T, H)
}

function embed(inputIds, segmentIds, table, config) {
  const H = config.hidden_size, x = new Float32Array(inputIds.length * H);
  for (let t = 0; t < inputIds.length; t++)
    for (let i = 0; i < H; i++)
      x[t * H + i] = table.word[inputIds[t] * H + i] + table.position[t * H + i]
        + table.segment[segmentIds[t] * H + i];
  return layerNorm(x, table.norm, config);
}

function encoderLayer(x, layer, options) {
  const { config } = options, activation = ACTIVATIONS[config.hidden_act];
  const attention = selfAttention(x, layer.attention, options);
  x = layerNorm(add(x, attention.output), layer.attention_norm, config);
  const thought = linear(linear(x, layer.ffn.inner).map(activation), layer.ffn.outer);
  return [layerNorm(add(x, thought), layer.ffn_norm, config), attention];
}

function selfAttention(x, { query, key, value, output }, options) {
  const { attentionMask, config, off, temperature } = options;
  const H = config.hidden_size, A = config.num_attention_heads, D = H / A;
  const [q, k, v] = [query, key, value].map((params) => linear(x, params)); // (T, H)
  const T = x.length / H, probs = new Float32Array(A * T * T); // (A, Tq, Tk)
  const context = new Float32Array(T * H), scale = Math.sqrt(D) * temperature;
  for (let a = 0; a < A; a++)
    for (let i = 0; i < T; i++) {
      const row = probs.subarray((a * T + i) * T, (a * T + i + 1) * T);
      for (let j = 0; j < T; j++)
        row[j] = attentionMask[j]
          ? dot(q, i * H + a * D, k, j * H + a * D, D) / scale : CONSTANTS.hidden;
      softmax(row);
      for (let j = 0; j < T && !off[a]; j++)
        for (let d = a * D; d < (a + 1) * D; d++)
          context[i * H + d] += row[j] * v[j * H + d];
    }
  return { q, k, v, probs, context, output: linear(context, output) };
}

function linear(x, { W, b }) { // x W + b
  const O = b.length, I = W.length / O, T = x.length / I, y = new Float32Array(T * O);
  for (let o = 0; o < O; o++)
    for (let t = 0; t < T; t++) y[t * O + o] = dot(x, t * I, W, o * I, I) + b[o];
  return y;
}

// The sum of x[a + i] y[b + i] over n values, in four sums that run side by side.
function dot(x, a, y, b, n) {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0, i = 0;
  for (; i + 3 < n; i += 4) {
    s0 += x[a + i] * y[b + i];
    s1 += x[a + i + 1] * y[b + i + 1];
    s2 += x[a + i + 2] * y[b + i + 2];
    s3 += x[a + i + 3] * y[b + i + 3];
  }
  for (; i < n; i++) s0 += x[a + i] * y[b + i];
  return s0 + s1 + s2 + s3;
}

function add(x, y) {
  return x.map((value, i) => value + y[i]);
}

function softmax(row) { // in place
  let largest = -Infinity, total = 0;
  for (const score of row) largest = Math.max(largest, score);
  for (let j = 0; j < row.length; j++) total += row[j] = Math.exp(row[j] - largest);
  for (let j = 0; j < row.length; j++) row[j] /= total;
  return row;
}

function gelu(x) {
  return x * ((1 + erf(x / Math.SQRT2)) / 2);
}

function geluTanh(x) {
  const cubic = x * (1 + 0.044715 * x * x);
  return x * ((1 + Math.tanh(Math.sqrt(2 / Math.PI) * cubic)) / 2);
}

function relu(x) {
  return Math.max(x, 0);
}

const FORMULAS = { gelu, gelu_tanh: geluTanh, relu };
const ACTIVATIONS = Object.fromEntries( // the name in a config.json -> the function
  Object.entries(CONSTANTS.activations).map(([name, formula]) => [name, FORMULAS[formula]]));

function erf(x) { // tanh(x P(x²)), P by Horner's rule
  const P = CONSTANTS.erfCoefficients;
  let y = 0;
  for (let k = P.length - 1; k >= 0; k--) y = y * x * x + P[k];
  return Math.tanh(x * y);
}

function layerNorm(x, { gamma, beta }, config) {
  const H = gamma.length, y = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += H) {
    let mean = 0, variance = 0;
    for (let i = 0; i < H; i++) mean += x[at + i] / H;
    for (let i = 0; i < H; i++) variance += (x[at + i] - mean) ** 2 / H;
    const root = Math.sqrt(variance + config.layer_norm_eps);
    for (let i = 0; i < H; i++) y[at + i] = gamma[i] * (x[at + i] - mean) / root + beta[i];
  }
  return y;
}

// ------------------------------------------- the two heads, as in heads.py

function maskedLmLogits(hidden, { mlm, embeddings }, config) { // (T, H) -> (T, V)
  const transform = linear(hidden, mlm.transform).map(ACTIVATIONS[config.hidden_act]);
  const output = { W: mlm.decoder ?? embeddings.word, b: mlm.bias }; // mostly tied
  return linear(layerNorm(transform, mlm.norm, config), output);
}

function nextSentenceLogits(pooled, { nsp }) { // (H,) -> (2,)
  return linear(pooled, nsp);
}
