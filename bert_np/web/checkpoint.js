// A model's files to its parameters, beside files/checkpoint.py: read, place, refuse.
//
// What this page cannot run is refused with the words of the library. The names of
// tensors, the fields of a config and their defaults come from Python (CONSTANTS).
"use strict";

class BertError extends Error {
  constructor(message) {
    const most = CONSTANTS.messageLimit, half = Math.floor((most - 5) / 2);
    super(message.length <= most ? message
      : `${message.slice(0, half)} ... ${message.slice(-half)}`);
  }
}

// ------------------------------------------------- values as Python writes them

function repr(value) {
  if (value === null || value === undefined) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (typeof value === "string") return value.includes("'") && !value.includes('"')
    ? `"${value}"` : `'${value.replace(/['\\]/g, "\\$&")}'`;
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value)
    .map(([key, inner]) => `${repr(key)}: ${repr(inner)}`).join(", ")}}`;
  return String(value);
}

function short(value, limit = 60) {
  const text = repr(value);
  return text.length <= limit ? text : `${text.slice(0, limit - 3)}...`;
}

function show(names) {
  const cut = names.slice(0, 5).map((n) => n.length <= 50 ? n : `${n.slice(0, 47)}...`);
  return cut.join(", ") + (names.length > 5 ? ", ..." : "");
}

// "; did you mean 'toy'?" for the nearest known name, or "": see errors.py.
function didYouMean(name, known, least = CONSTANTS.near) {
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const found = known.map((meant) => [similarity(plain(meant), plain(name)), meant])
    .sort(([a, x], [b, y]) => b - a || (plain(x) < plain(y) ? 1 : -1))[0];
  return found?.[0] >= least ? `; did you mean ${short(found[1])}?` : "";
}

const similarity = (a, b) => 2 * matching(a, b) / (a.length + b.length);

// As in Python's difflib: the longest common part, then the same on both sides of it.
function matching(a, b) {
  let most = 0, atA = 0, atB = 0;
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j < b.length; j++) {
      let n = 0;
      while (i + n < a.length && a[i + n] === b[j + n]) n++;
      if (n > most) [most, atA, atB] = [n, i, j];
    }
  return most && most + matching(a.slice(0, atA), b.slice(0, atB))
    + matching(a.slice(atA + most), b.slice(atB + most));
}

const beginsWith = (value, beginnings) => typeof value === "string"
  && beginnings.some((beginning) => value.startsWith(beginning));

const shapeText = (shape) =>
  `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

function refuse(name, value, allowed) {
  throw new BertError(`${name} = ${short(value)}, allowed: ${allowed}`);
}

// ------------------------------------------------------------------- the whole

// files: a Map from a file's name to an object with arrayBuffer(), such as a File.
async function openModel(files, name) {
  const values = await readJson(files, "config.json");
  const config = readConfig(values);
  refuseMisspelledFiles([...files.keys()]);
  const tokenizer = await readTokenizer(files, values);
  checkAgrees(tokenizer, config);
  const weights = await readWeights(files);
  const places = placeTensors(weights.header, config);
  const [params, count] = buildParams(weights, places);
  return { name, config, tokenizer, params, count };
}

function fileOf(files, name) {
  if (!files.has(name)) throw new BertError(`${name} is missing from the folder`);
  return files.get(name);
}

function refuseMisspelledFiles(names) {
  const absent = CONSTANTS.modelFiles.filter((name) => !names.includes(name));
  for (const name of names) {
    const isKnown = CONSTANTS.modelFiles.includes(name);
    const near = isKnown ? "" : didYouMean(name, absent, CONSTANTS.veryNear);
    if (near)
      throw new BertError(`${name} is no file of a model${near} Rename or remove it`);
  }
}

async function readText(files, name) {
  const bytes = new Uint8Array(await fileOf(files, name).arrayBuffer());
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw new BertError(`${name}: begins with a byte-order mark; save it without`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new BertError(`${name}: not UTF-8`);
  }
}

async function readJson(files, name) {
  return parseJson(await readText(files, name), name);
}

