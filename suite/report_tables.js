"use strict";
// The tables and texts below the curves.

// ---- sortable tables ------------------------------------------------------------------------------------------------

// columns: {key, label, hint, number, value(row), cell(row)}; cell defaults to the value as text. Missing values stay
// last in both directions. The heads are buttons, so they take the keyboard; aria-sort tells the order.
function sortableTable(id, caption, columns, rows) {
  const body = element("tbody");
  const heads = columns.map((column) => {
    const button = element("button", {type: "button", title: column.hint, "data-sort": column.key}, column.label,
      element("span", {class: "order", "aria-hidden": "true"}));
    button.addEventListener("click", () => {
      const now = state.sort[id];
      const firstDown = Boolean(column.number && column.largestFirst);
      state.sort[id] = {key: column.key, down: now && now.key === column.key ? !now.down : firstDown};
      show();
      save();
    });
    return element("th", {scope: "col", class: column.number ? "number" : ""}, button);
  });

  function show() {
    const sort = state.sort[id];
    const by = sort && columns.find((column) => column.key === sort.key);
    columns.forEach((column, i) => {
      const order = column !== by ? "none" : sort.down ? "descending" : "ascending";
      heads[i].setAttribute("aria-sort", order);
      heads[i].querySelector(".order").textContent = {none: "", ascending: " ▲", descending: " ▼"}[order];
    });
    const sorted = !by ? rows : [...rows].sort((a, b) => {
      const [x, y] = [by.value(a), by.value(b)];
      const [lacksX, lacksY] = [x, y].map((value) => value === null || value === undefined);
      if (lacksX || lacksY) {
        return lacksX - lacksY;
      }
      const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", {numeric: true});
      return sort.down ? -order : order;
    });
    body.replaceChildren(...sorted.map((row) => element("tr", {"data-name": row.name},
      ...columns.map((column, i) => {
        const content = column.cell ? column.cell(row) : column.value(row);
        const shown = content === null || content === undefined || content === "" ? MISSING : content;
        return element(i === 0 ? "th" : "td", {scope: i === 0 ? "row" : null, class: column.class ||
          (column.number ? "number" : "")}, ...(Array.isArray(shown) ? shown : [shown]));
      }))));
  }
  show();
  return scrollBox(caption, element("table", {id}, element("caption", {class: "unseen"}, caption),
    element("thead", {}, element("tr", {}, ...heads)), body));
}

// ---- comparison -----------------------------------------------------------------------------------------------------

// The difference to the reference in sigma, over the band of three sigma that is noise.
function deltaPlot(variant, reach) {
  const [width, height] = [132, 20];
  const place = (sigmas) => width / 2 + Math.max(-1, Math.min(1, sigmas / reach)) * (width / 2 - 8);
  const svg = svgElement("svg", {class: "delta", width, height, viewBox: `0 0 ${width} ${height}`,
    "aria-hidden": "true"});
  svg.append(svgElement("rect", {class: "band", x: place(-3), y: 1, width: place(3) - place(-3), height: 18, rx: 2}),
    svgElement("line", {class: "zero", x1: width / 2, y1: 1, x2: width / 2, y2: 19}));
  const sigmas = variant.delta_sigmas;
  if (isNumber(sigmas) && variant.verdict !== "reference") {
    const mark = Math.abs(sigmas) > reach ?
      svgElement("path", {d: sigmas > 0 ? "M-5 -5L4 0L-5 5Z" : "M5 -5L-4 0L5 5Z",
        transform: `translate(${place(sigmas)} 10)`}) :
      svgElement("circle", {cx: place(sigmas), cy: 10, r: 4.2});
    const spread = isNumber(variant.val_sd) && noise && noise.sigma > 0 ? variant.val_sd / noise.sigma : 0;
    const whisker = svgElement("line", {x1: place(sigmas - spread), y1: 10, x2: place(sigmas + spread), y2: 10,
      "stroke-width": 2});
    mark.style.fill = whisker.style.stroke = `var(${variant.colour})`;
    svg.append(whisker, mark);
  }
  return svg;
}

function seedsThat(variant, number) {
  const of = (variant.runs || []).length;
  return !isNumber(number) ? MISSING : number === 0 ? "0" : `${number} of ${of}`;
}

