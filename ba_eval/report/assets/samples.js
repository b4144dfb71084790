// The sample browser: filters, a list in pages, one or two samples side by side.

const PAGE = 25;

/** All samples in flat arrays, from the index of the page. */
function readIndex(index) {
  const offsets = []; // first unit of each benchmark
  let units = 0;
  for (const benchmark of index.benchmarks) {
    offsets.push(units);
    units += benchmark.problems.length * benchmark.n;
  }
  const place = new Map(); // unit -> [block, position]
  index.blocks.forEach((block, number) => block.forEach((unit, position) => place.set(unit, [number, position])));
  const rows = [];
  index.benchmarks.forEach((benchmark, b) => {
    for (let spot = 0; spot < benchmark.problems.length * benchmark.n; spot++) {
      for (let m = 0; m < index.models.length; m++) rows.push({ m, b, spot });
    }
  });
  return { ...index, offsets, place, rows };
}

function browser(data) {
  const $ = (id) => document.getElementById(id);
  const filters = { model: $("f-model"), benchmark: $("f-benchmark"), outcome: $("f-outcome"), reason: $("f-reason") };
  const [problem, text, cut, other, differ, plain] = ["f-problem", "f-text", "f-cut", "f-other", "f-differ", "f-plain"].map($);
  const body = $("sample-rows");
  const status = $("sample-status");
  const view = { rows: data.rows, first: 0, order: "benchmark", down: false, shown: null, search: 0 };
  const blocks = new Map(); // decoded, the last few
  const statements = $("statements").textContent ? decode("statements") : null;
  const names = data.benchmarks.map((benchmark) => new Set(benchmark.problems));

  const cell = (row) => data.cells[row.m][row.b];
  const state = (row) => STATES[cell(row).state[row.spot]];
  const reason = (row) => cell(row).reasons[cell(row).reason[row.spot]] ?? "";
  const problemOf = (row) => data.benchmarks[row.b].problems[Math.floor(row.spot / data.benchmarks[row.b].n)];
  const indexOf = (row) => row.spot % data.benchmarks[row.b].n;
  const same = (a, b) => a && b && a.m === b.m && a.b === b.b && a.spot === b.spot;
  const compared = () => (other.value === "" ? null : Number(other.value));

  async function block(number) {
    if (!blocks.has(number)) {
      blocks.set(number, decode(`block-${number}`));
      if (blocks.size > 24) blocks.delete(blocks.keys().next().value);
    }
    return blocks.get(number);
  }

  async function entry(row) {
    const at = data.place.get(data.offsets[row.b] + row.spot);
    return at ? (await block(at[0]))[at[1]][row.m] : undefined;
  }

  // Filters

  function keep(row, skip) {
    const chosen = (name) => name !== skip && filters[name].value !== "";
    if (chosen("model") && row.m !== Number(filters.model.value)) return false;
    if (chosen("benchmark") && row.b !== Number(filters.benchmark.value)) return false;
    if (chosen("outcome") && state(row) !== filters.outcome.value) return false;
    if (chosen("reason") && reason(row) !== filters.reason.value) return false;
    if (cut.checked && cell(row).cut[row.spot] !== "1") return false;
    const name = problem.value.trim();
    if (name && problemOf(row) !== name) {
      if (names[row.b].has(name)) return false; // a whole name stands for itself alone
      if (!problemOf(row).toLowerCase().includes(name.toLowerCase())) return false;
    }
    if (differ.checked && compared() !== null) {
      const twin = { ...row, m: compared() };
      if (row.m === twin.m || state(row) === state(twin)) return false;
    }
    return true;
  }

  function fillReasons() {
    const counts = new Map();
    for (const row of data.rows) {
      if (keep(row, "reason") && reason(row)) counts.set(reason(row), (counts.get(reason(row)) ?? 0) + 1);
    }
    const chosen = filters.reason.value;
    const options = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 100);
    filters.reason.replaceChildren(make("option", { value: "" }, "any"));
    for (const [name, count] of options) filters.reason.append(make("option", { value: name }, `${name} (${whole.format(count)})`));
    filters.reason.value = counts.has(chosen) ? chosen : "";
  }

  async function filter() {
    const search = ++view.search; // a newer one ends this one
    fillReasons();
    let rows = data.rows.filter((row) => keep(row));
    const wanted = text.value.trim().toLowerCase();
    if (wanted) rows = await searched(rows, wanted, search);
    if (search !== view.search) return;
    view.rows = sorted(rows);
    view.first = 0;
    list();
    const note = wanted ? ` with “${text.value.trim()}” (only samples whose text is in this file)` : "";
    status.textContent = `${whole.format(rows.length)} samples${note}`;
    if (rows.length && !rows.some((row) => same(row, view.shown))) show(view.rows[0]);
  }

  async function searched(rows, wanted, search) {
    const of = new Map(); // block -> its rows
    for (const row of rows) {
      const at = data.place.get(data.offsets[row.b] + row.spot);
      if (!at) continue;
      if (!of.has(at[0])) of.set(at[0], []);
      of.get(at[0]).push(row);
    }
    const found = new Set();
    let done = 0;
    for (const [number, members] of of) {
      const units = await block(number);
      if (search !== view.search) return [];
      for (const row of members) {
        const one = units[data.place.get(data.offsets[row.b] + row.spot)[1]][row.m];
        if (one && [one.text, one.thinking, one.extracted].some((part) => part?.toLowerCase().includes(wanted))) found.add(row);
      }
      if (++done % 20 === 0) status.textContent = `searching: ${Math.round((100 * done) / of.size)} %`;
    }
    return rows.filter((row) => found.has(row));
  }

  // The list

  const keys = {
    outcome: (row) => cell(row).state[row.spot],
    model: (row) => row.m,
    benchmark: (row) => row.b * 1e9 + row.spot,
    problem: (row) => row.b * 1e9 + row.spot,
    reason: (row) => reason(row),
    tokens: (row) => cell(row).tokens[row.spot],
  };

  function sorted(rows) {
    const key = keys[view.order];
    const sign = view.down ? -1 : 1;
    return rows
      .map((row) => [key(row), row])
      .sort(([a, x], [b, y]) => sign * (a < b ? -1 : a > b ? 1 : 0) || x.b - y.b || x.spot - y.spot || x.m - y.m)
      .map(([, row]) => row);
  }

  function list() {
    body.replaceChildren(
      ...view.rows.slice(view.first, view.first + PAGE).map((row) => {
        const name = `${problemOf(row)} #${indexOf(row)}`;
        const open = make("button", { type: "button", className: "row", "aria-label": `Show ${data.models[row.m]}, ${data.benchmarks[row.b].name}, ${name}` });
        appendPlain(open, name);
        const tokens = cell(row).tokens[row.spot];
        const line = make(
          "tr",
          {},
          make("td", {}, make("span", { className: `outcome ${state(row)}` }, state(row))),
          make("td", {}, data.models[row.m]),
          make("td", {}, data.benchmarks[row.b].name),
          make("th", { scope: "row" }, open),
          make("td", {}),
          make("td", { className: "number" }, (tokens < 0 ? "-" : whole.format(tokens)) + (cell(row).cut[row.spot] === "1" ? " (cut)" : "")),
        );
        appendPlain(line.cells[4], reason(row).slice(0, 80));
        line.addEventListener("click", () => show(row));
        return line;
      }),
    );
    mark();
    pager($("sample-range"), $("sample-previous"), $("sample-next"), view.first, PAGE, view.rows.length, "samples");
  }

  function mark() {
    [...body.rows].forEach((line, at) => {
      if (same(view.rows[view.first + at], view.shown)) line.setAttribute("aria-current", "true");
      else line.removeAttribute("aria-current");
    });
  }

  function turn(by) {
    view.first = Math.max(0, view.first + by * PAGE);
    list();
    body.querySelector("button")?.focus();
  }

  function move(by) {
    const at = view.rows.findIndex((row) => same(row, view.shown));
    const next = view.rows[at + by];
    if (!next) return;
    const first = Math.floor((at + by) / PAGE) * PAGE;
    if (first !== view.first) {
      view.first = first;
      list();
    }
    show(next);
    body.querySelector("[aria-current] button")?.focus();
  }

  // One sample, or two

  function show(row) {
    view.shown = row;
    mark();
    const rows = [row];
    if (compared() !== null && compared() !== row.m) rows.push({ ...row, m: compared() });
    const panes = $("panes");
    panes.className = rows.length > 1 ? "panes two" : "panes";
    panes.replaceChildren(...rows.map(pane));
    ask(row);
    const name = [data.models[row.m], data.benchmarks[row.b].name, problemOf(row), indexOf(row)];
    history.replaceState(null, "", `#sample=${name.map(encodeURIComponent).join("/")}`);
  }

  /** Shows what the problem asks, above the samples. */
  async function ask(row) {
    const known = statements && (await statements)[row.b][Math.floor(row.spot / data.benchmarks[row.b].n)];
    if (row !== view.shown) return;
    const place = $("statement");
    const folded = place.querySelector("details")?.open === false;
    place.replaceChildren();
    if (!known) return;
    const [statement, ...golds] = known;
    const details = make("details", { open: !folded }, make("summary", {}, "Problem"));
    const shown = make("div", { className: "statement" }, plain.checked ? plainText(statement) : richText(statement, ""));
    if (golds.length) {
      const answers = golds.join(", or ");
      const line = make("p", {}, make("strong", {}, "Accepted answer: "));
      line.append(plain.checked ? plainText(answers) : inlineMath(answers));
      shown.append(line);
    }
    details.append(shown);
    place.append(details);
  }

  function pane(row) {
    const benchmark = data.benchmarks[row.b];
    const node = make("article", { className: "pane", "aria-label": `Sample of ${data.models[row.m]}` });
    const steps = make("div", { className: "steps" }, `sample #${indexOf(row)} of ${benchmark.n}`);
    for (const [by, sign, label] of [[-1, "‹", "Previous sample of this problem"], [1, "›", "Next sample of this problem"]]) {
      const button = make("button", { type: "button", className: "button", "aria-label": label, disabled: indexOf(row) + by < 0 || indexOf(row) + by >= benchmark.n }, sign);
      button.addEventListener("click", () => {
        const next = pane({ ...row, spot: row.spot + by });
        node.replaceWith(next);
        (next.querySelector(`[aria-label="${label}"]:enabled`) ?? next.querySelector("button:enabled"))?.focus();
      });
      steps.append(button);
    }
    const meta = make("div", { className: "meta" });
    const tokens = cell(row).tokens[row.spot];
    appendPlain(meta, `${benchmark.name} / ${problemOf(row)}`);
    if (tokens >= 0) meta.append(` · ${whole.format(tokens)} tokens${cell(row).cut[row.spot] === "1" ? ", cut" : ""}`);
    const apart = benchmark.apart[problemOf(row)];
    if (apart) appendPlain(meta, ` · apart, not in the score: ${apart}`);
    const verdict = make("div", {}, make("span", { className: `outcome ${state(row)}` }, state(row)));
    if (reason(row)) appendPlain(verdict, ` · ${reason(row)}`);
    node.append(make("div", { className: "head" }, make("h3", {}, data.models[row.m]), meta, verdict, steps));
    const content = make("div", {}, "…");
    node.append(content);
    entry(row).then((one) => {
      content.replaceChildren(...(one ? parts(row, one) : [absent(row, one)]));
    });
    return node;
  }

  function parts(row, one) {
    const nodes = [];
    const language = data.benchmarks[row.b].kind.startsWith("code") ? "python" : "";
    const body = (content) => (plain.checked ? plainText(content) : richText(content, language));
    const folded = (title, fill, className = "") => {
      const details = make("details", { className }, make("summary", {}, title));
      details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(fill()), { once: true });
      nodes.push(details);
    };
    if (one.error) nodes.push(make("div", {}, make("strong", {}, "Not generated: "), plainText(one.error)));
    if (one.thinking !== undefined) {
      const length = whole.format(one.thinking.length);
      folded(`Thinking (${length} characters${one.open ? ", never ended" : ""})`, () => make("div", {}, body(one.thinking)), "thinking");
    }
    if (one.text) nodes.push(body(one.text));
    else if (!one.error) nodes.push(make("p", { className: "caption" }, "No answer."));
    if (one.extracted !== undefined) folded("What was extracted", () => (language ? codeBlock(one.extracted, language) : plainText(one.extracted)));
    if (one.details !== undefined) folded("How it was graded", () => plainText(`${one.grader}, ${one.method}\n${one.details}`));
    if (one.left_out) nodes.push(elsewhere(row, `${whole.format(one.left_out)} characters are left out here.`));
    return nodes;
  }

  function absent(row, one) {
    const kept = data.place.has(data.offsets[row.b] + row.spot);
    if (kept || one === null) return make("p", { className: "caption" }, "This sample was not generated.");
    if (state(row) === "missing") return make("p", { className: "caption" }, "This sample was not generated.");
    return elsewhere(row, "The text of this sample is not in this file.");
  }

  function elsewhere(row, what) {
    const node = make("p", { className: "caption" }, `${what} It is in the run folder: `);
    node.append(make("code", {}, cell(row).file));
    appendPlain(node, `, problem_id ${problemOf(row)}, index ${indexOf(row)}.`);
    return node;
  }

  // Wiring

  data.models.forEach((name, m) => {
    filters.model.append(make("option", { value: m }, name));
    other.append(make("option", { value: m }, name));
  });
  data.benchmarks.forEach((benchmark, b) => filters.benchmark.append(make("option", { value: b }, benchmark.name)));
  const present = new Set(data.cells.flat().flatMap((one) => [...new Set(one.state)]));
  STATES.forEach((name, digit) => present.has(String(digit)) && filters.outcome.append(make("option", { value: name }, name)));
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 250);
  };
  for (const control of [...Object.values(filters), cut, differ]) control.addEventListener("change", filter);
  other.addEventListener("change", () => {
    differ.disabled = compared() === null;
    if (differ.checked) filter();
    if (view.shown) show(view.shown);
  });
  plain.addEventListener("change", () => view.shown && show(view.shown));
  for (const control of [problem, text]) control.addEventListener("input", soon);
  $("filters").addEventListener("submit", (event) => (event.preventDefault(), filter()));
  $("filters").addEventListener("reset", () => setTimeout(() => ((differ.disabled = true), filter()), 0));
  $("sample-previous").addEventListener("click", () => turn(-1));
  $("sample-next").addEventListener("click", () => turn(1));
  body.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      move(by);
    }
  });
  for (const header of document.querySelectorAll("#sample-table [data-key]")) {
    const button = make("button", { type: "button" }, header.textContent);
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      view.down = view.order === header.dataset.key && !view.down;
      view.order = header.dataset.key;
      document.querySelectorAll("#sample-table [aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", view.down ? "descending" : "ascending");
      view.rows = sorted(view.rows);
      view.first = 0;
      list();
    });
  }

  function fromAddress() {
    const parts = location.hash.startsWith("#sample=") ? location.hash.slice(8).split("/") : [];
    if (parts.length !== 4) return null;
    let names;
    try {
      names = parts.map(decodeURIComponent);
    } catch {
      return null;
    }
    const m = data.models.indexOf(names[0]);
    const b = data.benchmarks.findIndex((benchmark) => benchmark.name === names[1]);
    const row = data.benchmarks[b]?.problems.indexOf(names[2]) ?? -1;
    const index = Number(names[3]);
    if (m < 0 || row < 0 || !(index >= 0 && index < data.benchmarks[b].n)) return null;
    return { m, b, spot: row * data.benchmarks[b].n + index };
  }

  /** Shows a sample, and the page of the list that has it. */
  function goTo(row) {
    const at = view.rows.findIndex((one) => same(one, row));
    if (at >= 0) {
      view.first = Math.floor(at / PAGE) * PAGE;
      list();
    }
    show(row);
  }

  /** Shows the samples of one problem, and of one model where it is given. */
  function narrow(b, name, m) {
    $("filters").reset();
    filters.benchmark.value = b;
    filters.model.value = m ?? "";
    problem.value = name;
    setTimeout(() => {
      filter();
      $("samples").scrollIntoView();
      $("f-model").focus({ preventScroll: true });
    }, 1);
  }

  window.addEventListener("hashchange", () => {
    const row = fromAddress();
    if (row && !same(row, view.shown)) goTo(row);
  });

  for (const control of [other, differ]) control.closest("label").hidden = data.models.length < 2;
  differ.disabled = true;
  const asked = fromAddress();
  fillReasons();
  list();
  if (asked) {
    goTo(asked);
    $("samples").scrollIntoView();
  } else {
    const first = view.rows[0];
    if (first) {
      const address = location.hash;
      show(first);
      history.replaceState(null, "", address || location.pathname + location.search);
    }
  }
  return narrow;
}