function parseJson(text, source) {
  try {
    const values = JSON.parse(text);
    refuseKeysGivenTwice(text, source);
    return values;
  } catch (error) {
    if (error instanceof BertError) throw error;
    throw new BertError(`${source}: not valid JSON (${error.message})`);
  }
}

function refuseKeysGivenTwice(text, source) { // of which JSON.parse keeps the last
  const open = []; // for each object that is not yet closed, a Set of its keys
  const parts = text.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}]/g);
  for (const [part, string, colon] of parts) {
    if (part === "{") open.push(new Set());
    if (part === "}") open.pop();
    if (!colon) continue;
    const key = JSON.parse(string), keys = open.at(-1);
    if (keys.has(key))
      throw new BertError(`${source}: the key ${repr(key.slice(0, 80))} appears twice`);
    keys.add(key);
  }
}

// ------------------------------------------------------------ config.json

function readConfig(values) {
  if (values === null || typeof values !== "object" || Array.isArray(values))
    refuse("config", values, "a JSON object");
  requireBert(values);
  refuseOtherArchitectures(values);
  requireSizes(values);
  const config = { ...CONSTANTS.defaults };
  for (const field of Object.keys(config))
    if (Object.hasOwn(values, field)) config[field] = values[field];
  checkConfig(config);
  return config;
}

function requireBert({ model_type = null, architectures }) {
  const names = Array.isArray(architectures) ? architectures : [architectures];
  const isOther = names.some((name) => beginsWith(name, CONSTANTS.otherClasses));
  if (model_type === "bert" && isOther)
    throw new BertError(`config model_type = 'bert', but architectures = ${short(names)}; `
      + "correct the wrong one");
  if (model_type !== null && model_type !== "bert")
    throw new BertError(`config model_type = ${short(model_type)}, allowed: 'bert'. `
      + whyNot(model_type));
  if (model_type === null && !beginsWith(names[0], ["Bert"]))
    throw new BertError("config has no model_type, and architectures = "
      + `${short(architectures)} does not begin with a Bert class; `
      + 'if it is a BERT, add "model_type": "bert"');
}

function whyNot(model_type) {
  return CONSTANTS.shiftedPositions.includes(model_type)
    ? "Its tensors fit BERT's, but positions start at padding_idx + 1."
    : "Its tensors may fit BERT's, but it computes something else.";
}

function refuseOtherArchitectures(values) {
  const isSet = (value) => value && typeof value === "object"
    ? Object.keys(value).length : value; // an empty list or object is false in Python
  for (const key of CONSTANTS.decoderKeys)
    if (isSet(values[key])) refuse(`config ${key}`, values[key], "false: BERT is an encoder");
  const kind = values.position_embedding_type ?? "absolute";
  if (kind !== "absolute") refuse("config position_embedding_type", kind, "'absolute'");
  for (const key of CONSTANTS.alteredKeys)
    if (isSet(values[key])) refuse(`config ${key}`, values[key], "none: an unaltered BERT");
  const { embedding_size: size = null, hidden_size = CONSTANTS.defaults.hidden_size } = values;
  if (size !== null && size !== hidden_size)
    refuse("config embedding_size", size, "the same as hidden_size");
}

// A misspelled key would leave a default where the file means something else.
function requireSizes(values) {
  const { configKeys, labelKeys, sizes } = CONSTANTS;
  const absent = configKeys.filter((key) => !Object.hasOwn(values, key));
  const meant = absent.filter((key) => !labelKeys.includes(key)); // old: _num_labels
  for (const key of Object.keys(values)) {
    const near = configKeys.includes(key) ? "" : didYouMean(key, meant);
    if (near) throw new BertError(`config has the key ${short(key)}${near}`);
  }
  const missing = sizes.filter((size) => size !== "type_vocab_size" && absent.includes(size));
  if (missing.length)
    throw new BertError(`config lacks ${missing.join(", ")}: a file must give each size`);
}

