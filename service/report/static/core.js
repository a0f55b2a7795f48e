// The report's data, and small tools to build elements without any HTML parsing.
const report = JSON.parse(document.getElementById("report-data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const MINUS = "\u2212";
let pictureCache = null;

const byId = (id) => document.getElementById(id);

function picture(number) {
  pictureCache ??= JSON.parse(byId("report-pictures").textContent);
  return pictureCache[number];
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function num(value, digits = 3, sign = false) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let shown = size >= 1000 ? Math.round(size).toLocaleString("en-GB") : String(Number(size.toPrecision(digits)));
  if (shown.includes("e")) shown = size.toFixed(digits + 4);
  return (value < 0 ? MINUS : sign ? "+" : "") + shown;
}

const count = (n, one, many) => `${n.toLocaleString("en-GB")} ${n === 1 ? one : many ?? one + "s"}`;
const words = (name) => name.replaceAll("_", " ");
const unitOf = (metric) => (metric.unit ? " " + metric.unit : "");

function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? power;
  const found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step) {
    found.push(Math.abs(v) < step * 1e-6 ? 0 : Number(v.toPrecision(12)));
  }
  return found;
}

// Colours for people with any colour vision: Okabe-Ito for names, a cividis ramp for scales.
const dark = matchMedia("(prefers-color-scheme: dark)");
const NAMED_DARK = ["#56b4e9", "#e69f00", "#2fc48d", "#e08bbd", "#d8c25a", "#9fd3f7", "#bda2e0", "#b0b0b0"];
const RAMP_DARK = [[92, 132, 196], [116, 142, 178], [142, 150, 154], [172, 163, 132], [208, 188, 104], [245, 216, 84]];
const NAMED = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5195", "#666666"];
const RAMP = [[0, 54, 112], [64, 81, 107], [112, 112, 115], [154, 143, 112], [200, 178, 86], [245, 214, 70]];

function ramp(stops, share) {
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  return stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
}

const rgb = (c) => `rgb(${c[0]} ${c[1]} ${c[2]})`;

function groupColour(attribute, value) {
  if (value === "unknown") return "#8b8f96";
  const known = attribute.values.filter((v) => v !== "unknown");
  const place = known.indexOf(value);
  if (attribute.ordinal) return rgb(ramp(dark.matches ? RAMP_DARK : RAMP, known.length < 2 ? 0.4 : place / (known.length - 1)));
  return (dark.matches ? NAMED_DARK : NAMED)[place % NAMED.length];
}

function inkOn(c) {
  const [r, g, b] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.32 ? "#14181e" : "#ffffff";
}
