// The difference between two texts by lines, for a model that has seen the old one. Common lines at
// both ends are left out; the rest is compared line by line where that is cheap.
import { diffLinesMax } from "./limits.ts";

/** Above this product of line counts, the middle is shown as removed and added as a whole. */
const comparedMax = 1_000_000;
const contextLines = 2;

/** Returns lines that begin with `-`, `+` or a space, and headers with the number of the new line. */
export function diffOf(before: string, after: string): string {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const from = Math.max(0, start - contextLines);
  const tail = now.slice(now.length - end, now.length - end + contextLines);
  const middle = compare(old.slice(start, old.length - end), now.slice(start, now.length - end));
  const lines = [...now.slice(from, start).map((line) => ` ${line}`), ...middle, ...tail.map((line) => ` ${line}`)];
  const shown = lines.slice(0, diffLinesMax).map((line) => (line.length > 400 ? `${line.slice(0, 400)} […]` : line));
  const cut = lines.length > shown.length ? [`[${lines.length - shown.length} more lines differ]`] : [];
  return [`@@ line ${from + 1} @@`, ...shown, ...cut].join("\n");
}

/** By the longest common subsequence. */
function compare(old: readonly string[], now: readonly string[]): string[] {
  if (old.length * now.length > comparedMax) return [...removed(old), ...added(now)];
  const width = now.length + 1;
  // `common[i * width + j]` is the number of lines that old from i and now from j have in common.
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i * width + j] =
        old[i] === now[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      lines.push(` ${old[i]}`);
      i++;
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) lines.push(`-${old[i++]}`);
    else lines.push(`+${now[j++]}`);
  }
  return [...lines, ...removed(old.slice(i)), ...added(now.slice(j))];
}

function removed(lines: readonly string[]): string[] {
  return lines.map((line) => `-${line}`);
}

function added(lines: readonly string[]): string[] {
  return lines.map((line) => `+${line}`);
}
