// The list of results: every dot of the charts as a row that the keyboard reaches.
const PAGE = 25;
let listed = [];
let pageEnd = PAGE;

function drawItems(fresh) {
  if (fresh) pageEnd = PAGE;
  const metric = metricNow();
  const find = state.find.trim().toLowerCase();
  listed = rowsInView().filter(({ item }) => {
    if (state.ended && item.outcome !== state.ended) return false;
    if (find && !(item.portrait.toLowerCase().includes(find) || item.subject.toLowerCase().includes(find))) return false;
    if (!state.cell) return true;
    return item.tool === state.heatTool && state.cell === groupOf(item, state.heatRow) + "\n" + groupOf(item, state.heatColumn);
  });
  const lost = (r) => (r.item.outcome === "face_lost" ? 1 : 0);
  listed.sort((a, b) => lost(b) - lost(a) || (metric ? badness(metric, b.value) - badness(metric, a.value) : 0) || a.index - b.index);
  const order = listed.map((r) => r.index);
  byId("items").tBodies[0].replaceChildren(...listed.slice(0, pageEnd).map((r) => itemRow(r, metric, order)));
  byId("items-more").hidden = listed.length <= pageEnd;
  const cell = state.cell ? ` in ${state.cell.replace("\n", ", ")} (${state.heatTool})` : "";
  byId("item-count").textContent = `${count(listed.length, "result")}${cell}, the worst first`;
}

function itemRow({ item, index, value }, metric, order) {
  const open = el("button", { type: "button", "data-item": index, onclick: () => showItem(index, order) }, el("bdi", {}, item.portrait));
  const score = item.health[report.profile];
  return el("tr", {},
    el("td", {}, open), el("td", {}, el("bdi", {}, item.tool)), el("td", {}, el("bdi", {}, state.group ? groupOf(item, state.group) : "all")),
    el("td", {}, `${item.task}, ${item.change}`), el("td", { class: "n" }, value === null ? "–" : num(value) + (metric ? unitOf(metric) : "")),
    el("td", { class: "n" }, score ? num(score[0]) : "–", score ? el("small", {}, score[1]) : null),
    el("td", {}, report.outcomes[item.outcome], item.aside ? el("small", {}, ` not averaged: ${item.aside}`) : null, item.reason ? el("small", {}, " ", el("bdi", {}, item.reason)) : null));
}

function bindItems() {
  byId("items-more").addEventListener("click", () => {
    const from = pageEnd;
    pageEnd += 4 * PAGE;
    drawItems(false);
    byId("items").tBodies[0].rows[from]?.querySelector("button").focus();
  });
  byId("item-filters").addEventListener("submit", (e) => e.preventDefault());
  byId("item-filters").addEventListener("input", (e) => {
    state[e.target.name] = e.target.value;
    writeAddress();
    drawItems(true);
  });
}
