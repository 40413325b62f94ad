"use strict";
// The charts: their rows for dygraphs, drawing, zoom, and the values at the cursor.

const MAX_ROWS = 2500;  // more different steps than these are put on a common grid
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const charts = [];      // the drawn ones, in order of the page

// ---- rows for dygraphs ----------------------------------------------------------------------------------------------

function commonSteps(curves) {
  const different = new Set();
  let before = null;
  for (const {steps} of curves) {
    if (!before || steps.length !== before.length || steps.some((step, i) => step !== before[i])) {
      steps.forEach((step) => different.add(step));
    }
    before = steps;
  }
  const all = Float64Array.from(different).sort();
  const every = Math.ceil(all.length / MAX_ROWS);
  return every <= 1 ? all : all.filter((_, i) => i % every === 0);
}

// One row a step: its x, then a value a curve; null where a curve has no value at all, NaN where it has none to show.
function rowsOf(curves) {
  const steps = commonSteps(curves);
  const scale = perStep();
  const rows = Array.from(steps, (step) => {
    const row = new Array(curves.length + 1).fill(null);
    row[0] = step * scale;
    return row;
  });
  curves.forEach((curve, c) => {
    let at = 0;
    curve.steps.forEach((step, i) => {
      while (at + 1 < steps.length && Math.abs(steps[at + 1] - step) <= Math.abs(steps[at] - step)) {
        at += 1;
      }
      rows[at][c + 1] = curve.values[i];
    });
  });
  return rows.length ? rows : [new Array(curves.length + 1).fill(null).fill(0, 0, 1)];
}

// ---- drawing --------------------------------------------------------------------------------------------------------

function draw(chart) {
  chart.curves = chart.spec.curves();
  chart.usualRange = chart.spec.range ? chart.spec.range(chart) : null;
  const series = {};
  const names = chart.curves.map((curve, i) => `c${i}`);
  chart.curves.forEach((curve, i) => {
    const isReference = curve.variant && curve.variant.name === data.reference;
    series[names[i]] = {
      strokeWidth: curve.width + (isReference && !curve.run ? 0.6 : 0),
      strokePattern: curve.variant ? curve.variant.dash : null,
      drawPoints: Boolean(curve.points), pointSize: 2.2,
    };
  });
  const lineColour = (curve) => colour(curve.variant ? curve.variant.colour : "--s0");
  if (chart.graph) {
    chart.graph.animateId += 1;  // ends the fading of the other lines, which would go on without a chart
    chart.graph.fadeLevel = 0;
    chart.graph.destroy();
  }
  const noLog = Boolean(chart.spec.noLog && chart.spec.noLog());
  const format = chart.spec.format || general;
  const scale = perStep();
  chart.title.textContent = chart.spec.title();
  chart.note.textContent = chart.spec.note ? `${chart.spec.note}, across ${state.x}` : "";
  chart.log.disabled = noLog;
  chart.plot.setAttribute("aria-label", `${chart.spec.title()}, ${count(chart.curves.length, "line")}. ` +
    "Left and right arrows read values, up and down choose a line, plus, minus and 0 zoom.");
  chart.graph = new Dygraph(chart.canvas, rowsOf(chart.curves), {
    labels: ["x", ...names],
    colors: chart.curves.map((curve) => (curve.faint ? faded(lineColour(curve), 0.8) : lineColour(curve))),
    series,
    connectSeparatedPoints: true,
    logscale: Boolean(state.log[chart.spec.id]) && !noLog,
    dateWindow: state.window && state.window.map((step) => step * scale),
    valueRange: state.ranges[chart.spec.id] || chart.usualRange,
    legend: "never",
    animatedZooms: false,
    xRangePad: 1,
    yRangePad: 6,
    rightGap: 12,
    axisLineColor: colour("--axis"),
    gridLineColor: colour("--grid"),
    gridLineWidth: 1,
    highlightSeriesOpts: {strokeWidth: 2.8, highlightCircleSize: 3.5},
    highlightSeriesBackgroundAlpha: stillness.matches ? 1 : 0.3,
    highlightSeriesBackgroundColor: colour("--card"),
    axes: {
      x: {drawGrid: false, axisLabelFormatter: short, pixelsPerLabel: 55},
      y: {axisLabelFormatter: (value) => format === general ? short(value) : format(value), axisLabelWidth: 48,
        pixelsPerLabel: chart.spec.wide ? 36 : 28},
    },
    interactionModel,
    underlayCallback: (context, area, graph) => drawUnder(chart, context, area, graph),
    zoomCallback: (low, high, ranges) => zoomed(chart, low, high, ranges[0]),
    highlightCallback: (event, x, points, row, name) => read(chart, x, Number(String(name).slice(1))),
    unhighlightCallback: () => { chart.readout.hidden = true; },
  });
}

