// What the reader has chosen. It lives in the address after "#view:", so that a link shows the same view.
const defaults = firstView();
const state = { ...defaults, item: null, find: "", cell: null };

function firstView() {
  const metric = report.metrics.find((m) => m.id === "detail_change") ?? report.metrics[0];
  const tools = report.tools.filter((t) => !t.control).map((t) => t.label);
  const shown = tools.length ? tools : report.tools.map((t) => t.label);
  const heat = report.heat ?? [];
  return {
    metric: metric?.id ?? "", region: metric?.regions[0] ?? "", group: report.attributes[0]?.name ?? "",
    task: "", change: "", tools: shown, heatTool: shown[0] ?? "", heatRow: heat[0] ?? "", heatColumn: heat[1] ?? "", ended: "",
  };
}

const SAVED = ["metric", "region", "group", "task", "change", "heatTool", "heatRow", "heatColumn", "ended"];

function writeAddress() {
  const query = new URLSearchParams();
  for (const name of SAVED) if (state[name] !== defaults[name]) query.set(name, state[name]);
  if (state.tools.join("\n") !== defaults.tools.join("\n")) for (const t of state.tools) query.append("tool", t);
  if (state.item !== null) query.set("item", report.items[state.item].id);
  const text = query.toString();
  if (!text && !location.hash.startsWith("#view:")) return;
  try {
    history.replaceState(null, "", text ? "#view:" + text : location.pathname + location.search);
  } catch { /* a sandboxed frame may forbid it; the view still works */ }
}

function readAddress() {
  if (!location.hash.startsWith("#view:")) return false;
  const query = new URLSearchParams(location.hash.slice(6));
  for (const name of SAVED) state[name] = query.get(name) ?? defaults[name];
  const known = new Set(report.tools.map((t) => t.label));
  const tools = query.getAll("tool").filter((t) => known.has(t));
  state.tools = tools.length ? tools : [...defaults.tools];
  const item = report.items.findIndex((i) => i.id === query.get("item"));
  state.item = item < 0 ? null : item;
  mend();
  return true;
}

// An address written by another version, or by hand, must not break the page.
function mend() {
  const metric = report.metrics.find((m) => m.id === state.metric) ?? report.metrics[0];
  state.metric = metric?.id ?? "";
  if (!metric?.regions.includes(state.region)) state.region = metric?.regions[0] ?? "";
  for (const name of ["group", "heatRow", "heatColumn"]) {
    if (!report.attributes.some((a) => a.name === state[name])) state[name] = defaults[name];
  }
  if (!report.tools.some((t) => t.label === state.heatTool)) state.heatTool = defaults.heatTool;
}

const metricNow = () => report.metrics.find((m) => m.id === state.metric);
const columnNow = () => report.values[`${state.metric}|${state.region}`] ?? [];
const attribute = (name) => report.attributes.find((a) => a.name === name);
const groupOf = (item, name) => item.groups[name] ?? "unknown";

function inView(item, tools) {
  return tools.includes(item.tool) && (!state.task || item.task === state.task) && (!state.change || item.change === state.change);
}

// Items set aside by the cleaning are listed, but no chart averages them.
const averaged = (row) => !row.item.aside;

function rowsInView(tools = state.tools) {
  const column = columnNow();
  const rows = [];
  report.items.forEach((item, index) => {
    if (inView(item, tools)) rows.push({ item, index, value: column[index] ?? null });
  });
  return rows;
}

// How far a figure is from an unharmed face: larger is worse, whatever the metric's direction.
function badness(metric, value) {
  if (value === null) return -Infinity;
  if (metric.direction === "higher_is_better") return -value;
  if (metric.direction === "signed") return Math.abs(value - (metric.perfect ?? 0));
  return value;
}
