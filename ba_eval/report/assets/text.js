// Shows a model's text: code is highlighted, formulas become MathML, the rest stays as it is. All within limits.

const LANGUAGES = { py: "python", python3: "python", js: "javascript", sh: "bash", shell: "bash", "c++": "cpp", cc: "cpp" };
const LONGEST_CODE = 40000; // characters that are highlighted
const LONGEST_FORMULA = 2000;
const MOST_FORMULAS = 400;
const FORMULA_TIME = 500; // milliseconds for the formulas of one text
// What moves, hides or reorders text: shown as what it is.
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const CLOSERS = { "$$": "$$", "\\[": "\\]", "\\(": "\\)", $: "$" };
const ENVIRONMENT = /\\begin\{((?:align|aligned|equation|gather|cases|array|[pbvBV]?matrix|multline|eqnarray)\*?)\}/y;

/** Appends text to a node; control characters become signs such as U+202E. */
function appendPlain(node, text) {
  let rest = text;
  for (let found; (found = CONTROL.exec(rest)); rest = rest.slice(found.index + 1)) {
    node.append(rest.slice(0, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    node.append(make("span", { className: "sign" }, `U+${code}`));
  }
  node.append(rest);
}

/** A text as it is, nothing rendered. */
function plainText(text) {
  const node = make("pre", { className: "wrapped", dir: "auto" });
  appendPlain(node, text);
  return node;
}

/** A program, highlighted where its language is known. */
function codeBlock(text, language) {
  const code = make("code");
  const name = LANGUAGES[language] ?? language;
  const grammar = Object.hasOwn(Prism.languages, name) && typeof Prism.languages[name] === "object" ? Prism.languages[name] : null;
  if (grammar && text.length <= LONGEST_CODE) appendTokens(code, Prism.tokenize(text, grammar));
  else appendPlain(code, text);
  return make("pre", { tabIndex: 0 }, code);
}

function appendTokens(node, tokens) {
  for (const token of Array.isArray(tokens) ? tokens : [tokens]) {
    if (typeof token === "string") {
      appendPlain(node, token);
      continue;
    }
    const span = make("span", { className: `token ${token.type}` });
    appendTokens(span, token.content);
    node.append(span);
  }
}

/** A response: fenced code, formulas, and plain text between them. `language` is that of fences that name none. */
function richText(text, language) {
  const root = make("div", { className: "response", dir: "auto" });
  const limits = { formulas: MOST_FORMULAS, until: performance.now() + FORMULA_TIME };
  let prose = [];
  const flush = () => {
    if (prose.length) appendProse(root, prose.join("\n"), limits);
    prose = [];
  };
  const lines = text.replace(/^\s*\n/, "").trimEnd().split("\n");
  for (let at = 0; at < lines.length; at++) {
    const fence = /^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})/.exec(lines[at]);
    if (!fence) {
      prose.push(lines[at]);
      continue;
    }
    flush();
    const code = [];
    const closes = (line) => line.trim().startsWith(fence[1]) && line.trim().length <= fence[1].length + 1;
    for (at++; at < lines.length && !closes(lines[at]); at++) code.push(lines[at]);
    root.append(codeBlock(code.join("\n"), (fence[2] || language || "").toLowerCase()));
    if (at < lines.length - 1 && lines[at + 1] === "") at++; // the block has its own margin
  }
  flush();
  return root;
}

function appendProse(root, text, limits) {
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign !== "$" && sign !== "\\" && sign !== "`") continue;
    const found = sign === "`" ? inlineCode(text, at) : limits.formulas > 0 ? formula(text, at) : null;
    if (!found) {
      if (sign === "\\" || text.startsWith("$$", at)) at++; // an escaped sign opens nothing
      continue;
    }
    const node = found.code ? make("code", {}, found.code) : mathNode(found.tex, found.display, limits);
    if (node) {
      const before = text.slice(from, at);
      appendPlain(root, found.display ? before.replace(/\n+$/, "") : before); // a displayed formula has its own margin
      root.append(node);
      from = found.end;
      if (found.display) while (text[from] === "\n") from++;
    }
    at = Math.max(at, found.end - 1);
  }
  appendPlain(root, text.slice(from));
}

/** An answer: its formula where it has one, else as it is. */
function inlineMath(text) {
  if (/[\\$^_{}]/.test(text) && text.length <= LONGEST_FORMULA) {
    return richText(text.includes("$") || text.startsWith("\\(") ? text : `$${text}$`, "");
  }
  const node = make("span");
  appendPlain(node, text);
  return node;
}

function inlineCode(text, at) {
  const end = text.indexOf("`", at + 1);
  if (end < 0 || end - at > 300 || end === at + 1) return null;
  const code = text.slice(at + 1, end);
  return code.includes("\n") || CONTROL.test(code) ? null : { code, end: end + 1 };
}

/** The formula that starts here, if one does: its TeX, whether it is displayed, and where it ends. */
function formula(text, at) {
  const window = text.slice(at, at + LONGEST_FORMULA);
  ENVIRONMENT.lastIndex = 0;
  const environment = ENVIRONMENT.exec(window);
  if (environment) {
    const closing = `\\end{${environment[1]}}`;
    const end = window.indexOf(closing);
    return end < 0 ? null : { tex: window.slice(0, end + closing.length), display: true, end: at + end + closing.length };
  }
  if (window.startsWith("\\boxed{")) {
    const end = closingBrace(window, 6);
    return end < 0 ? null : { tex: window.slice(0, end + 1), display: false, end: at + end + 1 };
  }
  const opener = ["$$", "\\[", "\\(", "$"].find((one) => window.startsWith(one));
  if (!opener) return null;
  const closer = CLOSERS[opener];
  const end = window.indexOf(closer, opener.length);
  if (end <= opener.length) return null;
  const tex = window.slice(opener.length, end);
  const after = window[end + 1] ?? "";
  // "$5 and $6" is money.
  if (opener === "$" && (/^\s|\s$|\\$|\n/.test(tex) || /\d/.test(after))) return null;
  if (/\n\s*\n/.test(tex)) return null;
  return { tex, display: opener === "$$" || opener === "\\[", end: at + end + closer.length };
}

function closingBrace(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return -1;
}

/** MathML of a formula; null where it cannot be made, then its source stays. */
function mathNode(tex, display, limits) {
  if (CONTROL.test(tex) || performance.now() > limits.until) return null;
  limits.formulas--;
  const node = make("span", { className: display ? "display" : "inline" });
  try {
    temml.render(tex, node, { displayMode: display, throwOnError: true, trust: false, maxExpand: 300, maxSize: [20, 300] });
  } catch {
    return null;
  }
  // A label is a name in the page, and a reference a link: neither is for a model to make.
  if (node.querySelector("a, img, [id], [href], [src]")) return null;
  return node;
}
