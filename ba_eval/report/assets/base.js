// Helpers. Nothing here or in the other scripts makes markup from text: every text becomes a text node.

const STATES = ["missing", "ungraded", "error", "undecided", "wrong", "correct"];
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Makes an element: properties, then children (nodes or texts). Names with a dash are set as attributes. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Decodes a block of the page: base64 of deflated JSON. */
async function decode(id) {
  let element;
  // The browser may still be reading the file: a block is whole when something stands behind it.
  while (!(element = document.getElementById(id))?.nextSibling && document.readyState === "loading") {
    await new Promise((done) => setTimeout(done, 20));
  }
  const text = element.textContent;
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Buttons and a line of text for what is shown of a long list; `go(first)` shows another part. */
function pager(output, previous, next, first, size, total, what) {
  const last = Math.min(first + size, total);
  output.textContent = total ? `${whole.format(first + 1)}–${whole.format(last)} of ${whole.format(total)} ${what}` : `no ${what}`;
  previous.disabled = first === 0;
  next.disabled = last >= total;
}

/** Makes the marked headers of static tables sort their rows by the first line of a cell. */
function makeSortable(table) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    if (!("sort" in header.dataset)) return;
    const button = make("button", { type: "button" });
    button.append(header.firstElementChild.textContent);
    header.firstElementChild.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = header.getAttribute("aria-sort") ? header.getAttribute("aria-sort") === "ascending" : column > 0;
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].firstElementChild?.textContent ?? "";
      const number = (text) => (text === "-" || text === "" ? NaN : Number(text.replaceAll(",", "").replace("−", "-")));
      const rows = [...table.tBodies[0].rows];
      const numeric = column > 0;
      rows.sort((a, b) => {
        if (!numeric) return value(a).localeCompare(value(b), "en", { numeric: true }) * (down ? -1 : 1);
        const [x, y] = [number(value(a)), number(value(b))];
        return Number.isNaN(x) - Number.isNaN(y) || (down ? y - x : x - y) || 0;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