function comparison() {
  const sizes = variants.map((variant) => Math.abs(variant.delta_sigmas)).filter(isNumber);
  const reach = Math.max(6, Math.min(15, Math.max(0, ...sizes) * 1.05));
  const number = (key, label, hint, digits, text = fixed, extra = {}) => ({key, label, hint, number: true,
    value: (variant) => variant[key], cell: (variant) => text(variant[key], digits), ...extra});
  const isReference = (variant) => variant.verdict === "reference";
  const columns = [
    {key: "name", label: "Variant", hint: "Sort by name", value: (variant) => variant.name,
      cell: (variant) => [swatch(variant), ` ${variant.name}`, element("span", {class: "narrow"},
        verdictBadge(variant.verdict))]},
    number("val_loss", "Val. loss", "Last validation loss: mean ± standard deviation over seeds", 4, fixed, {
      cell: (variant) => [fixed(variant.val_loss, 4), element("span", {class: "quiet"},
        isNumber(variant.val_sd) ? ` ± ${fixed(variant.val_sd, 4)}` : "")]}),
    number("delta", "Difference", "Validation loss minus the reference's", 4, signed, {
      cell: (variant) => (isReference(variant) ? MISSING : signed(variant.delta, 4))}),
    number("delta_sigmas", "In σ", "The difference divided by the noise floor's standard deviation", 1, signed, {
      class: "number sigmas", cell: (variant) => [noise ? deltaPlot(variant, reach) : "",
        element("span", {}, isReference(variant) ? "" : signed(variant.delta_sigmas, 1))]}),
    {key: "verdict", label: "Verdict", hint: "Sort by verdict", value: (variant) =>
      Object.keys(VERDICTS).indexOf(variant.verdict), class: "sentence", cell: (variant) =>
      [verdictBadge(variant.verdict), element("span", {class: "words"}, variant.sentence || "")]},
    number("parameters", "Parameters", "Trained numbers of the model", 0, whole, {largestFirst: true}),
    number("parameter_difference_percent", "Δ param.", "Parameters more or less than the reference, in percent", 2,
      (value, digits) => (isNumber(value) ? signed(value, digits) + " %" : MISSING)),
    number("tokens_per_s", "Tokens/s", "Tokens trained a second", 0, whole, {largestFirst: true}),
    number("grad_norm_max_first_100", "Max. grad.", "Largest gradient norm of the first 100 steps", 2, fixed,
      {largestFirst: true}),
    number("loss_oscillation", "Oscillation", "How far the training loss swings around its trend, second half, nats", 3,
      fixed, {largestFirst: true}),
    number("stalled", "Stalled", "Runs that stayed at the unigram loss", 0, fixed, {largestFirst: true,
      cell: (variant) => seedsThat(variant, variant.stalled)}),
    number("diverged", "Diverged", "Runs whose loss rose more than 1 above its start", 0, fixed, {largestFirst: true,
      cell: (variant) => seedsThat(variant, variant.diverged)}),
  ];
  byId("comparison-note").textContent = (data.reference ? `Everything is compared with ${data.reference}. ` : "") +
    (noise ? "Under “In σ” the shaded band is ± 3 σ of the noise floor; an arrow points past the edge. " : "") +
    "Lower loss is better. A column's head sorts by it.";
  byId("comparison-table").replaceChildren(
    sortableTable("variants-table", "Comparison of variants", columns, variants));
}

// ---- noise floor ----------------------------------------------------------------------------------------------------

function noiseFloor() {
  if (!noise) {
    byId("noise-body").replaceChildren(element("p", {}, "There is no noise floor: it takes several finished runs of " +
      "one variant that differ in nothing but the seed. Without it no difference can be told from chance."));
    return;
  }
  const figure = (value, label) => element("div", {}, element("dt", {}, label), element("dd", {}, value));
  byId("noise-body").replaceChildren(
    element("dl", {class: "numbers"},
      figure(fixed(noise.sigma, 4), "σ, the standard deviation"),
      figure(fixed(noise.range, 4), "range, largest minus smallest"),
      figure(fixed(noise.threshold_run, 4), "3 σ, for a run"),
      figure(fixed(noise.threshold_difference, 4), "4.24 σ, for a difference")),
    element("p", {}, `${count(noise.runs, "run")} of ${noise.of} that differ in nothing but the seed end within ` +
      `${fixed(noise.range, 4)} of each other: that much is chance.`),
    element("ul", {},
      element("li", {}, element("strong", {}, `${fixed(noise.threshold_run, 4)} = 3 σ: `),
        `a single run this far from the mean of ${noise.of} is unlikely to be chance.`),
      element("li", {}, element("strong", {}, `${fixed(noise.threshold_difference, 4)} = 3 · √2 σ = 4.24 σ: `),
        "two single runs must differ by this much, since each of them brings its own chance.")));
}

// ---- differences of configs -----------------------------------------------------------------------------------------

