"use strict";
// What everything on the page shares: the data, small helpers, and the state that survives a reload.

const data = JSON.parse(document.getElementById("data").textContent);
const variants = data.variants || [];
const runs = data.runs || [];
const noise = data.noise;
const variantOf = new Map(variants.map((variant) => [variant.name, variant]));
const interactive = typeof Dygraph !== "undefined";

// ---- helpers --------------------------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);
const isNumber = (value) => typeof value === "number" && isFinite(value);

// element("p", {class: "quiet"}, "text", child): text always goes in as text, never as HTML.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      node.addEventListener(name.slice(2), value);
    } else if (value === true) {
      node.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svgElement(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// ---- numbers as text ------------------------------------------------------------------------------------------------

const MISSING = "–";
const withMinus = (text) => text.replace("-", "\u2212");

function fixed(value, digits) {
  return isNumber(value) ? withMinus(value.toFixed(digits)) : MISSING;
}

function signed(value, digits) {
  return isNumber(value) ? (value > 0 ? "+" : "") + fixed(value, digits) : MISSING;
}

function whole(value) {
  return isNumber(value) ? withMinus(String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",")) : MISSING;
}

// 8192000 as 8.19M: for axes and readouts, where room is short.
function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) {
      const scaled = value / (unit === 1e4 ? 1e3 : unit);
      return withMinus(String(Number(scaled.toPrecision(4)))) + letter;
    }
  }
  return withMinus(String(Number(value.toPrecision(4))));
}

// For learning rates and gradient norms, which may span many powers of ten.
function general(value) {
  if (!isNumber(value)) {
    return value === Infinity ? "∞" : "not finite";
  }
  const size = Math.abs(value);
  return withMinus(size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : value.toPrecision(4));
}

function duration(seconds) {
  if (!isNumber(seconds)) {
    return MISSING;
  }
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${fixed(seconds, 0)} s`;
}

const count = (number, one, many = one + "s") => `${whole(number)} ${number === 1 ? one : many}`;

// ---- verdicts -------------------------------------------------------------------------------------------------------

// A sign and a word each, so that nothing hangs on colour alone.
const VERDICTS = {
  reference: ["◆", "reference"],
  better: ["▼", "better"],
  worse: ["▲", "worse"],
  no_conclusion: ["≈", "no conclusion"],
  refused: ["✕", "refused"],
  unfinished: ["…", "unfinished"],
};

function verdictBadge(verdict, prefix = "") {
  const [sign, word] = VERDICTS[verdict] || ["?", String(verdict)];
  return element("span", {class: "verdict", "data-verdict": verdict},
    element("span", {"aria-hidden": "true"}, sign), ` ${prefix}${word}`);
}

// ---- colours --------------------------------------------------------------------------------------------------------

// The reference is drawn in ink, the others in seven colours that stay apart for all kinds of colour vision; from the
// eighth variant on, dashes tell those of one colour apart.
const COLOURS = 7;
const DASHES = [null, [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [5, 2, 1, 2, 1, 2]];

(function giveColours() {
  let next = 0;
  for (const variant of variants) {
    const isReference = variant.name === data.reference;
    variant.colour = isReference ? "--s0" : `--s${(next % COLOURS) + 1}`;
    variant.dash = isReference ? null : DASHES[Math.floor(next / COLOURS) % DASHES.length];
    next += isReference ? 0 : 1;
  }
})();

function swatch(variant) {
  const line = svgElement("line", {x1: 1, y1: 5, x2: 25, y2: 5, "stroke-width": 3,
    "stroke-dasharray": variant.dash ? variant.dash.join(" ") : "none"});
  line.style.stroke = `var(${variant.colour})`;
  return svgElement("svg", {class: "swatch", width: 26, height: 10, viewBox: "0 0 26 10", "aria-hidden": "true"}, line);
}

// A colour of the style sheet as canvases need it; light or dark is resolved by the browser.
const probe = element("span", {hidden: true});
document.body.append(probe);
const resolved = new Map();

function colour(name) {
  if (!resolved.has(name)) {
    probe.style.color = `var(${name})`;
    resolved.set(name, getComputedStyle(probe).color);
  }
  return resolved.get(name);
}

// ---- state ----------------------------------------------------------------------------------------------------------

const STATE_KEY = "minillm report " + location.pathname;
const state = {
  theme: "auto",        // auto, light, dark
  x: "steps",           // steps, tokens
  smoothing: 0.8,       // weight of the past, of the training loss
  validation: "loss",   // loss, bits, difference
  whole: false,         // the whole range of losses, from the first step on
  singles: false,       // single seeds in the validation chart
  hidden: [],           // names of runs
  log: {grad_norm: true},
  window: null,         // [first, last] step of all charts
  ranges: {},           // chart -> [low, high] where zoomed
  sort: {},             // table -> {key, down}
  closed: [],           // ids of <details> that were closed
  opened: [],           // and of those that were opened
  paused: false,
  scroll: 0,
};
try {
  Object.assign(state, JSON.parse(sessionStorage.getItem(STATE_KEY) || "{}"));
} catch (error) {
  // No storage, or somebody else's: the page works without, it only forgets.
}

function save() {
  try {
    sessionStorage.setItem(STATE_KEY, JSON.stringify({...state, scroll: window.scrollY}));
  } catch (error) {
    // As above.
  }
}

const isShown = (run) => !state.hidden.includes(run.name);
const runsOf = (variant) => (variant.runs || []).map((index) => runs[index]).filter(Boolean);
const isVariantShown = (variant) => runsOf(variant).some(isShown);
const perStep = () => (state.x === "tokens" ? data.tokens_per_step : 1);

function remember(details) {
  details.open = state.opened.includes(details.id) || (details.open && !state.closed.includes(details.id));
  details.addEventListener("toggle", () => {
    const [to, from] = details.open ? ["opened", "closed"] : ["closed", "opened"];
    state[from] = state[from].filter((id) => id !== details.id);
    state[to] = [...new Set([...state[to], details.id])];
    save();
  });
  return details;
}