// What is in sight is drawn at once, the rest one by one when the browser has painted that.
function isNear(chart) {
  const box = chart.canvas.getBoundingClientRect();
  return box.bottom > -100 && box.top < window.innerHeight + 100;
}

function redraw(some, now = draw) {
  const near = some.map(isNear);
  some.forEach((chart, i) => {
    if (near[i]) {
      (chart.stale ? draw : now)(chart);
    }
    chart.stale = !near[i];
  });
  setTimeout(drawNext, 0);
}

function drawNext() {
  const next = charts.find((chart) => chart.stale);
  if (next) {
    next.stale = false;
    draw(next);
    setTimeout(drawNext, 0);
  } else {
    document.documentElement.dataset.drawnMs ??= Math.round(performance.now());
  }
}

const drawAll = () => redraw(charts);

function drawUnder(chart, context, area, graph) {
  if (!chart.spec.under || !chart.curves.length) {
    return;
  }
  context.save();
  context.beginPath();
  context.rect(area.x, area.y, area.w, area.h);
  context.clip();
  chart.spec.under(chart, context, area, graph);
  context.restore();
}

// ---- zoom -----------------------------------------------------------------------------------------------------------

// x is zoomed in all charts together, y in the one where the mouse was drawn up or down.
function zoomed(chart, low, high, range) {
  const usual = chart.usualRange;
  const keepsUsual = usual && range[0] === usual[0] && range[1] === usual[1];
  if (chart.graph.isZoomed("y") && !keepsUsual) {
    state.ranges[chart.spec.id] = range;
  } else {
    delete state.ranges[chart.spec.id];
  }
  if (!chart.graph.isZoomed("x") && !chart.graph.isZoomed("y")) {
    state.ranges = {};
  }
  showWindow(chart.graph.isZoomed("x") ? [low / perStep(), high / perStep()] : null);
}

function showWindow(steps) {
  state.window = steps;
  redraw(charts, (chart) => {
    chart.readout.hidden = true;
    chart.graph.updateOptions({
      dateWindow: steps && steps.map((step) => step * perStep()),
      valueRange: state.ranges[chart.spec.id] || chart.usualRange,
    });
  });
  byId("zoom-reset").disabled = !steps && !Object.keys(state.ranges).length;
  save();
}

const lastStep = () => Math.max(1, ...runs.flatMap((run) => [(run.steps || []).at(-1) || 0,
  (run.eval_steps || []).at(-1) || 0]));

// Factor 0.5 shows half as many steps. A window at the end stays there: that is where runs are compared.
function zoomBy(factor) {
  const last = lastStep();
  const [low, high] = state.window || [0, last];
  const width = Math.min(last, (high - low) * factor);
  const end = high >= last * 0.98 ? high : Math.min(last, (low + high) / 2 + width / 2);
  showWindow(width >= last ? null : [Math.max(0, end - width), Math.max(0, end - width) + width]);
}

function resetZoom() {
  state.ranges = {};
  showWindow(null);
}

