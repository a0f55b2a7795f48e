// The three-part diagnosis: original with its points, result with displaced ones ringed, difference.
function heatFilter() {
  const table = (k) => [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]].map((c) => (c[k] / 255).toFixed(3)).join(" ");
  const transfer = svg("feComponentTransfer", {}, ["feFuncR", "feFuncG", "feFuncB"].map((f, k) => svg(f, { type: "table", tableValues: table(k) })));
  const grey = svg("filter", { id: "faint", "color-interpolation-filters": "sRGB" }, svg("feColorMatrix", { type: "saturate", values: "0" }));
  const holder = svg("svg", { width: 0, height: 0, "aria-hidden": "true" }, svg("filter", { id: "magma", "color-interpolation-filters": "sRGB" }, transfer), grey);
  document.body.append(holder);
}

function frame(label, ...inside) {
  return svg("svg", { viewBox: "0 0 1000 1000", role: "img", "aria-label": label }, ...inside);
}

const shown = (number, attributes) => svg("image", { href: picture(number), width: 1000, height: 1000, preserveAspectRatio: "none", ...attributes });

function dots(points) {
  const marks = svg("g", { class: "marks" });
  for (let k = 0; points && k < points.length; k += 2) marks.append(svg("circle", { class: "pt", cx: points[k], cy: points[k + 1], r: 7 }));
  return marks;
}

function ringed(after, before, kept) {
  const marks = svg("g", { class: "marks" });
  for (let k = 0; after && k < after.length; k += 2) {
    const lost = kept && kept[k / 2] === "0";
    if (lost && before) marks.append(svg("line", { class: "shift", x1: before[k], y1: before[k + 1], x2: after[k], y2: after[k + 1] }));
    marks.append(svg("circle", { class: lost ? "pt-lost" : "pt", cx: after[k], cy: after[k + 1], r: 7 }));
    if (lost) marks.append(svg("circle", { class: "ring", cx: after[k], cy: after[k + 1], r: 17 }));
  }
  return marks;
}

function trio(index) {
  const item = report.items[index];
  const parts = report.trios[index];
  if (!parts) return el("p", { class: "no-picture-note" }, whyNoPicture(index, item));
  const lost = parts.kept ? [...parts.kept].filter((k) => k === "0").length : null;
  const result = parts.ep ? (lost ? `Result: ${lost} of 68 points displaced or lost` : lost === 0 ? "Result: all 68 points kept" : "Result") : "Result: no face found";
  const figures = [el("figure", {}, frame("Original with its points", shown(parts.o), dots(parts.op)), el("figcaption", {}, parts.op ? "Original, 68 points" : "Original"))];
  if (parts.e === undefined) {
    figures.push(el("figure", {}, el("div", { class: "no-picture" }, item.reason ?? report.outcomes[item.outcome]), el("figcaption", {}, "No result")));
  } else {
    figures.push(el("figure", {}, frame(result, shown(parts.e), ringed(parts.ep, parts.op, parts.kept)), el("figcaption", {}, result)));
    figures.push(el("figure", {}, frame("Where colours changed", shown(parts.o, { filter: "url(#faint)", opacity: 0.35 }), shown(parts.d, { filter: "url(#magma)", opacity: 0.86 })), el("figcaption", {}, "Difference: pale is much, dark is none")));
  }
  return el("div", { class: "trio" }, figures);
}

function whyNoPicture(index, item) {
  if (report.problems[index]) return `No picture here: ${report.problems[index]}.`;
  if (item.outcome === "refused" || item.outcome === "failed") return `No picture: the tool ${item.outcome === "refused" ? "refused" : "failed"}${item.reason ? ` (${item.reason})` : ""}.`;
  return "To keep this file small only the worst results of each tool carry their pictures; the run's folder holds this one.";
}

function healthLine(item) {
  return Object.entries(item.health).map(([profile, [score, decision, reasons]]) =>
    el("div", {}, el("p", {}, `Health, profile “${profile}”: `, el("strong", {}, score === null ? decision : `${num(score)} of 100, ${decision}`), profile === report.profile ? el("small", {}, " this one decides") : null),
      reasons.length ? el("ul", {}, reasons.map((r) => el("li", {}, el("bdi", {}, r)))) : null));
}

