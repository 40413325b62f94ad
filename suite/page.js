"use strict";
// What the pages share: the data, elements, numbers as text, colours.

// ---- helpers --------------------------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
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

// A box of its own for what may be wider than the page; it can be focused, so that arrow keys scroll it.
function scrollBox(label, table) {
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": label}, table);
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

const count = (number, one, many = one + "s") => `${whole(number)} ${number === 1 ? one : many}`;

// ---- colours --------------------------------------------------------------------------------------------------------

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
