// Wires the page: choices, hover, the verdict table's filters, and what is drawn first.
function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
}

function fillFilters() {
  const form = byId("filters").elements;
  const heat = byId("heat-filters").elements;
  const distinct = (name) => [...new Set(report.items.map((i) => i[name]))].sort();
  const any = (name) => [["", "all"], ...distinct(name).map((v) => [v, v])];
  const attributes = report.attributes.map((a) => [a.name, a.label]);
  options(form.metric, report.metrics.map((m) => [m.id, m.name]), state.metric);
  options(form.region, (metricNow()?.regions ?? []).map((r) => [r, r === "face" ? "whole face" : words(r)]), state.region);
  options(form.group, attributes, state.group);
  options(form.task, any("task"), state.task);
  options(form.change, any("change"), state.change);
  options(heat.heatTool, report.tools.map((t) => [t.label, t.label]), state.heatTool);
  options(heat.heatRow, attributes, state.heatRow);
  options(heat.heatColumn, attributes, state.heatColumn);
  options(byId("item-filters").elements.ended, [["", "anything"], ...distinct("outcome").map((o) => [o, report.outcomes[o]])], state.ended);
  byId("tool-boxes").replaceChildren(...report.tools.map((t) => el("label", {}, el("input", { type: "checkbox", name: "tool", value: t.label, checked: state.tools.includes(t.label) }), el("bdi", {}, t.label), t.control && !t.label.startsWith("control") ? el("small", {}, "control") : null)));
}

function explain() {
  const metric = metricNow();
  if (!metric) return;
  const parts = [metric.name, metric.unit ? `in ${metric.unit}` : "", metric.says ?? "", metric.perfect !== undefined ? `an unharmed face has ${num(metric.perfect)}` : "", metric.threshold !== null && metric.threshold !== undefined ? `alarm at ${num(metric.threshold)}` : ""];
  byId("metric-note").textContent = parts.filter(Boolean).join(" · ");
}

function drawAll() {
  explain();
  drawBoxes();
  drawHeat();
  drawItems(true);
}

function bindFilters() {
  byId("filters").addEventListener("input", (e) => {
    if (e.target.name === "tool") state.tools = [...e.currentTarget.querySelectorAll("input:checked")].map((b) => b.value);
    else state[e.target.name] = e.target.value;
    state.cell = null;
    if (e.target.name === "metric") {
      mend();
      fillFilters();
    }
    writeAddress();
    drawAll();
  });
  byId("heat-filters").addEventListener("input", (e) => {
    state[e.target.name] = e.target.value;
    state.cell = null;
    writeAddress();
    drawHeat();
    drawItems(true);
  });
  for (const form of document.querySelectorAll("form.filters")) form.addEventListener("submit", (e) => e.preventDefault());
}

function bindDots() {
  const home = byId("boxes");
  const tip = byId("tip");
  home.addEventListener("click", (e) => {
    const index = e.target.dataset?.item;
    if (index !== undefined) showItem(Number(index), listed.some((r) => r.index === Number(index)) ? listed.map((r) => r.index) : [Number(index)]);
  });
  home.addEventListener("pointermove", (e) => {
    const index = e.target.dataset?.item;
    tip.hidden = index === undefined;
    if (tip.hidden) return;
    const item = report.items[Number(index)];
    const group = state.group ? `${groupOf(item, state.group)} · ` : "";
    tip.textContent = `${item.portrait} · ${group}${num(columnNow()[Number(index)])}${unitOf(metricNow())}`;
    tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${e.clientY + 18}px`;
  });
  home.addEventListener("pointerleave", () => { tip.hidden = true; });
}

const VERDICTS_FIRST = 12;
let allVerdicts = false;

function filterVerdicts() {
  const form = byId("verdict-filters");
  if (!form) return;
  const want = { verdict: form.elements.verdict.value, tool: form.elements.tool.value, attribute: form.elements.attribute.value };
  const rows = [...byId("verdict-table").tBodies];
  const fitting = rows.filter((r) => Object.entries(want).every(([k, v]) => !v || r.dataset[k] === v));
  const shownRows = new Set(allVerdicts ? fitting : fitting.slice(0, VERDICTS_FIRST));
  for (const row of rows) row.hidden = !shownRows.has(row);
  byId("verdict-count").textContent = `${shownRows.size} of ${count(rows.length, "comparison")}: differences found first, then claims made before the run`;
  byId("verdict-more").hidden = shownRows.size === fitting.length;
  byId("verdict-more").textContent = `Show all ${fitting.length}`;
}

function bindVerdicts() {
  const form = byId("verdict-filters");
  if (!form) return;
  form.addEventListener("input", () => { allVerdicts = false; filterVerdicts(); });
  byId("verdict-more").addEventListener("click", () => { allVerdicts = true; filterVerdicts(); });
}

function watchSections() {
  const links = new Map([...document.querySelectorAll(".bar a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const id of links.keys()) if (byId(id)) seen.observe(byId(id));
}

function start() {
  const linked = readAddress();
  for (const form of document.querySelectorAll("form.filters")) form.hidden = false;
  heatFilter();
  fillFilters();
  bindFilters();
  bindDots();
  bindItems();
  bindVerdicts();
  filterVerdicts();
  drawAll();
  drawWorst();
  watchSections();
  if (linked) byId("explore").scrollIntoView();
  if (state.item !== null) showItem(state.item, listed.map((r) => r.index));
  dark.addEventListener("change", drawBoxes);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawBoxes(); } });
  addEventListener("hashchange", () => { if (readAddress()) { fillFilters(); drawAll(); } });
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details.fold")) d.open = true; });
}

start();