function figuresTable(index) {
  const regions = [...new Set(report.metrics.flatMap((m) => m.regions))].sort((a, b) => (b === "face") - (a === "face") || a.localeCompare(b));
  const rows = report.metrics.map((metric) => {
    const cells = regions.map((region) => figureCell(metric, region, index));
    return cells.every((c) => c === null) ? null : el("tr", {}, el("th", { scope: "row" }, metric.name, metric.unit ? el("small", {}, ` ${metric.unit}`) : null), cells.map((c) => c ?? el("td", {})));
  });
  if (rows.every((r) => r === null)) return el("p", {}, "No figure was taken of this result.");
  const head = el("tr", {}, el("th", { scope: "col" }, "Figure"), regions.map((r) => el("th", { scope: "col", class: "n" }, words(r))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures by part of the face" }, el("table", { class: "figures" }, el("thead", {}, head), el("tbody", {}, rows)));
}

function figureCell(metric, region, index) {
  const key = `${metric.id}|${region}`;
  const column = report.values[key];
  if (!column) return null;
  const here = metric.id === state.metric && region === state.region ? " current" : "";
  const value = column[index];
  if (value === null) {
    const reason = report.missing[key]?.[index];
    return reason === undefined ? null : el("td", { class: "n" + here, title: report.reasons[reason] }, el("small", {}, report.reasons[reason]));
  }
  const over = isOver(metric, value);
  return el("td", { class: "n" + (over ? " over" : "") + here }, num(value), over ? el("small", {}, "beyond alarm") : null);
}

function isOver(metric, value) {
  if (metric.threshold === null || metric.threshold === undefined) return false;
  if (metric.direction === "higher_is_better" || metric.threshold < 0) return value < metric.threshold;
  return Math.abs(value) > metric.threshold;
}

function showItem(index, order) {
  const item = report.items[index];
  const box = byId("detail");
  const opener = box.open ? box.opener : document.activeElement;
  state.item = index;
  const place = order.indexOf(index);
  const step = (by) => showItem(order[(place + by + order.length) % order.length], order);
  const button = (label, text, action) => el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: action }, text);
  const groups = report.attributes.filter((a) => a.planned).map((a) => `${a.label}: ${groupOf(item, a.name)}`).join(" · ");
  const tools = el("div", { class: "detail-tools" }, order.length > 1 ? [button("Previous result", "←", () => step(-1)), button("Next result", "→", () => step(1))] : null, button("Close", "✕", () => box.close()));
  const head = el("div", { class: "detail-head" }, el("div", {}, el("h2", { id: "detail-title", tabindex: -1, autofocus: true }, el("bdi", {}, item.portrait), " · ", el("bdi", {}, item.tool)), el("p", {}, `${item.task} · picture sent: ${item.change} · `, el("bdi", {}, groups))), tools);
  const marks = el("label", {}, el("input", { type: "checkbox", checked: true, onchange: (e) => body.classList.toggle("hide-points", !e.target.checked) }), "show points");
  const key = report.trios[index] ? el("div", { class: "key" }, marks, el("span", {}, report.trios[index].how), el("span", {}, "A ring: displaced or its detail gone; its line starts where the point was."), el("span", { class: "swatch-heat", role: "img", "aria-label": "dark to pale" }), el("span", {}, "no to strong difference")) : null;
  const ended = el("p", {}, el("span", { class: "pill" + (item.outcome === "face_lost" ? " pill-bad" : "") }, report.outcomes[item.outcome]), item.reason ? el("span", {}, " ", el("bdi", {}, item.reason)) : null);
  const warned = item.warnings.length ? el("ul", { class: "warned", "aria-label": "Warnings" }, item.warnings.map((w) => el("li", {}, el("bdi", {}, w)))) : null;
  const body = el("div", { class: "detail-body" }, ended, trio(index), key, el("div", { class: "health" }, healthLine(item)), warned, el("h3", {}, "Figures by part of the face"), figuresTable(index), el("p", {}, el("small", {}, "Item ", el("bdi", {}, item.id), " · person ", el("bdi", {}, item.subject), ". Figures were taken at full size; the pictures here are reduced.")));
  box.replaceChildren(head, body);
  box.opener = opener;
  if (!box.open) box.showModal();
  box.scrollTop = 0;
  box.onkeydown = (e) => { if (e.key === "ArrowLeft") step(-1); else if (e.key === "ArrowRight") step(1); };
  box.onclose = () => { state.item = null; writeAddress(); markChosen(); box.opener?.focus?.(); };
  markChosen();
  writeAddress();
}

function markChosen() {
  for (const dot of document.querySelectorAll(".dot.chosen")) dot.classList.remove("chosen");
  if (state.item !== null) document.querySelector(`.dot[data-item="${state.item}"]`)?.classList.add("chosen");
}

function drawWorst() {
  const home = byId("worst");
  for (const { tool, items } of report.worst) {
    const cards = items.map((index) => {
      const item = report.items[index];
      const score = item.health[report.profile]?.[0];
      const says = item.outcome === "measured" ? `health ${num(score ?? null)}` : report.outcomes[item.outcome];
      const link = el("button", { type: "button", class: "linkish", "data-item": index, onclick: () => showItem(index, items) }, el("bdi", {}, item.portrait));
      return el("article", { class: "worst-item" }, trio(index), el("p", {}, link, ` · ${says} · ${item.task}`));
    });
    home.append(el("div", { class: "worst-tool" }, el("h3", {}, el("bdi", {}, tool)), cards.length ? el("div", { class: "worst-list" }, cards) : el("p", {}, "No result of this tool carries a picture.")));
  }
}