function checkConfig(config) {
  checkSizes(config);
  const { hidden_act, layer_norm_eps: eps, tie_word_embeddings: isTied } = config;
  const activations = Object.keys(CONSTANTS.activations);
  if (!activations.includes(hidden_act))
    refuse("hidden_act", hidden_act, `one of ${activations.join(", ")}`);
  if (typeof eps !== "number" || !(eps > 0 && eps < 1))
    refuse("layer_norm_eps", eps, "0 < eps < 1");
  if (typeof isTied !== "boolean") refuse("tie_word_embeddings", isTied, "True or False");
  const { pad_token_id: pad, vocab_size } = config;
  if (pad !== null && !(Number.isInteger(pad) && pad >= 0 && pad < vocab_size))
    refuse("pad_token_id", pad, `None or an int in 0..${vocab_size - 1}`);
}

function checkSizes(config) {
  for (const size of CONSTANTS.sizes)
    if (!Number.isInteger(config[size]) || config[size] < 1)
      refuse(size, config[size], "an int >= 1");
  if (config.hidden_size % config.num_attention_heads)
    throw new BertError(`num_attention_heads = ${config.num_attention_heads} must divide `
      + `hidden_size = ${config.hidden_size}`);
}

// ------------------------------------------------------- the tokenizer's files

async function readTokenizer(files, values) {
  const optional = async (name) => files.has(name) ? await readJson(files, name) : {};
  const { vocab: vocabFile, settings: settingsFile, whole: wholeFile } =
    CONSTANTS.tokenizerFiles;
  const settings = await optional(settingsFile), whole = await optional(wholeFile);
  checkTokenizerClass({ [settingsFile]: settings, "config.json": values });
  if (files.has(wholeFile)) requireWordPiece(whole, wholeFile);
  const tokens = files.has(vocabFile) || !files.has(wholeFile)
    ? readVocab(await readText(files, vocabFile))
    : Object.entries(whole.model.vocab).sort((a, b) => a[1] - b[1]).map(([token]) => token);
  const source = files.has(vocabFile) ? vocabFile : wholeFile;
  await refuseAddedTokens(files, settings, whole);
  const rules = { ...CONSTANTS.tokenizerDefaults };
  for (const [old, rule] of Object.entries(CONSTANTS.tokenizerOptions)) {
    if (whole.normalizer && Object.hasOwn(whole.normalizer, rule))
      rules[rule] = whole.normalizer[rule];
    if (Object.hasOwn(settings, old)) rules[rule] = settings[old];
  }
  const vocab = numberTokens(tokens, source);
  checkIds(vocab, values);
  return { ...rules, tokens, vocab };
}

function checkTokenizerClass(sources) { // a file's name -> what the file says
  const said = Object.entries(sources).map(([name, values]) => [values.tokenizer_class, name])
    .filter(([kind]) => kind !== undefined && kind !== null);
  const other = said.filter(([kind]) => !CONSTANTS.tokenizerClasses.includes(kind));
  const both = said.map(([kind, name]) => `${short(kind)} in ${name}`).join(" but ");
  if (other.length && other.length < said.length)
    throw new BertError(`tokenizer_class = ${both}; correct the wrong one`);
  if (other.length)
    refuse("tokenizer_class", other[0][0], "a WordPiece tokenizer as BERT's");
}

// The ids of [UNK], [CLS], [SEP] and [MASK] in config.json; checkAgrees compares [PAD]'s.
function checkIds(vocab, values) {
  CONSTANTS.specialTokens.forEach((token, i) => {
    const key = `${CONSTANTS.roles[i]}_id`, id = vocab.get(token), said = values[key] ?? id;
    if (said !== id && key !== "pad_token_id")
      throw new BertError(`config.json: ${key} gives ${short(token)} the id ${short(said)}, `
        + `but the vocabulary ${id}`);
  });
}

function readVocab(text) { // split at line feeds alone, as vocab.txt is written
  return text.replace(/\n$/, "").split("\n").map((line) => line.replace(/\r$/, ""));
}

function numberTokens(tokens, source) {
  const vocab = new Map();
  tokens.forEach((token, id) => {
    if (vocab.has(token))
      throw new BertError(`${source}: ${repr(token)} appears on lines `
        + `${vocab.get(token) + 1} and ${id + 1}, allowed once`);
    vocab.set(token, id);
  });
  const missing = CONSTANTS.specialTokens.filter((token) => !vocab.has(token));
  if (missing.length)
    throw new BertError(`${source} lacks ${missing.join(" ")}; needed are `
      + CONSTANTS.specialTokens.join(" "));
  return vocab;
}

