// Text to ids, beside tokenizer.py: cleaning, basic split, WordPiece, [CLS] and [SEP].
//
// Unicode's categories are those of the browser, which may know a few characters
// that another version of Unicode does not.
"use strict";

function cleanChar(ch) {
  if (/[\t\n\r\p{Z}]/u.test(ch)) return " ";
  return /[\p{Cc}\p{Cf}\p{Co}\ufffd]/u.test(ch) ? "" : ch;
}

function spaceCjk(ch) {
  return CONSTANTS.cjkBlocks.some(([first, last]) =>
    ch.codePointAt(0) >= first && ch.codePointAt(0) <= last) ? ` ${ch} ` : ch;
}

function normalize(text, { lowercase, strip_accents, handle_chinese_chars }) {
  const strip = strip_accents ?? lowercase;
  const simplify = (ch) => {
    if (strip && /\p{Mn}/u.test(ch)) return "";
    return lowercase ? ch.toLowerCase() : ch;
  };
  text = [...text].map(cleanChar).join("");
  if (handle_chinese_chars) text = [...text].map(spaceCjk).join("");
  if (strip) text = text.normalize("NFD");
  return [...text].map(simplify).join("");
}

function basicSplit(text) {
  const spaced = [...text].map((ch) => isPunctuation(ch) ? ` ${ch} ` : ch).join("");
  return spaced.split(" ").filter((word) => word);
}

function isPunctuation(ch) {
  return CONSTANTS.punctuation.includes(ch) || /\p{P}/u.test(ch);
}

function wordpiece(word, vocab) {
  const chars = [...word], pieces = [];
  if (chars.length > CONSTANTS.maxWordLength) return ["[UNK]"];
  for (let start = 0; start < chars.length;) {
    const prefix = start ? "##" : "";
    let end = chars.length;
    while (end > start && !vocab.has(prefix + chars.slice(start, end).join(""))) end--;
    if (end === start) return ["[UNK]"];
    pieces.push(prefix + chars.slice(start, end).join(""));
    start = end;
  }
  return pieces;
}

function tokenize(text, tokenizer) { // special tokens are cut out first
  const cut = (part) => basicSplit(normalize(part, tokenizer))
    .flatMap((word) => wordpiece(word, tokenizer.vocab));
  const quoted = CONSTANTS.specialTokens.map((token) => token.replace(/[[\]]/g, "\\$&"));
  const special = RegExp(`(${quoted.join("|")})`);
  return text.split(special).flatMap((part, i) => i % 2 ? [part] : cut(part));
}

function encode(text, pair, tokenizer) {
  const texts = pair ? [text, pair] : [text], tokens = ["[CLS]"], segmentIds = [0];
  texts.forEach((part, segment) => {
    const pieces = [...tokenize(part, tokenizer), "[SEP]"];
    tokens.push(...pieces);
    segmentIds.push(...pieces.map(() => segment));
  });
  return { tokens, segmentIds, inputIds: tokens.map((token) => tokenizer.vocab.get(token)) };
}
