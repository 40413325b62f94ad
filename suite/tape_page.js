"use strict";
// Draws a tape: a row a node, and beside the rows the lanes of their values (train/tape_lanes.h).

const nodes = data.nodes;
const isLeaf = (node) => node.operands.length === 0;
const PITCH = 14;   // of lanes, pixels
const HEIGHT = 26;  // of a row, as in the style sheet

// {key: {value(node), text(value)}}: what colours nodes.
const MEASURES = {
  time: {value: (node) => node.forward_s + node.backward_s, text: (value) => milliseconds(value)},
  bytes: {value: (node) => node.bytes, text: (value) => bytesText(value)},
};

// 0.00123, 12.3, 1230: never an exponent.
const threeDigits = (value) => (value < 999.5 ? value.toPrecision(3) : String(Math.round(value)));

function milliseconds(seconds) {
  return seconds > 0 ? `${threeDigits(1e3 * seconds)} ms` : MISSING;
}

function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  for (; value >= 999.5 && unit + 1 < units.length; ++unit) {
    value /= 1000;
  }
  return bytes ? `${unit ? threeDigits(value) : value} ${units[unit]}` : MISSING;
}

// From the card's colour to orange by the root of the share: most nodes take little beside the largest.
const heat = (share) => `color-mix(in oklab, var(--heat) ${(100 * Math.sqrt(share)).toFixed(1)}%, var(--none))`;

// The module that a row stands under, of a layer its part: "model.layers.0.self_attn". A leaf stands under its reader's,
// in front of which it is made.
const readersOf = nodes.map(() => []);
nodes.forEach((node, id) => new Set(node.operands).forEach((operand) => readersOf[operand].push(id)));
const moduleOf = (id) => {
  const first = readersOf[id][0];
  const {scope} = isLeaf(nodes[id]) && first !== undefined ? nodes[first] : nodes[id];
  return (/^model\.layers\.\d+\.[^.]+/.exec(scope) || [scope])[0];
};

// ---- lanes ----------------------------------------------------------------------------------------------------------

const laneCount = nodes.reduce((most, node) => node.below.reduce((top, lane) => Math.max(top, lane + 1), most), 1);
const x = (lane) => PITCH * (lane + 0.5);

// Lines from the row before, to the row behind, and from the operands' lanes to the node.
function paths(node) {
  const middle = HEIGHT / 2;
  const through = node.above.filter((lane) => node.below.includes(lane));
  const parts = through.map((lane) => `M${x(lane)} 0V${HEIGHT}`);
  for (const lane of node.above.filter((one) => !through.includes(one))) {
    parts.push(`M${x(lane)} 0V${lane === node.lane ? middle : 0}`);
  }
  for (const lane of node.from.filter((one) => one !== node.lane)) {
    const bend = 6 * Math.sign(node.lane - lane);
    parts.push(`M${x(lane)} 0V${middle - 6}Q${x(lane)} ${middle} ${x(lane) + bend} ${middle}H${x(node.lane)}`);
  }
  if (node.lane >= 0 && node.below.includes(node.lane)) {
    parts.push(`M${x(node.lane)} ${middle}V${HEIGHT}`);
  }
  return parts.join("");
}