// One finger reads values and leaves scrolling to the page; two fingers zoom.
const interactionModel = !interactive ? null : {
  ...Dygraph.defaultInteractionModel,
  touchstart: (event, graph, context) => (event.touches.length > 1 ?
    Dygraph.defaultInteractionModel.touchstart(event, graph, context) : graph.mouseMove_(event.touches[0])),
  touchmove: (event, graph, context) => (event.touches.length > 1 && context.initialTouches ?
    Dygraph.defaultInteractionModel.touchmove(event, graph, context) : graph.mouseMove_(event.touches[0])),
  touchend: () => {},
};

// ---- values at the cursor -------------------------------------------------------------------------------------------

const READOUT_LINES = 12;

function read(chart, x, chosen) {
  const step = x / perStep();
  const lines = [];
  chart.curves.forEach((curve, index) => {
    const i = curve.steps.length ? nearest(curve.steps, step) : -1;
    const spacing = i < 0 ? 0 : (curve.steps.at(-1) - curve.steps[0]) / Math.max(1, curve.steps.length - 1);
    if (i >= 0 && Math.abs(curve.steps[i] - step) <= Math.max(1, spacing)) {
      lines.push({curve, index, value: curve.values[i], seeds: curve.seeds ? curve.seeds[i] : 0});
    }
  });
  lines.sort((a, b) => b.value - a.value || a.index - b.index);
  const place = Math.max(0, lines.findIndex((line) => line.index === chosen));
  const first = Math.max(0, Math.min(place - READOUT_LINES / 2, lines.length - READOUT_LINES));
  const shown = lines.slice(first, first + READOUT_LINES);
  const format = (value) => (Number.isNaN(value) ? "not finite" : chart.spec.digits ?
    (state.validation === "difference" && chart.spec.id === "validation" ? signed : fixed)(value, chart.spec.digits) :
    (chart.spec.format || general)(value));
  chart.readout.replaceChildren(
    element("p", {}, `step ${whole(step)}`,
      data.tokens_per_step ? `, ${short(step * data.tokens_per_step)} tokens` : ""),
    element("table", {}, ...shown.map((line) => element("tr", {class: line.index === chosen ? "chosen" : ""},
      element("td", {}, line.curve.variant ? swatch(line.curve.variant) : ""),
      element("td", {}, line.curve.label + (line.seeds && line.seeds < runsOf(line.curve.variant).length ?
        ` (${count(line.seeds, "seed")})` : "")),
      element("td", {}, format(line.value))))));
  if (lines.length > shown.length) {
    chart.readout.append(element("p", {}, `and ${lines.length - shown.length} more`));
  }
  const [left] = chart.graph.toDomCoords(x, 0);
  chart.readout.classList.toggle("left", left > chart.canvas.clientWidth / 2);
  chart.readout.hidden = false;
}

// Arrows walk along the chosen line (shift: ten at once) and from line to line.
function walk(chart, event) {
  const along = {ArrowLeft: -1, ArrowRight: 1}[event.key] || 0;
  const across = {ArrowUp: -1, ArrowDown: 1}[event.key] || 0;
  const zoom = {"+": 0.5, "=": 0.5, "-": 2}[event.key];
  if (zoom) {
    zoomBy(zoom);
  } else if (event.key === "0") {
    resetZoom();
  } else if (event.key === "Escape") {
    chart.graph.clearSelection();
    chart.readout.hidden = true;
  } else if ((along || across) && chart.curves.length) {
    const lines = chart.curves.length;
    chart.line = ((chart.line ?? 0) + across + lines) % lines;
    const curve = chart.curves[chart.line];
    const at = chart.step === undefined ? curve.steps.length - 1 : nearest(curve.steps, chart.step);
    const next = Math.max(0, Math.min(curve.steps.length - 1, at + along * (event.shiftKey ? 10 : 1)));
    chart.step = curve.steps[next];
    const row = nearest(Array.from({length: chart.graph.numRows()}, (_, i) => chart.graph.getValue(i, 0)),
      chart.step * perStep());
    chart.graph.setSelection(row, `c${chart.line}`);
    read(chart, chart.step * perStep(), chart.line);
    chart.spoken.textContent = chart.readout.querySelector(".chosen")?.innerText || "";
  } else {
    return;
  }
  event.preventDefault();
}
