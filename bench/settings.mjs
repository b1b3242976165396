// What the command line asks of a run. Child processes inherit it.
import { parseArgs } from "node:util";

const options = {
  quick: { type: "boolean" },
  seconds: { type: "string" },
  only: { type: "string" },
  json: { type: "string" },
  page: { type: "boolean" },
  list: { type: "boolean" },
  help: { type: "boolean", short: "h" },
};
// Not strict: workers have arguments of their own. The run itself refuses `mistakes`.
const { values, positionals, tokens } = parseArgs({ options, allowPositionals: true, strict: false, tokens: true });

/** Options that are unknown or lack their value. */
export const mistakes = tokens
  .filter(({ kind, name, value }) => kind === "option" && (options[name]?.type !== "boolean") === (value === undefined))
  .map(({ rawName }) => rawName);

if (values.quick) process.env.HOLDFAST_BENCH_QUICK = "1";
if (values.seconds !== undefined) process.env.HOLDFAST_BENCH_SECONDS = values.seconds;

/** So short that its figures mean nothing: it shows that every row still runs. */
export const isQuick = process.env.HOLDFAST_BENCH_QUICK === "1";

const secondsAsked = process.env.HOLDFAST_BENCH_SECONDS;
if (secondsAsked !== undefined && !(Number(secondsAsked) > 0))
  throw new RangeError(`--seconds must be a number above 0: ${secondsAsked}`);

/** `full`, and `quick` in a quick run. */
export const sized = (full, quick) => (isQuick ? quick : full);

/** How long a round takes: with `--seconds`, all rounds of a row together take so long. */
export const roundMsOf = (full, quick, rounds) =>
  secondsAsked === undefined ? sized(full, quick) : (1000 * Number(secondsAsked)) / rounds;

/** True for the rows that `--only TEXT` names, and without it for all. */
export const isWanted = (row) => values.only === undefined || row.includes(values.only);

/** The groups that are asked for. */
export const wishes = positionals;

export const { json: jsonFile, page: isPageWanted = false, list: isListWanted, help: isHelpWanted } = values;
