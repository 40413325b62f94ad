"use strict";
// What the charts show: the curves of each, the noise band, and what stands behind the lines.

const RAW_BEHIND_UP_TO = 4;   // so many runs show their unsmoothed loss behind the smoothed one

// ---- curves ---------------------------------------------------------------------------------------------------------

// A curve is {label, variant, run or null, steps, values, width, points}. In values, NaN breaks the line.
const known = (values) => (values || []).map((value) => (isNumber(value) ? value : NaN));

function runCurve(run, steps, values, extra = {}) {
  const variant = variantOf.get(run.variant);
  return {label: run.name, variant, run, steps: steps || [], values: known(values), width: 1.3, ...extra};
}

// The mean over a variant's seeds at each evaluation, of those that have come so far. Where one of them is not finite
// there is no mean: that of the others would look like a recovery.
function meanCurve(variant, field) {
  const sums = new Map();
  for (const run of runsOf(variant)) {
    (run.eval_steps || []).forEach((step, i) => {
      const entry = sums.get(step) || {sum: 0, seeds: 0};
      const value = (run[field] || [])[i];
      sums.set(step, {sum: entry.sum + (isNumber(value) ? value : NaN), seeds: entry.seeds + 1});
    });
  }
  const steps = [...sums.keys()].sort((a, b) => a - b);
  const values = steps.map((step) => sums.get(step).sum / sums.get(step).seeds);
  return {label: variant.name, variant, run: null, steps, values, width: 2.4,
    seeds: steps.map((step) => sums.get(step).seeds), points: steps.length <= 60};
}

// A mean with weights that fall as weight^distance to both sides, so that a falling curve is not shifted to the right.
// A value that is not finite breaks the line, not the mean.
function smooth(values, weight) {
  const [sums, totals] = [new Float64Array(values.length), new Float64Array(values.length)];
  const add = (first, end, by) => {
    let [sum, total] = [0, 0];
    for (let i = first; i !== end; i += by) {
      const missing = Number.isNaN(values[i]);
      sum = weight * sum + (missing ? 0 : values[i]);
      total = weight * total + (missing ? 0 : 1);
      sums[i] += sum;
      totals[i] += total;
    }
  };
  add(0, values.length, 1);
  add(values.length - 1, -1, -1);
  return values.map((value, i) => (sums[i] - value) / (totals[i] - 1));  // each value was added twice
}

// Index of the value nearest to x, in ascending order.
function nearest(ascending, x) {
  let [low, high] = [0, ascending.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    [low, high] = ascending[middle] <= x ? [middle, high] : [low, middle];
  }
  return high > low && ascending[high] - x < x - ascending[low] ? high : low;
}

const validationField = () => (state.validation === "bits" ? "val_bits_per_byte" : "val_loss");
const referenceCurve = () => (variantOf.has(data.reference) ?
  meanCurve(variantOf.get(data.reference), validationField()) : null);

// One unit of loss in what the validation chart shows: bits per byte are the loss times a constant of the data.
function validationScale() {
  if (state.validation !== "bits") {
    return 1;
  }
  for (const run of runs) {
    const last = (run.val_loss || []).findLastIndex((loss, i) => isNumber(loss) && isNumber(run.val_bits_per_byte[i]));
    if (last >= 0) {
      return run.val_bits_per_byte[last] / run.val_loss[last];
    }
  }
  return NaN;
}

function validationCurves() {
  const reference = referenceCurve();
  const minusReference = (curve) => {
    if (state.validation !== "difference" || !reference) {
      return curve;
    }
    const at = new Map(reference.steps.map((step, i) => [step, reference.values[i]]));
    return {...curve, values: curve.values.map((value, i) => value - (at.get(curve.steps[i]) ?? NaN))};
  };
  const singles = !state.singles ? [] : runs.filter(isShown).map((run) =>
    runCurve(run, run.eval_steps, run[validationField()], {width: 0.9, faint: true}));
  const isReference = (variant) => variant.name === data.reference;
  const means = variants.filter(isVariantShown).sort((a, b) => isReference(a) - isReference(b))  // drawn last, on top
    .map((variant) => meanCurve(variant, validationField()));
  return [...singles, ...means].map(minusReference);
}

// Many lines are drawn finer, so that where they lie together stays calm.
function runCurves(field) {
  const shown = runs.filter(isShown);
  const many = shown.length > 9 ? {width: 0.9, faint: true} : {};
  return shown.map((run) => runCurve(run, run.steps, run[field], many));
}

// ---- the charts -----------------------------------------------------------------------------------------------------

