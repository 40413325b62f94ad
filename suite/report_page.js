"use strict";
// Puts the page together: head, list of variants, controls, theme, printing, and reloading while runs go on.

// ---- head -----------------------------------------------------------------------------------------------------------

function head() {
  const states = new Map();
  runs.forEach((run) => states.set(run.state, (states.get(run.state) || 0) + 1));
  const unfinished = [...states].filter(([name]) => name !== "finished").map(([name, number]) => `${number} ${name}`);
  byId("facts").textContent = [count(variants.length, "variant"),
    count(runs.length, "run") + (unfinished.length ? ` (${unfinished.join(", ")})` : ""),
    data.reference ? `reference ${data.reference}` : null, data.made].filter(Boolean).join(" · ");
  const verdicts = Object.keys(VERDICTS).filter((verdict) => verdict !== "reference")
    .map((verdict) => [verdict, variants.filter((variant) => variant.verdict === verdict)])
    .filter(([, found]) => found.length);
  byId("verdicts").replaceChildren(...verdicts.map(([verdict, found]) => element("li",
    {title: found.map((variant) => variant.name).join(", ")}, verdictBadge(verdict, `${found.length} `))));
  byId("footer").textContent = "Made by minillm report" + (data.made ? ` on ${data.made}` : "") +
    ". Losses are in nats a token. This file is complete: it asks no network for anything.";
}

// ---- the list of variants and runs ----------------------------------------------------------------------------------

function picker() {
  const boxes = [];
  const box = (label, ...content) => {
    const input = element("input", {type: "checkbox"});
    return [input, element("label", {}, input, ...content, element("span", {}, label))];
  };
  byId("variants").replaceChildren(...variants.map((variant) => {
    const [all, allLabel] = box(variant.name, swatch(variant));
    const own = runsOf(variant);
    const singles = own.map((run) => {
      const [one, label] = box(`seed ${run.seed}`);
      one.setAttribute("aria-label", run.name);
      one.addEventListener("change", () => setShown([run], one.checked));
      boxes.push(() => { one.checked = isShown(run); });
      const isOver = run.state === "finished";
      return element("li", {}, label, isOver ? "" :
        element("span", {class: "state", "data-state": run.state}, run.state));
    });
    all.addEventListener("change", () => setShown(own, all.checked));
    boxes.push(() => {
      const shown = own.filter(isShown).length;
      all.checked = shown > 0;
      all.indeterminate = shown > 0 && shown < own.length;
    });
    const item = element("li", {}, allLabel);
    allLabel.addEventListener("pointerenter", () => pointAt(variant));
    allLabel.addEventListener("pointerleave", () => chartCalled("validation").graph?.clearSelection());
    if (own.length > 1 || own.some((run) => run.state !== "finished")) {
      item.append(remember(element("details", {id: `seeds-${variant.name}`},
        element("summary", {"aria-label": `Runs of ${variant.name}`}, String(own.length)),
        element("ul", {}, ...singles))));
    }
    return item;
  }));

  function setShown(which, shown) {
    const names = which.map((run) => run.name);
    state.hidden = state.hidden.filter((name) => !names.includes(name)).concat(shown ? [] : names);
    boxes.forEach((update) => update());
    drawAll();
    save();
  }
  boxes.forEach((update) => update());
  byId("show-all").addEventListener("click", () => setShown(runs, true));
  byId("show-none").addEventListener("click", () => setShown(runs, false));
}

// Brings a variant's line of the validation chart to the front.
function pointAt(variant) {
  const {curves = [], graph} = chartCalled("validation");
  const line = curves.findIndex((curve) => curve.variant === variant && !curve.run);
  if (line >= 0 && graph) {
    graph.setSelection(graph.numRows() - 1, `c${line}`);
  }
}

// ---- controls -------------------------------------------------------------------------------------------------------

function choice(name, legend, options, changed) {
  const title = legend ? element("legend", {}, legend) : "";
  return element("fieldset", {"aria-label": legend || name}, title, element("span", {class: "segments"},
    ...options.map(([value, label]) => {
      const input = element("input", {type: "radio", name, value, checked: state[name] === value,
        onchange: () => { state[name] = value; changed(); save(); }});
      return element("label", {}, input, element("span", {}, label));
    })));
}

const chartCalled = (id) => charts.find((chart) => chart.spec.id === id);

// Controls of a single chart stand in its head.
const OWN_CONTROLS = {validation: validationControls, loss: smoothingControl};

function validationControls() {
  const changed = () => { delete state.ranges.validation; draw(chartCalled("validation")); };
  const singles = element("input", {type: "checkbox", id: "singles", checked: state.singles,
    onchange: () => { state.singles = singles.checked; draw(chartCalled("validation")); save(); }});
  const kinds = [["loss", "loss"], ["bits", "bits/byte"], ["difference", "difference"]];
  return [choice("validation", "", kinds, changed), element("label", {class: "check"}, singles, "single seeds")];
}

function smoothingControl() {
  const output = element("output", {for: "smoothing"}, state.smoothing.toFixed(2));
  const slider = element("input", {type: "range", id: "smoothing", min: 0, max: 0.98, step: 0.02,
    value: state.smoothing, oninput: () => {
      state.smoothing = Number(slider.value);
      output.textContent = state.smoothing.toFixed(2);
      draw(chartCalled("loss"));
    }, onchange: save});
  return [element("label", {class: "slider"}, "smoothing", slider, output)];
}

