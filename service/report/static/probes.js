// The heat maps of the text probes: a chosen cell shows its figures under its map.
function showProbeCell(button, cells) {
  const table = button.closest("table");
  const panel = table.closest(".scroll").nextElementSibling;
  for (const chosen of table.querySelectorAll("td[data-chosen]")) chosen.removeAttribute("data-chosen");
  button.parentElement.setAttribute("data-chosen", "");
  panel.replaceChildren(
    ...cells[Number(button.dataset.probeCell)].map(([name, value]) => {
      const pair = document.createElement("div");
      const term = document.createElement("dt");
      const said = document.createElement("dd");
      term.textContent = name;
      said.textContent = value;
      pair.append(term, said);
      return pair;
    }),
  );
}

const probeCells = document.getElementById("probe-cells");
if (probeCells) {
  const cells = JSON.parse(probeCells.textContent);
  for (const button of document.querySelectorAll("[data-probe-cell]")) {
    button.addEventListener("click", () => showProbeCell(button, cells));
  }
}
