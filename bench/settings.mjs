// What the command line asks of a run. Child processes inherit it.
const words = process.argv.slice(2);

if (words.includes("--quick")) process.env.HOLDFAST_BENCH_QUICK = "1";

/** So short that its figures mean nothing: it shows that every row still runs. */
export const isQuick = process.env.HOLDFAST_BENCH_QUICK === "1";

/** `full`, and `quick` in a quick run. */
export const sized = (full, quick) => (isQuick ? quick : full);

const onlyAt = words.indexOf("--only");
const only = onlyAt < 0 ? undefined : words[onlyAt + 1];

/** True for the rows that `--only TEXT` names, and without it for all. */
export const isWanted = (row) => only === undefined || row.includes(only);

/** The groups that are asked for. */
export const wishes = words.filter((word, at) => !word.startsWith("--") && (onlyAt < 0 || at !== onlyAt + 1));