function controls() {
  const entire = element("input", {type: "checkbox", id: "whole", checked: state.whole,
    onchange: () => { state.whole = entire.checked; state.ranges = {}; drawAll(); save(); }});
  const button = (id, label, text, act) => element("button", {type: "button", id, "aria-label": label, title: label,
    onclick: act}, text);
  byId("controls").replaceChildren(
    choice("x", "Across", [["steps", "steps"], ["tokens", "tokens"]], drawAll),
    element("label", {class: "check", title: "Also the high losses of the first steps and of runs that diverge"},
      entire, "whole range of losses"),
    element("span", {class: "zoom", role: "group", "aria-label": "Zoom"},
      button("zoom-in", "Zoom in: half as many steps", "+", () => zoomBy(0.5)),
      button("zoom-out", "Zoom out: twice as many steps", "\u2212", () => zoomBy(2)),
      button("zoom-reset", "Show everything", "Reset", resetZoom)));
  byId("zoom-reset").disabled = !state.window && !Object.keys(state.ranges).length;
}

function chartFrames() {
  byId("charts").replaceChildren(...CHARTS.map((spec) => {
    const log = element("input", {type: "checkbox", checked: Boolean(state.log[spec.id]), onchange: () => {
      state.log[spec.id] = log.checked;
      delete state.ranges[spec.id];
      draw(chart);
      save();
    }});
    const chart = {spec, log, stale: true, title: element("h3"), note: element("span", {class: "quiet note"}),
      canvas: element("div", {class: "canvas"}),
      readout: element("div", {class: "readout", hidden: true}),
      spoken: element("p", {class: "unseen", "aria-live": "polite"})};
    chart.plot = element("div", {class: "plot", tabindex: "0", role: "group", onkeydown: (event) => walk(chart, event)},
      chart.canvas, chart.readout, chart.spoken);
    charts.push(chart);
    return element("figure", {class: spec.wide ? "chart wide" : "chart", id: `chart-${spec.id}`},
      element("figcaption", {}, chart.title, chart.note,
        element("span", {class: "own"}, ...(OWN_CONTROLS[spec.id] ? OWN_CONTROLS[spec.id]() : []),
          element("label", {class: "check"}, log, "log"))), chart.plot);
  }));
  byId("charts").append(element("p", {class: "quiet hint"}, "Drag to zoom, double-click to undo it, hold shift and " +
    "drag to move. With the keyboard: arrows read values; plus, minus and 0 zoom."));
}

// What gnuplot drew, where dygraphs is not installed. As images, so that no text inside can act on the page.
function figures() {
  const found = data.figures || [];
  byId("curves").classList.add("static");
  byId("charts").replaceChildren(...found.map((figure) => element("figure", {class: "chart wide drawn"},
    element("figcaption", {}, element("h3", {}, figure.title || "")),
    element("img", {alt: figure.title || "curves", src: "data:image/svg+xml," + encodeURIComponent(figure.svg)}))));
  byId("charts").append(element("p", {class: "quiet hint"}, found.length ?
    "These curves stand still: dygraphs was not installed where this page was made (package libjs-dygraphs)." :
    "No curves: neither dygraphs nor gnuplot was installed where this page was made."));
}

// ---- theme and printing ---------------------------------------------------------------------------------------------

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  resolved.clear();
  drawAll();
}

function themes() {
  const order = ["auto", "light", "dark"];
  const label = () => {
    byId("theme").textContent = {auto: "◐ auto", light: "○ light", dark: "● dark"}[state.theme];
    byId("theme").setAttribute("aria-label", `Colours: ${state.theme}. Press to change.`);
  };
  byId("theme").addEventListener("click", () => {
    state.theme = order[(order.indexOf(state.theme) + 1) % order.length];
    setTheme(state.theme);
    label();
    save();
  });
  label();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(state.theme));
  // Paper is white and narrower than most windows, and charts do not shrink by themselves.
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    setTheme("light");
    charts.filter((chart) => chart.stale).forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    setTheme(state.theme);
  });
}

// ---- reloading while runs go on -------------------------------------------------------------------------------------

function watch() {
  if (!(data.watch_seconds > 0)) {
    return;
  }
  const pause = element("button", {type: "button", id: "pause", onclick: () => {
    state.paused = !state.paused;
    label();
    save();
  }});
  const text = element("span");
  const label = () => {
    pause.textContent = state.paused ? "Go on" : "Pause";
    text.textContent = state.paused ? "not updating " : `updates every ${data.watch_seconds} s `;
    byId("watch").dataset.paused = state.paused;
  };
  let held = false;  // nobody's zoom is cut off in the middle
  window.addEventListener("pointerdown", () => { held = true; });
  window.addEventListener("pointerup", () => { held = false; });
  setInterval(() => {
    if (!state.paused && !held) {
      save();
      location.reload();
    }
  }, data.watch_seconds * 1000);
  byId("watch").append(text, pause);
  byId("watch").hidden = false;
  label();
}

// ---- start ----------------------------------------------------------------------------------------------------------

function start() {
  const scroll = state.scroll;
  if (window.innerWidth < 900) {
    byId("picker").open = false;
  }
  remember(byId("picker"));
  head();
  if (interactive) {
    chartFrames();
    controls();
    picker();
    drawAll();
  } else {
    figures();
  }
  themes();
  comparison();
  noiseFloor();
  differences();
  lints();
  runList();
  environment();
  watch();
  if ("scrollRestoration" in history) {
    history.scrollRestoration = "manual";
  }
  if (performance.getEntriesByType("navigation")[0]?.type !== "navigate") {
    window.scrollTo({top: scroll, behavior: "instant"});
  }
  window.addEventListener("pagehide", save);
  // Scripts are done; the frame after this one has been painted when the second callback comes.
  requestAnimationFrame(() => setTimeout(() => {
    document.documentElement.dataset.readyMs = Math.round(performance.now());
  }, 0));
}

start();