function requireWordPiece(whole, file) {
  for (const [part, key, wanted] of CONSTANTS.wordPiece) {
    const found = whole[part]?.[key];
    if (found !== wanted)
      throw new BertError(`${file}: ${part}.${key} = ${short(found)}, `
        + `needed ${repr(wanted)}`);
  }
}

// The library cuts added tokens such as "[E1]" out of a text; this page cannot.
async function refuseAddedTokens(files, settings, whole) {
  const more = files.has("added_tokens.json") ? await readJson(files, "added_tokens.json") : {};
  const named = [...(whole.added_tokens ?? []),
    ...Object.values(settings.added_tokens_decoder ?? {})].map(({ content }) => content);
  const other = [...named, ...Object.keys(more)]
    .find((content) => !CONSTANTS.specialTokens.includes(content));
  if (other !== undefined)
    throw new BertError(`the added token ${short(other, 40)}: this page knows `
      + `${CONSTANTS.specialTokens.join(" ")} alone; the Python library reads others`);
}

function checkAgrees(tokenizer, config) {
  const size = tokenizer.tokens.length, pad = tokenizer.vocab.get("[PAD]");
  if (size > config.vocab_size)
    throw new BertError(`the vocabulary has ${size} tokens, allowed: at most `
      + `vocab_size = ${config.vocab_size} of config.json`);
  if (config.pad_token_id !== null && config.pad_token_id !== pad)
    throw new BertError(`[PAD] has the id ${pad} in the vocabulary, but `
      + `pad_token_id = ${config.pad_token_id} in config.json`);
}

// ------------------------------------------------------------- safetensors

async function readWeights(files) {
  const { weights: name, weightsIndex } = CONSTANTS;
  if (!files.has(name)) refuseOtherWeights([...files.keys()], name, weightsIndex);
  const buffer = await fileOf(files, name).arrayBuffer();
  const size = buffer.byteLength, start = new Uint8Array(buffer, 0, Math.min(64, size));
  const length = size < 8 ? 0 : Number(new DataView(buffer).getBigUint64(0, true));
  if (start[8] !== 0x7b || length > Math.min(size - 8, CONSTANTS.maxHeader))
    throw new BertError(`${name} ${whatIs(start, length, size)}`);
  const header = parseJson(new TextDecoder().decode(new Uint8Array(buffer, 8, length)), name);
  delete header.__metadata__;
  const ends = Object.values(header).map((entry) => entry.data_offsets?.[1]);
  const announced = 8 + length + Math.max(0, ...ends);
  if (size !== announced)
    throw new BertError(`${name} is ${size < announced ? "truncated" : "damaged"}: it has `
      + `${size} bytes, its header announces ${announced}: ${CONSTANTS.again}`);
  return { buffer, header, base: 8 + length };
}

function refuseOtherWeights(names, wanted, index) {
  if (names.includes(index))
    throw new BertError(`${index}: this page reads a single file, ${wanted}; the Python `
      + "library reads shards");
  const other = names.filter((n) => /\.(bin|h5|ckpt|pth?|msgpack)$/.test(n)).sort();
  const first = other.find((n) => n.startsWith("pytorch_model")) ?? other[0];
  if (first) throw new BertError(`${first.slice(0, 32)} cannot be read, only ${wanted}: `
    + "the Python library says how to convert it");
  throw new BertError(`${wanted} is missing from the folder`);
}

function whatIs(start, length, size) {
  if (size === 0) return `is empty: ${CONSTANTS.again}`;
  if (start[8] === 0x7b && length <= CONSTANTS.maxHeader)
    return `is truncated: its header has ${length} bytes, the file ${size}: ${CONSTANTS.again}`;
  const blank = [0xef, 0xbb, 0xbf, 0x20, 0x09, 0x0d, 0x0a]; // a byte-order mark, spaces
  const bytes = start.slice(start.findIndex((byte) => !blank.includes(byte)));
  const kind = CONSTANTS.signatures.find(([begin]) => begin.every((b, i) => b === bytes[i]));
  return kind ? `is ${kind[1]}` : `is not a safetensors file: ${size} bytes`;
}

