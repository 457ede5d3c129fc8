// The player of step_through: one stage at a time, and one token followed through
// all of them. It hides and marks what the page without script shows.
function startPlayer(root, markup) {
  const blocks = [...root.querySelectorAll("[data-stage]")];
  const parts = [...root.querySelectorAll("details")];
  const lines = [...root.querySelectorAll("[data-t]")]; // rows and remarks of a position
  const names = new Map(lines.filter(({ tagName }) => tagName === "TR")
    .map((row) => [row.dataset.t, row.firstChild.textContent.replace("\u00a0", " ")]));
  const state = { stage: 0, token: "", isAll: blocks.length < 2, timer: null };
  const SECOND = 1000, PACE = 1.8 * SECOND;

  const host = document.createElement("div");
  root.prepend(host);
  const shadow = host.attachShadow({ mode: "open" });
  shadow.innerHTML = markup; // our own template; no token is in it
  const find = (name) => shadow.querySelector(`.${name}`);
  host.dataset.lmSuppressShortcuts = "true"; // the keys are ours in JupyterLab

  function go(stage) {
    state.stage = clamp(stage, 0, blocks.length - 1);
    if (state.stage === blocks.length - 1) pause();
    show();
  }

  function play() { // from the start, if the end is reached
    if (state.timer) return pause();
    state.isAll = find("all").checked = false;
    state.timer = setInterval(() => go(state.stage + 1), PACE);
    go(state.stage === blocks.length - 1 ? 0 : state.stage);
  }

  function pause() {
    clearInterval(state.timer);
    state.timer = null;
    show();
  }

  function show() {
    const { stage, token, isAll } = state, now = blocks[stage];
    blocks.forEach((block) => { block.hidden = !isAll && block !== now; });
    for (const part of parts) {
      part.hidden = !isAll && !part.contains(now);
      if (part.contains(now)) part.open = true;
    }
    for (const line of lines) mark(line, token);
    find("play").textContent = state.timer ? "❚❚ pause" : "▶ play";
    find("stage").value = stage;
    find("parts").childNodes.forEach((button, i) =>
      button.setAttribute("aria-current", parts[i].contains(now)));
    const title = now.querySelector("b").textContent, guess = guessSoFar();
    find("live").replaceChildren(`Stage ${title} (the last is ${blocks.length - 1}). `);
    if (guess) find("live").append(bold(guess.textContent.replace(/^guess/,
      "The MLM head's guess so far")));
  }

  function mark(line, token) { // a row is framed, the remarks of other tokens hide
    const isChosen = line.dataset.t === token;
    if (line.tagName === "TR") {
      line.style.outline = isChosen ? "3px solid #FF2D00" : "";
      line.style.outlineOffset = "-3px"; // or the box would cut it
      line.style.opacity = token === "" || isChosen ? "" : "0.45";
    } else line.hidden = token !== "" && !isChosen;
  }

  function guessSoFar() { // the latest that was read for the followed token
    return blocks.slice(0, state.stage + 1)
      .flatMap((block) => [...block.querySelectorAll("[data-guess]")])
      .filter((line) => line.dataset.t === state.token).at(-1);
  }

  const bold = (textContent) => Object.assign(document.createElement("b"), { textContent });

  find("stage").max = blocks.length - 1;
  const listen = (name, event, act) => find(name).addEventListener(event, act);
  listen("first", "click", () => go(0));
  listen("back", "click", () => go(state.stage - 1));
  listen("next", "click", () => go(state.stage + 1));
  listen("play", "click", play);
  listen("stage", "input", ({ target }) => go(Number(target.value)));
  listen("token", "change", ({ target }) => { state.token = target.value; show(); });
  listen("all", "change", ({ target }) => { state.isAll = target.checked; show(); });
  make("option", find("token"), { value: "", textContent: "all" });
  for (const [value, textContent] of names) make("option", find("token"), { value, textContent });
  for (const part of parts)
    make("button", find("parts"), { type: "button", textContent: part.firstChild.textContent })
      .addEventListener("click", () =>
        go(blocks.indexOf(part.querySelector("[data-stage]"))));
  shadow.addEventListener("keydown", (event) => {
    const isOwn = event.target.matches("select") || event.target.matches(".stage")
      && event.key !== " "; // these have a use for the keys themselves
    const to = { ArrowLeft: state.stage - 1, ArrowRight: state.stage + 1, Home: 0,
      End: blocks.length - 1 }[event.key];
    if (isOwn || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && !event.target.matches("button, .all")) play();
    else if (to !== undefined) go(to);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const masked = [...names].find(([, name]) => name.endsWith("[MASK]"));
  state.token = find("token").value = (masked ?? [...names][1] ?? [...names][0] ?? [""])[0];
  find("all").checked = state.isAll;
  show();
}
