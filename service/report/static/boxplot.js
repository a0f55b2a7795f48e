// Box plots: one panel a tool, one row a group, one dot a result. Same scale in every panel.
const DOTS_AT_MOST = 4000;

function drawBoxes() {
  const home = byId("boxes");
  home.replaceChildren();
  const metric = metricNow();
  const by = attribute(state.group);
  if (!metric) return home.append(el("p", {}, "This run holds no figures to draw."));
  const rows = rowsInView().filter((r) => r.value !== null && averaged(r));
  if (!rows.length) return home.append(el("p", {}, "No figure for this choice."));
  const groups = by ? by.values : ["all"];
  const width = Math.max(320, home.clientWidth || 900);
  const scale = valueScale(metric, rows.map((r) => r.value), width);
  const skip = Math.max(1, Math.ceil(rows.length / DOTS_AT_MOST));
  for (const tool of report.tools.filter((t) => state.tools.includes(t.label))) {
    const mine = rows.filter((r) => r.item.tool === tool.label);
    home.append(boxPanel(tool, mine, { groups, by, metric, scale, width, skip }));
  }
  if (skip > 1) home.append(el("p", { class: "explain" }, `Boxes use all ${count(rows.length, "result")}; of the dots inside the whiskers every ${skip}th is drawn. The list below holds them all.`));
}

function valueScale(metric, values, width) {
  let low = Math.min(...extent(values));
  let high = Math.max(...extent(values));
  if (metric.perfect !== undefined) [low, high] = [Math.min(low, metric.perfect), Math.max(high, metric.perfect)];
  if (high - low < 1e-9) [low, high] = [low - 1, high + 1];
  const pad = (high - low) * 0.04;
  const left = width < 560 ? 104 : 170;
  const right = width - (width < 560 ? 58 : 120);
  const to = (v) => left + ((v - low + pad) / (high - low + 2 * pad)) * (right - left);
  return { low: low - pad, high: high + pad, left, right, to };
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
}

function boxPanel(tool, rows, view) {
  const { groups, by, metric, scale, width } = view;
  const step = width < 560 ? 46 : 42;
  const shown = groups.filter((g) => g !== "unknown" || rows.some((r) => !by || groupOf(r.item, by.name) === g));
  const height = shown.length * step + 34;
  const label = `${tool.label}: ${metric.name} by ${by ? by.label : "all"}`;
  const chart = svg("svg", { class: rows.length > 300 ? "many" : null, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  axis(chart, metric, scale, height, width);
  shown.forEach((group, line) => {
    const mine = by ? rows.filter((r) => groupOf(r.item, by.name) === group) : rows;
    boxRow(chart, mine, { ...view, group, y: line * step + step / 2 + 2, colour: by ? groupColour(by, group) : NAMED[0] });
  });
  return el("div", { class: "panel" }, el("h4", {}, el("bdi", {}, tool.label), tool.control && !tool.label.startsWith("control") ? el("small", {}, " control") : null), chart);
}

function axis(chart, metric, scale, height, width) {
  const bottom = height - 26;
  for (const v of ticks(scale.low, scale.high, width < 560 ? 3 : 7)) {
    if (v < scale.low || v > scale.high) continue;
    chart.append(svg("line", { class: "grid-line", x1: scale.to(v), x2: scale.to(v), y1: 0, y2: bottom }));
    chart.append(svg("text", { class: "soft", x: scale.to(v), y: bottom + 15, "text-anchor": "middle" }, num(v)));
  }
  chart.append(svg("text", { class: "soft", x: width, y: bottom + 15, "text-anchor": "end" }, metric.unit));
  if (metric.perfect !== undefined && metric.perfect >= scale.low && metric.perfect <= scale.high) {
    chart.append(svg("line", { class: "perfect-line", x1: scale.to(metric.perfect), x2: scale.to(metric.perfect), y1: 0, y2: bottom }));
  }
  const alarm = metric.threshold;
  if (alarm !== null && alarm !== undefined && alarm > scale.low && alarm < scale.high) {
    chart.append(svg("line", { class: "alarm-line", x1: scale.to(alarm), x2: scale.to(alarm), y1: 0, y2: bottom }));
    chart.append(svg("text", { class: "alarm-text", x: scale.to(alarm) + 4, y: 9 }, `alarm ${num(alarm)}`));
  }
}

function boxRow(chart, rows, view) {
  const { group, y, colour, scale, width, metric } = view;
  const people = new Set(rows.map((r) => r.item.subject)).size;
  const small = width < 560;
  chart.append(svg("text", { x: scale.left - 10, y: y + 4, "text-anchor": "end" }, fit(group, small ? 14 : 24), svg("title", {}, group)));
  const note = small ? `n ${rows.length}` : `n ${rows.length} · ${count(people, "person", "people")}`;
  chart.append(svg("text", { class: "soft", x: width, y: y + 4, "text-anchor": "end" }, note));
  if (!rows.length) return;
  const sorted = rows.map((r) => r.value).sort((a, b) => a - b);
  const [q1, middle, q3] = [0.25, 0.5, 0.75].map((s) => quantile(sorted, s));
  const reach = 1.5 * (q3 - q1);
  const low = sorted.find((v) => v >= q1 - reach);
  const high = sorted.findLast((v) => v <= q3 + reach);
  const says = `${group}: median ${num(middle)}${unitOf(metric)}, middle half ${num(q1)} to ${num(q3)}, ${count(rows.length, "result")}, ${count(people, "person", "people")}`;
  const row = svg("g", { role: "img", "aria-label": says });
  row.append(svg("line", { class: "whisker", x1: scale.to(low), x2: scale.to(high), y1: y, y2: y }));
  for (const end of [low, high]) row.append(svg("line", { class: "whisker", x1: scale.to(end), x2: scale.to(end), y1: y - 5, y2: y + 5 }));
  row.append(svg("rect", { class: "box", fill: colour, x: scale.to(q1), width: Math.max(1, scale.to(q3) - scale.to(q1)), y: y - 12, height: 24, rx: 3 }));
  chart.append(row);
  rows.forEach((r, k) => {
    const far = r.value < low || r.value > high;
    if (!far && k % view.skip) return;
    chart.append(svg("circle", {
      class: "dot" + (far ? " far" : "") + (r.index === state.item ? " chosen" : ""), fill: colour, r: far ? 4 : 3.6,
      cx: scale.to(r.value).toFixed(1), cy: (y + jitter(r.index) * 11).toFixed(1), "data-item": r.index,
    }));
  });
  chart.append(svg("line", { class: "median", x1: scale.to(middle), x2: scale.to(middle), y1: y - 13, y2: y + 13, "pointer-events": "none" }));
}

// The same item always gets the same place, so that a picture of the report can be compared with another.
function jitter(index) {
  const x = Math.sin((index + 1) * 12.9898) * 43758.5453;
  return (x - Math.floor(x)) * 2 - 1;
}

const fit = (text, letters) => (text.length > letters ? text.slice(0, letters - 1) + "…" : text);