function drawing(node) {
  const width = PITCH * laneCount;
  const svg = svgElement("svg", {width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true"},
    svgElement("path", {d: paths(node)}));
  if (node.lane >= 0) {
    svg.append(svgElement("circle", {cx: x(node.lane), cy: HEIGHT / 2, r: 4.5}));
  }
  return svg;
}

// ---- tables ---------------------------------------------------------------------------------------------------------

function row(node, id) {
  const weights = node.operands.filter((operand) => nodes[operand].op === "parameter");
  const names = weights.map((operand) => nodes[operand].scope.split(".").slice(-2).join("."));
  const cell = (text, kind = "number") => element("td", {class: kind}, text);
  return element("tr", {id: `node-${id}`, "data-leaf": isLeaf(node)},
    element("th", {scope: "row"}, `#${id}`), element("td", {class: "lanes"}, drawing(node)),
    cell(node.op, ""), cell(node.shape, ""), cell(names.join(", "), "small"),
    element("td", {class: "number heat"}), cell(milliseconds(node.forward_s)), cell(milliseconds(node.backward_s)),
    cell(bytesText(node.bytes)), cell(general(node.value_length)),
    cell("gradient_length" in node ? general(node.gradient_length) : MISSING),
    cell(node.operands.map((operand) => `#${operand}`).join(" "), "small"), cell(node.called_at, "small"));
}

const COLUMNS = [["Node", ""], ["", ""], ["Op", ""], ["Shape", ""], ["Weights", ""], ["", "heat number"],
  ["Forward", "number"], ["Backward", "number"], ["Bytes", "number"], ["|value|", "number"], ["|grad|", "number"],
  ["Reads", ""], ["Called at", ""]];

function tapeTable() {
  const body = element("tbody");
  let module = null;
  nodes.forEach((node, id) => {
    if (moduleOf(id) !== module) {
      module = moduleOf(id);
      const lanes = {lane: -1, from: [], above: node.above, below: node.above};
      body.append(element("tr", {class: "module"}, element("th", {scope: "rowgroup"}),
        element("td", {class: "lanes"}, drawing(lanes)), element("th", {colspan: COLUMNS.length - 2}, module)));
    }
    body.append(row(node, id));
  });
  byId("tape-body").replaceChildren(scrollBox("Nodes of the tape", element("table", {id: "tape-table"},
    element("thead", {}, element("tr", {}, ...COLUMNS.map(([label, kind]) =>
      element("th", {scope: "col", class: kind}, label)))), body)));
}

// Every module with the sums of what lies in it, "model.layers.0" with its parts'.
function modulesTable() {
  const sums = new Map();
  nodes.forEach((node, id) => {
    const parts = moduleOf(id).split(".");
    for (let length = 1; length <= parts.length; ++length) {
      const name = parts.slice(0, length).join(".");
      const isList = length < parts.length && /^\d+$/.test(parts[length]);  // "model.layers" is a list, not a module
      if (!isList) {
        const sum = sums.get(name) || {first: id, count: 0, forward: 0, backward: 0, bytes: 0};
        sums.set(name, {first: isLeaf(nodes[sum.first]) ? id : sum.first, count: sum.count + 1,
          forward: sum.forward + node.forward_s, backward: sum.backward + node.backward_s,
          bytes: sum.bytes + node.bytes});
      }
    }
  });
  const all = nodes.reduce((sum, node) => sum + MEASURES.time.value(node), 0);
  const rows = [...sums].map(([name, sum]) => element("tr", {},
    element("th", {scope: "row"}, element("a", {href: `#node-${sum.first}`}, name || "(no module)")),
    ...[whole(sum.count), milliseconds(sum.forward), milliseconds(sum.backward),
      all ? `${(100 * (sum.forward + sum.backward) / all).toFixed(1)} %` : MISSING, bytesText(sum.bytes)]
      .map((text) => element("td", {class: "number"}, text))));
  byId("modules-body").replaceChildren(scrollBox("Time and memory of each module", element("table", {id: "modules"},
    element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "Module"),
      ...["Nodes", "Forward", "Backward", "Share of time", "Bytes"].map((label) =>
        element("th", {scope: "col", class: "number"}, label)))), element("tbody", {}, ...rows))));
}

// ---- choices --------------------------------------------------------------------------------------------------------

function paint() {
  const measure = MEASURES[document.querySelector("input[name=measure]:checked").value];
  const values = nodes.map(measure.value);
  const largest = values.reduce((most, value) => Math.max(most, value), 0);
  nodes.forEach((node, id) => {
    const colour = heat(largest ? values[id] / largest : 0);
    const place = byId(`node-${id}`);
    const cell = place.querySelector(".heat");
    cell.textContent = measure.text(values[id]);
    cell.style.background = colour;
    const circle = place.querySelector("circle");
    if (circle) {
      circle.style.fill = colour;
    }
  });
}

function showLeaves() {
  const shown = byId("leaves").checked;
  nodes.forEach((node, id) => {
    byId(`node-${id}`).hidden = isLeaf(node) && !shown;
  });
}

function choose(id) {
  nodes.forEach((node, other) => {
    const marks = byId(`node-${other}`).classList;
    marks.toggle("chosen", other === id);
    marks.toggle("operand", id !== null && nodes[id].operands.includes(other));
    marks.toggle("reader", id !== null && node.operands.includes(id));
  });
}

byId("facts").textContent = data.summary;
modulesTable();
tapeTable();
paint();
showLeaves();
document.querySelectorAll("input[name=measure]").forEach((input) => input.addEventListener("change", paint));
byId("leaves").addEventListener("change", showLeaves);
byId("tape-table").addEventListener("pointerover", (event) => {
  const place = event.target.closest("tr[id]");
  choose(place ? Number(place.id.slice("node-".length)) : null);
});
byId("tape-table").addEventListener("pointerleave", () => choose(null));
// Scripts are done; the frame after this one has been painted when the second callback comes.
requestAnimationFrame(() => setTimeout(() => {
  document.documentElement.dataset.readyMs = Math.round(performance.now());
}, 0));