function differences() {
  const changed = variants.filter((variant) => (variant.changes || []).length);
  const rows = changed.flatMap((variant) => variant.changes.map((change, i) => element("tr",
    {class: i ? null : "first"},
    i ? null : element("th", {scope: "rowgroup", rowspan: variant.changes.length}, swatch(variant), ` ${variant.name}`),
    element("td", {}, element("code", {}, change.key)),
    element("td", {}, element("code", {}, change.before ?? MISSING)),
    element("td", {}, element("code", {}, change.after ?? MISSING)))));
  const table = !changed.length ? element("p", {}, "The variants' configs do not differ.") :
    scrollBox("Changed settings", element("table", {id: "changes-table"}, element("thead", {}, element("tr", {},
      ...["Variant", "Setting", data.reference || "before", "Variant's"].map((label) =>
        element("th", {scope: "col"}, label)))), element("tbody", {}, ...rows)));
  byId("differences-body").replaceChildren(table);
  if (runs.length > 1) {
    byId("differences-body").append(twoRuns());
  }
}

function twoRuns() {
  const result = element("div", {"aria-live": "polite"});
  const choice = (label, chosen) => element("select", {"aria-label": label},
    ...runs.map((run, i) => element("option", {value: i, selected: i === chosen}, run.name)));
  const [one, other] = [choice("First run", 0), choice("Second run", runs.length - 1)];
  const text = (value) => (value === undefined ? MISSING : typeof value === "string" ? value : JSON.stringify(value));
  const cell = (value) => element("td", {}, element("code", {}, text(value)));
  function compare() {
    const [a, b] = [one, other].map((select) => runs[Number(select.value)].config || {});
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => text(a[key]) !== text(b[key]));
    result.replaceChildren(!keys.length ? element("p", {}, "No setting differs.") :
      scrollBox("Settings of two runs", element("table", {}, element("tbody", {}, ...keys.sort().map((key) =>
        element("tr", {}, element("th", {scope: "row"}, element("code", {}, key)),
          cell(a[key]), cell(b[key])))))));
  }
  one.addEventListener("change", compare);
  other.addEventListener("change", compare);
  compare();
  return remember(element("details", {id: "two-runs"}, element("summary", {}, "Compare the settings of two runs"),
    element("p", {class: "choices"}, one, other), result));
}

// ---- warnings, runs, environment ------------------------------------------------------------------------------------

function lints() {
  const found = data.lints || [];
  const signs = {error: "✕", warning: "▲", info: "i"};
  byId("lints-body").replaceChildren(!found.length ? element("p", {}, "Nothing was found.") :
    element("ul", {class: "lints"}, ...found.map((lint) => element("li", {"data-severity": lint.severity},
      element("span", {class: "sign", "aria-hidden": "true"}, signs[lint.severity] || "i"),
      element("div", {},
        element("p", {}, element("strong", {}, `${lint.severity} ${lint.id}`), lint.where ? ` in ${lint.where}` : ""),
        element("p", {}, lint.what || ""), element("p", {class: "quiet"}, lint.advice || ""))))));
}

function duration(seconds) {
  if (!isNumber(seconds)) {
    return MISSING;
  }
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${fixed(seconds, 0)} s`;
}

function runList() {
  const lastOf = (values) => (values || []).findLast(isNumber);
  const number = (key, label, hint, value, cell) => ({key, label, hint, number: true, value, cell});
  byId("runs-body").replaceChildren(sortableTable("runs-table", "Runs", [
    {key: "name", label: "Run", value: (run) => run.name,
      cell: (run) => [variantOf.has(run.variant) ? swatch(variantOf.get(run.variant)) : "", ` ${run.name}`]},
    {key: "state", label: "State", value: (run) => run.state,
      cell: (run) => [element("span", {class: "state", "data-state": run.state}, run.state || MISSING)]},
    number("seed", "Seed", "", (run) => run.seed),
    number("steps", "Last step", "", (run) => lastOf(run.steps), (run) => whole(lastOf(run.steps))),
    number("loss", "Training loss", "The last one", (run) => lastOf(run.loss), (run) => fixed(lastOf(run.loss), 4)),
    number("val_loss", "Val. loss", "The last one", (run) => lastOf(run.val_loss),
      (run) => fixed(lastOf(run.val_loss), 4)),
    number("seconds", "Time", "Seconds of training", (run) => run.seconds, (run) => duration(run.seconds)),
    {key: "folder", label: "Folder", value: (run) => run.folder, class: "folder"},
  ], runs));
}

function environment() {
  const found = data.environment || [];
  const keys = [...new Set(found.flatMap((one) => Object.keys(one)))];
  const heads = keys.map((key) => element("th", {scope: "col"}, key.replace(/_/g, " ")));
  const table = () => scrollBox("Environment", element("table", {id: "environment-table"},
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...found.map((one) => element("tr", {}, ...keys.map((key) =>
      element("td", {}, one[key] === null || one[key] === undefined ? MISSING : String(one[key]))))))));
  byId("environment-body").replaceChildren(...(!found.length ? [element("p", {}, "Nothing is known of it.")] : [
    found.length > 1 ? element("p", {}, `The runs were made in ${found.length} different environments: ` +
      "compare their speeds with care.") : "", table()]));
}
