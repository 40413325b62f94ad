"use strict";
// Heat maps of attention: a head is a square of N x N weights, a row a query, a column a key.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
const STEPS = DIGITS.length ** 2 - 1;  // a weight is written with two digits, as a number of these steps
const valueOf = new Map([...DIGITS].map((digit, value) => [digit, value]));
const maps = data.maps;
const shown = {layer: maps.layers.findIndex(Boolean), head: 0, query: -1, key: -1};

// How many keys of a row are written: a query behind a mask sees no later ones.
const keysOf = (query) => (maps.causal ? query + 1 : maps.tokens);

// The weights of a head, row after row; those behind the mask are 0.
function weightsOf(layer, head) {
  const N = maps.tokens;
  const digits = maps.layers[layer];
  const weights = new Float64Array(N * N);
  let at = head * 2 * (maps.causal ? N * (N + 1) / 2 : N * N);
  for (let query = 0; query < N; query += 1) {
    for (let key = 0; key < keysOf(query); key += 1, at += 2) {
      weights[query * N + key] = (valueOf.get(digits[at]) * DIGITS.length + valueOf.get(digits[at + 1])) / STEPS;
    }
  }
  return weights;
}

// ---- drawing --------------------------------------------------------------------------------------------------------

// From the ground to the accent, by the root of the weight, so that small ones can be told from none.
function paint(canvas, weights) {
  const N = maps.tokens;
  const rgb = (name) => colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);
  const [ground, full, hidden] = [rgb("--map-ground"), rgb("--map-full"), rgb("--map-hidden")];
  canvas.width = canvas.height = N;
  const context = canvas.getContext("2d");
  const image = context.createImageData(N, N);
  for (let i = 0; i < N * N; i += 1) {
    const share = Math.sqrt(weights[i]);
    const isSeen = i % N < keysOf(Math.floor(i / N));
    for (let part = 0; part < 3; part += 1) {
      image.data[4 * i + part] = isSeen ? ground[part] + share * (full[part] - ground[part]) : hidden[part];
    }
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

function caption(layer, head) {
  const {entropy, first_token_share: first} = layers[layer].heads[head];
  return `entropy ${fixed(entropy, 2)}, to first ${isNumber(first) ? fixed(100 * first, 0) + " %" : MISSING}`;
}

// ---- the large map --------------------------------------------------------------------------------------------------

const cellSize = () => Math.max(3, Math.min(26, Math.floor(680 / maps.tokens)));
const labelEvery = () => Math.ceil(11 / cellSize());

function labels(side) {
  const size = cellSize();
  const every = labelEvery();
  const box = element("div", {class: `labels ${side}`, "aria-hidden": "true"});
  for (let i = 0; i < maps.tokens; i += every) {
    const label = element("span", {"data-place": i}, data.tokens[i]);
    label.style[side === "keys" ? "left" : "top"] = `${i * size}px`;
    label.style[side === "keys" ? "width" : "height"] = `${every * size}px`;
    box.append(label);
  }
  box.style[side === "keys" ? "width" : "height"] = `${maps.tokens * size}px`;
  return box;
}

function largeMap() {
  const size = cellSize() * maps.tokens;
  const canvas = element("canvas", {id: "map", "aria-hidden": "true"});
  const cross = ["row", "column"].map((name) => element("div", {class: `cross ${name}`, hidden: true}));
  const plot = element("div", {id: "plot", tabindex: "0", role: "group", onkeydown: walk,
    onpointermove: point, onpointerdown: point, onpointerleave: () => { place(-1, -1); },
    "aria-label": "Attention weights. Arrows move from cell to cell."}, canvas, ...cross);
  canvas.style.width = canvas.style.height = plot.style.width = plot.style.height = `${size}px`;
  return element("div", {class: "large"}, element("div", {class: "frame"},
    element("span", {class: "corner quiet", "aria-hidden": "true"}, "query ↓ key →"), labels("keys"),
    labels("queries"), plot));
}

function point(event) {
  const box = byId("map").getBoundingClientRect();
  const cell = (offset) => Math.max(0, Math.min(maps.tokens - 1, Math.floor(offset / cellSize())));
  place(cell(event.clientY - box.top), cell(event.clientX - box.left));
}

// Marks the cell of a query and a key, and says what stands there; -1: none.
function place(query, key) {
  [shown.query, shown.key] = [query, key];
  const size = cellSize();
  const [row, column] = ["row", "column"].map((name) => document.querySelector(`#plot .${name}`));
  row.hidden = column.hidden = query < 0;
  row.style.top = `${query * size}px`;
  column.style.left = `${key * size}px`;
  row.style.height = column.style.width = `${size}px`;
  document.querySelectorAll(".labels span").forEach((label) => {
    const at = label.parentNode.classList.contains("keys") ? key : query;
    label.classList.toggle("chosen", at >= 0 && Math.floor(at / labelEvery()) * labelEvery() === +label.dataset.place);
  });
  byId("readout").textContent = query < 0 ? "Point at a cell, or move through the map with the arrow keys." :
    `query ${query} ${data.tokens[query]} → key ${key} ${data.tokens[key]}: ` +
    (key < keysOf(query) ? fixed(shown.weights[query * maps.tokens + key], 3) : "hidden by the mask");
}

function walk(event) {
  const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (!step && event.key !== "Escape") {
    return;
  }
  event.preventDefault();
  if (!step) {
    place(-1, -1);
    return;
  }
  const bounded = (value) => Math.max(0, Math.min(maps.tokens - 1, value));
  place(...(shown.query < 0 ? [0, 0] : [bounded(shown.query + step[0]), bounded(shown.key + step[1])]));
}

// ---- choosing -------------------------------------------------------------------------------------------------------

function showHead(head) {
  shown.head = head;
  shown.weights = weightsOf(shown.layer, head);
  paint(byId("map"), shown.weights);
  byId("map-title").textContent = `Layer ${shown.layer}, head ${head}`;
  byId("map-caption").textContent = caption(shown.layer, head);
  document.querySelectorAll("#heads button").forEach((button, index) =>
    button.setAttribute("aria-pressed", String(index === head)));
  place(shown.query, shown.key);
}

function showLayer(layer) {
  shown.layer = layer;
  byId("heads").replaceChildren(...layers[layer].heads.map((_, head) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    paint(canvas, weightsOf(layer, head));
    return element("button", {type: "button", "aria-label": `Head ${head}, ${caption(layer, head)}`,
      onclick: () => showHead(head)}, canvas, element("span", {}, `head ${head}`),
    element("span", {class: "quiet"}, caption(layer, head)));
  }));
  showHead(Math.min(shown.head, layers[layer].heads.length - 1));
}

