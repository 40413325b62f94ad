"use strict";
// What the page of an inspection tells of each layer: the numbers as a table, and as small charts from layer to layer.

const layers = data.layers;
const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const ofHeads = (key) => (layer) => layer.heads.map((head) => head[key]).filter(isNumber);

// {key, label, hint, value(layer)}: the columns of the table, and what charts draw. Rows are the embedding, then the
// layers; the embedding has some of the keys only.
const plain = (key, label, hint) => ({key, label, hint, value: (layer) => layer[key]});
const NUMBERS = [
  plain("stream_mean", "Mean", "Mean of the stream behind the layer, over all tokens and channels"),
  plain("stream_std", "Std", "Standard deviation of the same values"),
  plain("stream_rms", "RMS", "Root mean square of the same values"),
  plain("norm_output", "Norms' RMS", "Root mean square of what the norms of its sublayers write"),
  plain("token_cosine", "Cosine", "Cosine of two tokens' vectors behind the layer, mean over all pairs"),
  {key: "entropy", label: "Entropy", hint: "Entropy of attention in nats, mean over queries and heads",
    value: (layer) => (layer.heads ? mean(ofHeads("entropy")(layer)) : null)},
  plain("first_token_share", "To first", "What attention gives to the first token, mean over heads and later queries"),
  plain("largest_score", "Largest score", "Of a query with a key that it sees"),
  plain("ffn_largest", "Largest in FFN", "Largest value that a down projection reads"),
  plain("ffn_dead", "Dead units", "Share of the inner units that are 0 for every token"),
  plain("mixer_gate_mean", "Mixer's gate", "Mean of what the mixer's gate multiplies by"),
  plain("ffn_gate_mean", "FFN's gate", "Mean of what the feed-forward network's gate multiplies by"),
  plain("stream_gradient", "Gradient, stream", "Length of the loss's gradient with respect to the stream behind it"),
  plain("parameter_gradient", "Gradient, parameters", "Length of the loss's gradient of the layer's parameters"),
  plain("mixer_write_rms", "Mixer writes", "Root mean square of what the mixer adds to the stream"),
  plain("ffn_write_rms", "FFN writes", "Root mean square of what the feed-forward network adds to the stream"),
  plain("mixer_write_logit", "Mixer, logit", "What the mixer adds to the next token's logit, less the mean over all"),
  plain("ffn_write_logit", "FFN, logit", "What the feed-forward network adds to the next token's logit, less the mean"),
];

const known = (layer, number) => {
  const value = number.value(layer);
  return isNumber(value) ? value : null;
};
const digits = (value) => (isNumber(value) ? general(value) : MISSING);

// ---- the table ------------------------------------------------------------------------------------------------------

function layerTable() {
  const embedding = {heads: null, ...data.embedding};
  const columns = NUMBERS.filter((number) => layers.some((layer) => known(layer, number) !== null));
  const row = (name, layer) => element("tr", {"data-name": name}, element("th", {scope: "row"}, name),
    ...columns.map((number) => element("td", {class: "number"}, digits(known(layer, number)))));
  byId("layers-body").replaceChildren(scrollBox("Numbers of each layer", element("table", {id: "layers-table"},
    element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "Layer"),
      ...columns.map((number) => element("th", {scope: "col", class: "number", title: number.hint}, number.label)))),
    element("tbody", {}, row("embedding", embedding),
      ...layers.map((layer, index) => row(String(index), layer))))));
}

// ---- charts ---------------------------------------------------------------------------------------------------------

const line = (key, label, colour) => ({number: NUMBERS.find((number) => number.key === key), label, colour});
const CHARTS = [
  {title: "Stream", lines: [line("stream_rms", "RMS", "--s1"), line("stream_mean", "mean", "--s2")]},
  {title: "Norms' output, RMS", lines: [line("norm_output", "RMS", "--s1")]},
  {title: "Token cosine", lines: [line("token_cosine", "mean over pairs", "--s1")]},
  {title: "Attention entropy, nats", lines: [line("entropy", "mean over heads", "--s1")], heads: "entropy",
    top: () => data.largest_entropy},
  {title: "Attention to the first token", lines: [line("first_token_share", "mean over heads", "--s1")],
    heads: "first_token_share"},
  {title: "Dead units, share", lines: [line("ffn_dead", "FFN", "--s2")]},
  {title: "Gates, mean", lines: [line("mixer_gate_mean", "mixer", "--s1"), line("ffn_gate_mean", "FFN", "--s2")]},
  {title: "Gradient norm", log: true, lines: [line("stream_gradient", "stream", "--s1"),
    line("parameter_gradient", "parameters", "--s2")]},
  {title: "Writes, RMS", lines: [line("mixer_write_rms", "mixer", "--s1"), line("ffn_write_rms", "FFN", "--s2")]},
  {title: "To the next token's logit", lines: [line("mixer_write_logit", "mixer", "--s1"),
    line("ffn_write_logit", "FFN", "--s2")]},
];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [340, 190, 58, 26, 10];

