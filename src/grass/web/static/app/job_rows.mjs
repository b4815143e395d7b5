// Many jobs as text: one command a line, a CSV with a header, or GPUPeasy's own form
// `NAME;;OUTFILE;;COMMAND;;;`. Each row that cannot be read is named with its line.

/**
 * @typedef {{line: number, name?: string, output?: string, command: string,
 *   fields?: Record<string, string>, problem?: string}} Row
 * @typedef {"lines" | "csv" | "gpupeasy"} Form
 */

const JOB_END = ";;;";
const FIELD_END = ";;";
/** Columns of a CSV are options of a job; there are no others. */
const OPTIONS = ["command", "name", "output", "queue", "project", "priority", "cwd", "gpu", "vram", "cpu", "ram"];

/** Which form a text is in. @param {string} text @returns {Form} */
export function formOf(text) {
  if (text.includes(FIELD_END)) return "gpupeasy";
  const [first = ""] = text.trimStart().split("\n");
  const names = first.split(",").map((one) => one.trim().toLowerCase());
  return names.length > 1 && names.includes("command") ? "csv" : "lines";
}

/** @param {string} text @param {Form} form @returns {Row[]} */
export function readRows(text, form) {
  if (form === "gpupeasy") return gpupeasyRows(text);
  return form === "csv" ? csvRows(text) : lineRows(text);
}

/** @param {string} text @returns {Row[]} */
function lineRows(text) {
  /** @type {Row[]} */
  const rows = [];
  let begun = "";
  let first = 0;
  for (const [at, written] of text.split("\n").entries()) {
    if (!begun) first = at + 1;
    if (written.endsWith("\\")) {
      begun += `${written.slice(0, -1)} `;
      continue;
    }
    const command = (begun + written).trim();
    begun = "";
    if (command && !command.startsWith("#")) rows.push({ line: first, command });
  }
  if (begun.trim()) rows.push({ line: first, command: begun.trim() });
  return rows;
}

/** @param {string} text @returns {Row[]} */
function gpupeasyRows(text) {
  /** @type {Row[]} */
  const rows = [];
  let line = 1;
  const jobs = text.split(JOB_END);
  for (const [at, written] of jobs.entries()) {
    const begins = line + lead(written);
    line += written.split("\n").length - 1;
    if (!written.trim()) continue;
    const [name, output, command, ...rest] = written.split(FIELD_END).map((one) => one.trim());
    const row = { line: begins, name, output, command: command ?? "" };
    const isOpen = at === jobs.length - 1;
    rows.push({ ...row, problem: gpupeasyProblem(row, rest, isOpen) });
  }
  return rows;
}

/** How many lines a text begins with that say nothing. @param {string} text */
function lead(text) {
  return (/^\s*/.exec(text)?.[0].match(/\n/g) ?? []).length;
}

/** @param {Row} row @param {string[]} rest @param {boolean} isOpen */
function gpupeasyProblem(row, rest, isOpen) {
  if (rest.length) return `more than NAME;;OUTFILE;;COMMAND: ${rest.length + 3} fields`;
  if (!row.command) return "no command: write NAME;;OUTFILE;;COMMAND;;;";
  if (!row.name) return "no name before the first ;;";
  if (!row.output) return "no output file between the first two ;;";
  return isOpen ? "it does not end with ;;;" : undefined;
}

/** @param {string} text @returns {Row[]} */
function csvRows(text) {
  const [header, ...records] = csvRecords(text);
  if (!header) return [];
  const names = header.fields.map((one) => one.trim());
  const at = names.map((one) => one.toLowerCase());
  const unknown = names.filter((name) => !OPTIONS.includes(name.toLowerCase()));
  if (unknown.length) {
    const problem = `no option is called ${unknown.join(", ")}: use ${OPTIONS.join(", ")}`;
    return [{ line: header.line, command: "", problem }];
  }
  return records.map(({ fields, line, open }) => {
    const given = Object.fromEntries(at.map((name, place) => [name, (fields[place] ?? "").trim()]));
    const row = { line, name: given.name || undefined, output: given.output || undefined, command: given.command ?? "", fields: options(given) };
    return { ...row, problem: csvProblem(fields.length, names, row.command, open) };
  });
}

/** @param {Record<string, string>} given */
function options(given) {
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => OPTIONS.includes(name) && name !== "command" && value));
}

/** @param {number} count @param {string[]} names @param {string} command @param {boolean} open */
function csvProblem(count, names, command, open) {
  if (open) return "a quote is not closed";
  if (count !== names.length) return `${count} fields, and the header has ${names.length}`;
  return command ? undefined : "no command";
}

/**
 * Records of a CSV: fields may be quoted, with `""` for a quote, and hold line ends.
 * @param {string} text
 */
function csvRecords(text) {
  /** @type {{fields: string[], line: number, open: boolean}[]} */
  const records = [];
  let fields = [""];
  let quoted = false;
  let line = 1;
  let begun = 1;
  const end = () => {
    if (fields.length > 1 || fields[0].trim()) records.push({ fields, line: begun, open: quoted });
    fields = [""];
    begun = line + 1;
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (quoted && letter === '"' && text[at + 1] === '"') {
      fields[fields.length - 1] += '"';
      at += 1;
    } else if (letter === '"') quoted = !quoted;
    else if (letter === "," && !quoted) fields.push("");
    else if (letter === "\n" && !quoted) {
      end();
      line += 1;
    } else if (letter !== "\r" || quoted) {
      fields[fields.length - 1] += letter;
      if (letter === "\n") line += 1;
    }
  }
  end();
  return records;
}