// ------------------------------------------------------------ into the tree

// Return a Map: a tensor's name in the file -> its place in the tree and its shape.
function placeTensors(header, config) {
  const names = standardNames(Object.keys(header));
  const before = CONSTANTS.tensors.find(isPerLayer).name.split("{}")[0];
  const inLayers = Array.from(names.keys()).filter((name) => name.startsWith(before));
  const layers = new Set(inLayers.map((name) => name.slice(before.length).split(".")[0])).size;
  const wanted =
    expectedTensors(config, Math.min(config.num_hidden_layers, layers + 1), names);
  const places = new Map();
  for (const [standard, name] of names)
    if (wanted.has(standard)) places.set(name, wanted.get(standard));
  requireComplete(header, places, wanted, layers, config.num_hidden_layers);
  for (const [name, place] of places) checkTensor(name, place, header[name]);
  return places;
}

// The name that HuggingFace uses today -> the name in the file.
function standardNames(found) {
  const names = new Map(), prefixes = new Map(), spellings = new Map();
  const body = RegExp(`^(?:${CONSTANTS.body})$`, "s");
  for (const name of found) {
    const match = beginsWith(name, CONSTANTS.unused) ? null : name.match(body);
    let standard = match ? match[2] : name;
    if (match) prefixes.set(match[1], name);
    for (const [old, today] of Object.entries(CONSTANTS.oldNorm)) {
      const isOld = standard.endsWith(old);
      if (!isOld && !standard.endsWith(today)
        || beginsWith(name, CONSTANTS.otherHeads)) continue;
      spellings.set(isOld, name);
      standard = standard.slice(0, -(isOld ? old : today).length) + today;
    }
    if (names.has(standard))
      throw new BertError(`tensors ${show([names.get(standard), name])} are two `
        + "spellings of one, allowed: one");
    names.set(standard, name);
  }
  checkNaming(prefixes, spellings);
  return names;
}

function checkNaming(prefixes, spellings) {
  for (const [prefix, name] of prefixes)
    if (prefix !== "" && prefix !== "bert.")
      throw new BertError(`prefix ${short(prefix)} of tensor ${show([name])}, allowed: `
        + "'bert.' or none; rename the tensors");
  for (const kind of [prefixes, spellings])
    if (kind.size > 1)
      throw new BertError(`tensors ${show([...kind.values()])} mix two ways of naming, `
        + "allowed: one ('bert.' or no prefix; LayerNorm.gamma/beta or weight/bias)");
}

function expectedTensors(config, layers, names) {
  const wanted = new Map(), isTied = config.tie_word_embeddings;
  const { place: decoder, bias } = CONSTANTS.decoder;
  const tensors = CONSTANTS.tensors.filter(({ path }) => !isTied || path !== decoder);
  const perLayer = tensors.filter(isPerLayer);
  const put = ({ path, name, shape }, number) => {
    const standard = name.replace("{}", number);
    wanted.set(standard, { standard, path: path.replace("{}", number),
      shape: shape.map((size) => config[size] ?? size) });
  };
  for (const tensor of tensors)
    if (!isPerLayer(tensor)) put(tensor);
    else if (tensor === perLayer[0])
      for (let number = 0; number < layers; number++)
        perLayer.forEach((each) => put(each, number));
  const at = (path) => [...wanted.values()].find((place) => place.path === path);
  for (const [copy, original] of Object.entries(CONSTANTS.copies))
    if (!wanted.has(copy)) wanted.set(copy, { ...at(original), copy });
  if (!isTied && names.has(bias)) wanted.delete(wanted.get(bias).standard);
  const P = config.max_position_embeddings;
  wanted.set(CONSTANTS.positionIds, { path: CONSTANTS.positionIds, shape: [1, P] });
  return wanted;
}

function isPerLayer({ path }) {
  return path.includes("{}");
}

