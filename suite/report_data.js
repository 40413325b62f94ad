"use strict";
// What everything on the report's page shares: variants and runs, and the state that survives a reload.

const variants = data.variants || [];
const runs = data.runs || [];
const noise = data.noise;
const variantOf = new Map(variants.map((variant) => [variant.name, variant]));
const interactive = typeof Dygraph !== "undefined";

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
