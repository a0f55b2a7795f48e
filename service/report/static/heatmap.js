// Heat map: the mean of people's means in each cell of two attributes.
const HARM = [[244, 241, 234], [250, 214, 165], [240, 150, 94], [200, 74, 54], [110, 22, 44]];
const COOL = [[244, 241, 234], [178, 209, 226], [100, 160, 200], [40, 100, 160], [12, 50, 100]];
const MIN_PEOPLE = 5;

function drawHeat() {
  const home = byId("heat");
  const [down, across] = [attribute(state.heatRow), attribute(state.heatColumn)];
  byId("heat-figure").hidden = !(down && across && metricNow());
  if (!(down && across && metricNow())) return;
  const metric = metricNow();
  const cells = heatCells(rowsInView([state.heatTool]).filter(averaged), down, across);
  const values = [...cells.values()].map((c) => c.mean);
  home.replaceChildren();
  if (!values.length) return home.append(el("p", {}, "No figure for this choice."));
  const reach = Math.max(...values.map((v) => Math.abs(v - centre(metric, values)))) || 1;
  const head = el("tr", {}, el("td", { class: "empty" }, `${down.label} ↓ ${across.label} →`), across.values.map((v) => el("th", { scope: "col" }, el("bdi", {}, v))));
  const body = down.values.map((d) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, d)), across.values.map((a) => heatCell(cells.get(d + "\n" + a), metric, values, reach))));
  home.append(el("table", {}, el("caption", { class: "visually-hidden" }, `${metric.name} of ${state.heatTool} by ${down.label} and ${across.label}`), el("thead", {}, head), el("tbody", {}, body)));
  home.append(heatScale(metric, values, reach));
}

function heatCells(rows, down, across) {
  const people = new Map();
  for (const { item, value } of rows) {
    if (value === null) continue;
    const place = groupOf(item, down.name) + "\n" + groupOf(item, across.name);
    const cell = people.get(place) ?? people.set(place, new Map()).get(place);
    (cell.get(item.subject) ?? cell.set(item.subject, []).get(item.subject)).push(value);
  }
  const cells = new Map();
  for (const [place, persons] of people) {
    const means = [...persons.values()].map((v) => v.reduce((a, b) => a + b, 0) / v.length);
    const results = [...persons.values()].reduce((n, v) => n + v.length, 0);
    cells.set(place, { place, n: means.length, results, mean: means.reduce((a, b) => a + b, 0) / means.length });
  }
  return cells;
}

const centre = (metric, values) => metric.perfect ?? Math.min(...values);

function heatColour(metric, values, reach, value) {
  const share = (value - centre(metric, values)) / reach;
  return ramp(share < 0 && metric.direction === "signed" ? COOL : HARM, Math.abs(share));
}

function heatCell(cell, metric, values, reach) {
  if (!cell) return el("td", { class: "empty" }, "no figure");
  const colour = heatColour(metric, values, reach, cell.mean);
  const thin = cell.n < MIN_PEOPLE;
  const [row, column] = cell.place.split("\n");
  const says = `${row}, ${column}: ${num(cell.mean)}${unitOf(metric)}, ${count(cell.n, "person", "people")}${thin ? ", few people" : ""}`;
  const chosen = state.cell === cell.place;
  const button = el("button", { type: "button", "aria-label": says, "aria-pressed": String(chosen), onclick: () => chooseCell(chosen ? null : cell.place) }, num(cell.mean), el("small", {}, `n ${cell.n}${thin ? " · few" : ""}`));
  const td = el("td", { class: thin ? "thin" : null }, button);
  td.style.backgroundColor = rgb(colour);
  td.style.color = inkOn(colour);
  return td;
}

function heatScale(metric, values, reach) {
  const middle = centre(metric, values);
  const low = Math.min(...values, middle);
  const high = Math.max(...values, middle);
  const stops = [0, 0.2, 0.4, 0.6, 0.8, 1].map((s) => rgb(heatColour(metric, values, reach, low + (high - low) * s)));
  const bar = el("span", { class: "swatch" });
  bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
  return el("div", { class: "scale" }, num(low), bar, num(high) + unitOf(metric), metric.says ? ` · ${metric.says}` : "");
}

function chooseCell(place) {
  state.cell = place;
  drawHeat();
  drawItems(true);
  byId("heat").querySelector('[aria-pressed="true"]')?.focus();
}
