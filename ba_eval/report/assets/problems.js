// Scores of every model on every problem, as a table whose cells lead to their samples.

function problemTable(data, narrow) {
  const $ = (id) => document.getElementById(id);
  const SIZE = 50;
  const select = $("p-benchmark");
  const view = { first: 0, order: -1, down: true };

  /** Per problem and model: share of correct samples, null where none counts. */
  function scores(b) {
    const { problems, n } = data.benchmarks[b];
    return problems.map((name, row) => {
      const shares = data.models.map((_, m) => {
        let scored = 0;
        let correct = 0;
        for (let spot = row * n; spot < (row + 1) * n; spot++) {
          const state = data.cells[m][b].state[spot];
          if (state >= "3") scored++;
          if (state === "5") correct++;
        }
        return scored ? correct / scored : null;
      });
      const known = shares.filter((share) => share !== null);
      const mean = known.length ? known.reduce((sum, share) => sum + share, 0) / known.length : null;
      return { name, row, shares, mean, spread: known.length ? Math.max(...known) - Math.min(...known) : null };
    });
  }

  const value = (one) => (view.order === -2 ? one.row : view.order === -1 ? one.mean : view.order === -3 ? one.spread : one.shares[view.order]);
  const percent = (share) => (share === null ? "-" : (100 * share).toFixed(1));

  function draw() {
    const b = Number(select.value);
    const rows = scores(b);
    rows.sort((a, c) => {
      const [x, y] = [value(a), value(c)];
      return (x === null) - (y === null) || (view.down ? y - x : x - y) || a.row - c.row;
    });
    const head = make("tr");
    const columns = [["problem", -2], ["mean", -1], ["spread", -3], ...data.models.map((name, m) => [name, m])];
    for (const [name, order] of columns) {
      const button = make("button", { type: "button" }, name);
      const header = make("th", { scope: "col", className: order === -2 ? "label" : "" }, button);
      if (order === view.order) header.setAttribute("aria-sort", view.down ? "descending" : "ascending");
      button.addEventListener("click", () => {
        view.down = order === view.order ? !view.down : order !== -2;
        view.order = order;
        view.first = 0;
        draw();
        $("p-table").tHead.rows[0].cells[columns.findIndex((one) => one[1] === order)].firstElementChild.focus();
      });
      head.append(header);
    }
    $("p-table").tHead.replaceChildren(head);
    $("p-table").tBodies[0].replaceChildren(
      ...rows.slice(view.first, view.first + SIZE).map((one) => {
        const line = make("tr", {}, make("th", { scope: "row", className: "label", title: one.name }));
        appendPlain(line.cells[0], one.name);
        line.append(make("td", {}, percent(one.mean)), make("td", {}, percent(one.spread)));
        one.shares.forEach((share, m) => {
          const button = make("button", { type: "button", "aria-label": `${percent(share)} %, ${data.models[m]}, ${one.name}: show samples` }, percent(share));
          if (share !== null) button.style.backgroundColor = `rgb(var(--heat) / ${(0.06 + 0.5 * share).toFixed(3)})`;
          button.addEventListener("click", () => narrow(b, one.name, m));
          line.append(make("td", {}, button));
        });
        return line;
      }),
    );
    pager($("p-range"), $("p-previous"), $("p-next"), view.first, SIZE, rows.length, "problems");
  }

  data.benchmarks.forEach((benchmark, b) => select.append(make("option", { value: b }, benchmark.name)));
  select.addEventListener("change", () => ((view.first = 0), draw()));
  $("p-previous").addEventListener("click", () => ((view.first -= SIZE), draw()));
  $("p-next").addEventListener("click", () => ((view.first += SIZE), draw()));
  $("p-details").addEventListener("toggle", draw, { once: true });
}