function attention() {
  if (shown.layer < 0) {
    byId("attention-note").textContent = "No layer of this model has attention weights.";
    return;
  }
  const cut = maps.tokens < data.tokens.length ? `the first ${maps.tokens} of ${data.tokens.length} tokens, ` +
    "which bounds the size of this page; " : "";
  byId("attention-note").textContent = `Each map shows ${cut}a row a query, a column a key. A query's weights add up ` +
    "to 1 over all keys; the colour grows with the root of the weight. Weights are rounded to steps of 1 / 4095.";
  const layerOptions = layers.map((_, layer) => (maps.layers[layer] ?
    element("option", {value: layer}, `layer ${layer}`) : null)).filter(Boolean);
  const select = element("select", {id: "layer", onchange: () => showLayer(Number(select.value))}, ...layerOptions);
  byId("attention-body").replaceChildren(
    element("p", {class: "choice"}, element("label", {for: "layer"}, "Layer"), " ", select),
    element("div", {id: "heads", role: "group", "aria-label": "Heads"}),
    element("figure", {class: "chart"},
      element("figcaption", {}, element("h3", {id: "map-title"}), element("span", {id: "map-caption",
        class: "note quiet"})),
      element("p", {id: "readout", "aria-live": "polite"}), largeMap()));
  showLayer(shown.layer);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    resolved.clear();
    showLayer(shown.layer);
  });
}
