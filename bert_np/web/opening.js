// Opening a model: the one inside the page, or a folder of the reader's.
"use strict";

function report(text, isError = false) {
  find("report").textContent = text;
  find("report").classList.toggle("error", isError);
}

async function openBuiltIn() {
  const { name, texts, weights, examples } = DATA.model, files = new Map();
  const encoder = new TextEncoder();
  for (const [file, text] of Object.entries(texts))
    files.set(file, { arrayBuffer: async () => encoder.encode(text).buffer });
  files.set(CONSTANTS.weights, { arrayBuffer: async () => fromBase64(weights).buffer });
  model = { ...await openModel(files, name), examples, isBuiltIn: true };
  find("back").hidden = true;
  showModel();
  if (readAddress()) run();
  else tryExample(examples[0]);
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (ch) => ch.charCodeAt(0));
}

// ------------------------------------------------------------ the reader's own

async function openFiles(list) { // of { path, file }
  const files = new Map();
  for (const { path, file } of list) // what lies deeper is of another model
    if (path.split("/").length <= 2) files.set(file.name, file);
  const folder = list[0]?.path.split("/").slice(0, -1)[0] || "your model";
  report(`Reading ${folder} …`);
  await new Promise((resume) => setTimeout(resume, 30)); // so that this is shown
  try {
    model = await openModel(files, folder);
  } catch (error) {
    if (error instanceof BertError) return report(error.message, true);
    return report(`${folder} cannot be read: ${error.message}`, true);
  }
  lastPass = 0;
  find("back").hidden = false;
  find("back").textContent = `back to ${DATA.model.name}`;
  showModel();
  const isOurs = DATA.model.examples.some(({ text }) => text === state.text);
  if (isOurs) tryExample(DATA.general[0]);
  else start({ text: state.text, pair: state.pair });
}

function startOpening() {
  for (const name of ["folder", "files"])
    find(name).addEventListener("change", () => openFiles(Array.from(find(name).files,
      (file) => ({ path: file.webkitRelativePath || file.name, file }))));
  find("back").addEventListener("click", async () => {
    history.replaceState(null, "", "#");
    await openBuiltIn();
  });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", async (event) => {
    event.preventDefault();
    const entries = Array.from(event.dataTransfer.items, (item) => item.webkitGetAsEntry?.());
    const found = await Promise.all(entries.filter(Boolean).map(readEntry));
    if (found.flat().length) await openFiles(found.flat());
  });
}

// A dropped file, or the files that lie in a dropped folder itself.
async function readEntry(entry) {
  const fileOfEntry = (each) => new Promise((good, bad) => each.file(good, bad));
  const path = (each) => each.fullPath.slice(1);
  if (entry.isFile) return [{ path: path(entry), file: await fileOfEntry(entry) }];
  const reader = entry.createReader(), inside = [];
  for (;;) { // a reader gives at most a hundred at a time
    const some = await new Promise((good, bad) => reader.readEntries(good, bad));
    if (!some.length) break;
    inside.push(...some.filter((each) => each.isFile));
  }
  return Promise.all(inside.map(async (each) =>
    ({ path: path(each), file: await fileOfEntry(each) })));
}