const CHARTS = [
  {
    id: "validation", wide: true, digits: 4,
    title: () => ({loss: "Validation loss", bits: "Validation, bits per byte",
      difference: `Validation loss minus ${data.reference}'s`})[state.validation],
    note: "mean over seeds",
    curves: validationCurves,
    under: drawNoise,
    range: (chart) => (state.validation === "difference" ? differenceRange(chart) : lossRange(chart)),
    noLog: () => state.validation === "difference",
  },
  {
    id: "loss", wide: true, digits: 4, title: () => "Training loss", note: "one line a run",
    curves: () => runCurves("loss").map((curve) =>
      ({...curve, raw: curve.values, values: smooth(curve.values, state.smoothing)})),
    under: drawRaw,
    range: lossRange,
  },
  {id: "grad_norm", title: () => "Gradient norm", curves: () => runCurves("grad_norm")},
  {id: "lr", title: () => "Learning rate", curves: () => runCurves("lr")},
  {id: "tokens_per_s", title: () => "Tokens per second", curves: () => runCurves("tokens_per_s"), format: short},
];

// The first steps fall from log V, and a run that diverges rises beyond all others; both would press the rest together.
// So the first view leaves out what lies above the losses after the first steps, unless the whole range is asked for.
const FIRST_STEPS = 0.04;

function lossRange(chart) {
  if (state.whole) {
    return null;
  }
  const last = Math.max(0, ...chart.curves.map((curve) => curve.steps.at(-1) || 0));
  const values = Float64Array.from(chart.curves.flatMap((curve) => curve.values.filter((value, i) =>
    !Number.isNaN(value) && curve.steps[i] > last * FIRST_STEPS))).sort();
  if (values.length < 2) {
    return null;
  }
  const [low, high] = [values[0], values[Math.floor(0.99 * (values.length - 1))]];
  const margin = 0.05 * (high - low) || 1;
  return [low - margin > 0 ? low - margin : low / 2, high + margin];
}

// Differences are small beside the wildest variant's: the first view shows where the middle one of them ends.
function differenceRange(chart) {
  const ends = chart.curves.filter((curve) => curve.variant.name !== data.reference)
    .map((curve) => Math.abs(curve.values.findLast((value) => !Number.isNaN(value)))).filter(isNumber)
    .sort((a, b) => a - b);
  const middle = ends.length ? ends[ends.length >> 1] : 0;
  const reach = Math.max(2.6 * middle, noise ? 1.6 * noise.threshold_difference : 0) || 1;
  return [-reach, reach];
}

// ---- behind the lines -----------------------------------------------------------------------------------------------

const faded = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

function trace(context, graph, steps, values, shift = 0, backwards = false) {
  const order = [...steps.keys()].filter((i) => isNumber(values[i]));
  for (const i of backwards ? order.reverse() : order) {
    const [x, y] = graph.toDomCoords(steps[i] * perStep(), values[i] + shift);
    context.lineTo(x, y);
  }
}

function drawLabel(context, area, y, text) {
  context.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
  context.textAlign = "right";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = colour("--card");
  context.strokeText(text, area.x + area.w - 6, y - 6);
  context.fillStyle = colour("--quiet");
  context.fillText(text, area.x + area.w - 6, y - 6);
}

function dashedLine(context, area, y, text) {
  context.setLineDash([4, 4]);
  context.lineWidth = 1;
  context.strokeStyle = colour("--quiet");
  context.beginPath();
  context.moveTo(area.x, y);
  context.lineTo(area.x + area.w, y);
  context.stroke();
  context.setLineDash([]);
  drawLabel(context, area, y, text);
}

// The band of three sigma around the reference, and the loss of token frequencies alone.
function drawNoise(chart, context, area, graph) {
  const reference = referenceCurve();
  const scale = validationScale();
  const isDifference = state.validation === "difference";
  if (noise && reference) {
    const values = isDifference ? reference.values.map((value) => value - value) : reference.values;
    context.fillStyle = colour("--band");
    context.beginPath();
    trace(context, graph, reference.steps, values, noise.threshold_run * scale);
    trace(context, graph, reference.steps, values, -noise.threshold_run * scale, true);
    context.fill();
  }
  if (isDifference && noise) {
    dashedLine(context, area, graph.toDomYCoord(noise.threshold_difference),
      "dashed: 4.24 σ, two single runs differ; shaded: 3 σ of one run");
    dashedLine(context, area, graph.toDomYCoord(-noise.threshold_difference), "");
  } else if (!isDifference && isNumber(data.unigram_loss)) {
    dashedLine(context, area, graph.toDomYCoord(data.unigram_loss * scale), "unigram: token frequencies alone");
  }
}

function drawRaw(chart, context, area, graph) {
  if (state.smoothing === 0 || chart.curves.length > RAW_BEHIND_UP_TO) {
    return;
  }
  for (const curve of chart.curves) {
    context.strokeStyle = faded(colour(curve.variant ? curve.variant.colour : "--s0"), 0.22);
    context.lineWidth = 1;
    context.beginPath();
    trace(context, graph, curve.steps, curve.raw);
    context.stroke();
  }
}