function requireComplete(header, places, wanted, layers, asked) {
  const why = layers === asked ? ""
    : `config.json has ${asked} layers, the weights ${layers}; `;
  const unknown = Object.keys(header).filter((name) => !places.has(name)
    && !beginsWith(name, CONSTANTS.unused));
  if (unknown.length)
    throw new BertError(`${why}unknown tensors ${show(unknown)}`
      + (why ? "" : ": another architecture than BERT"));
  const part = (path) => path.split(".")[0];
  const filled = new Set(Array.from(places.values(), (place) => place.path));
  const parts = new Set([...filled].map(part)).add("embeddings").add("layers");
  const missing = [...wanted].filter(([, { path, copy }]) => !copy && parts.has(part(path))
    && !filled.has(path) && path !== CONSTANTS.positionIds).map(([name]) => name);
  if (missing.length) throw new BertError(`${why}missing tensors ${show(missing)}`);
}

function checkTensor(name, { path, shape }, entry) {
  const isIds = path === CONSTANTS.positionIds;
  const dtypes = isIds ? CONSTANTS.integers : CONSTANTS.floats;
  if (!dtypes.includes(entry.dtype))
    throw new BertError(`${show([name])} is ${repr(entry.dtype)}, allowed: `
      + dtypes.join(", "));
  const same = (other) => String(other) === String(entry.shape);
  if (same(shape) || isIds && same(shape.slice(1))) return;
  const hint = shape.length === 2 && same([...shape].reverse())
    ? "; it looks transposed (TensorFlow layout?)" : "";
  throw new BertError(`${show([name])} has shape ${shapeText(entry.shape)}, config.json `
    + `asks for ${shapeText(shape)}${hint}`);
}

function buildParams({ buffer, header, base }, places) {
  const params = {}, found = new Map();
  for (const [name, { path, copy, standard }] of places) {
    const { dtype, data_offsets: [from, to] } = header[name];
    const array = toFloat32(buffer, base + from, base + to, dtype);
    if (path === CONSTANTS.positionIds) {
      if (array.some((id, i) => id !== i))
        throw new BertError(`${show([name])} has other values than BERT's 0, 1, 2, ...`);
      continue;
    }
    if (!array.every(Number.isFinite))
      throw new BertError(`${show([name])} contains NaN or infinity, allowed: finite numbers`);
    const other = found.get(path);
    if (other && other.array.some((value, i) => value !== array[i]))
      throw new BertError(`${copy ?? other.copy} differs from ${standard}, but the two are `
        + 'tied; if the head has a matrix of its own, set "tie_word_embeddings": false in '
        + "config.json");
    found.set(path, { array, copy });
    setAt(params, path.split("."), array);
  }
  const count = Array.from(found.values()).reduce((sum, { array }) => sum + array.length, 0);
  return [params, count];
}

function setAt(tree, keys, value) { // tree.layers[0].attention.query.W = value
  keys.slice(0, -1).forEach((key, i) => {
    tree = tree[key] ??= /^\d+$/.test(keys[i + 1]) ? [] : {};
  });
  tree[keys.at(-1)] = value;
}

function toFloat32(buffer, from, to, dtype) {
  if (dtype === "F32" && from % 4 === 0)
    return new Float32Array(buffer, from, (to - from) / 4); // no copy
  const bytes = buffer.slice(from, to);
  if (dtype === "F32") return new Float32Array(bytes);
  if (dtype === "F64") return Float32Array.from(new Float64Array(bytes));
  if (dtype === "I64") return Float32Array.from(new BigInt64Array(bytes), Number);
  if (dtype === "I32") return Float32Array.from(new Int32Array(bytes));
  const halves = new Uint16Array(bytes);
  if (dtype === "BF16") // the upper half of a float32
    return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
  return Float32Array.from(halves, fromFloat16);
}

function fromFloat16(half) {
  const sign = half & 0x8000 ? -1 : 1, exponent = half >> 10 & 31, rest = half & 1023;
  if (exponent === 31) return rest ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 25) * (1024 + rest) : sign * 2 ** -24 * rest;
}