// Points {layer, value, name} of one line; single heads beside it.
const pointsOf = (one) => layers.map((layer, index) => ({layer: index, value: known(layer, one.number)}))
  .filter((point) => point.value !== null);
const headPoints = (key) => layers.flatMap((layer, index) => layer.heads.map((head, h) =>
  ({layer: index, value: head[key], head: h}))).filter((point) => isNumber(point.value));

// Where values stand: linear, or by their logarithm where all are positive and the chart asks for it.
function scaleOf(chart, values) {
  const isLog = Boolean(chart.log) && values.every((value) => value > 0);
  const by = isLog ? Math.log10 : (value) => value;
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (!isLog) {
    [low, high] = [Math.min(0, low), Math.max(0, high)];
  }
  const span = by(high) - by(low) || 1;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (by(value) - by(low)) / span);
  return {isLog, low, high, y, x: (layer) => LEFT + 8 + (WIDTH - LEFT - 20) *
    (layers.length > 1 ? layer / (layers.length - 1) : 0.5)};
}

function axes(svg, scale) {
  const text = (x, y, words, anchor) => svgElement("text", {x, y, "text-anchor": anchor}, words);
  const rule = (value) => svgElement("line", {class: value === 0 && scale.low < 0 ? "zero" : "rule", x1: LEFT,
    x2: WIDTH - 4, y1: scale.y(value), y2: scale.y(value)});
  const ends = [scale.low, scale.high];
  const marks = new Set(scale.low < 0 && scale.high > 0 ? [...ends, 0] : ends);
  const written = [];  // where labels stand: one that would touch another is left out
  for (const mark of marks) {
    const y = scale.y(mark);
    svg.append(rule(mark));
    if (written.every((other) => Math.abs(other - y) > 12)) {
      svg.append(text(LEFT - 6, y + 4, mark === 0 ? "0" : general(mark), "end"));
      written.push(y);
    }
  }
  const last = layers.length - 1;
  for (const layer of new Set([0, Math.round(last / 2), last])) {
    svg.append(text(scale.x(layer), HEIGHT - 6, String(layer), "middle"));
  }
}

function chartOf(chart) {
  const lines = chart.lines.map((one) => ({...one, points: pointsOf(one)})).filter((one) => one.points.length);
  if (!lines.length) {
    return null;
  }
  const single = chart.heads ? headPoints(chart.heads) : [];
  const top = chart.top ? chart.top() : null;
  const values = [...lines.flatMap((one) => one.points), ...single].map((point) => point.value);
  const scale = scaleOf(chart, isNumber(top) ? [...values, top] : values);
  const svg = svgElement("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": chart.title});
  axes(svg, scale);
  const dot = (point, r, colour, name) => {
    const circle = svgElement("circle", {cx: scale.x(point.layer), cy: scale.y(point.value), r},
      svgElement("title", {}, `layer ${point.layer}, ${name}: ${general(point.value)}`));
    circle.style.fill = `var(${colour})`;
    return circle;
  };
  svg.append(...single.map((point) => dot(point, 1.8, "--quiet", `head ${point.head}`)));
  for (const one of lines) {
    const path = svgElement("path", {d: one.points.map((point, i) =>
      `${i ? "L" : "M"}${scale.x(point.layer)} ${scale.y(point.value)}`).join("")});
    path.style.stroke = `var(${one.colour})`;
    svg.append(path, ...one.points.map((point) => dot(point, 3, one.colour, one.label)));
  }
  const legend = lines.map((one) => {
    const mark = element("span", {class: "mark", "aria-hidden": "true"});
    mark.style.background = `var(${one.colour})`;
    return element("span", {class: "note quiet"}, mark, one.label);
  });
  const notes = [scale.isLog ? "logarithmic" : null, single.length ? "small dots: single heads" : null,
    isNumber(top) ? "upper line: even attention" : null].filter(Boolean).join("; ");
  return element("figure", {class: "chart"}, element("figcaption", {}, element("h3", {}, chart.title), ...legend,
    notes ? element("span", {class: "note quiet"}, notes) : null), svg);
}

function layerCharts() {
  byId("charts").replaceChildren(...CHARTS.map(chartOf).filter(Boolean));
}
