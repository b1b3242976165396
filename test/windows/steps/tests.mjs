// The step that runs test files of the repository as one Windows process.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exceptions, only } from "../suites.mjs";
import { windowsPath } from "../wine.mjs";

const timeoutMs = 540_000;
const linesShownMax = 6;

export async function runTests(prefix, { programs, files }) {
  const [results, log] = ["tests.jsonl", "tests.log"].map((name) => join(prefix.directory, name));
  const orders = { files, only, except: exceptions.map(({ test }) => test) };
  const args = [windowsPath(join(programs, "tests.js")), windowsPath(results), JSON.stringify(orders)];
  const ending = await prefix.run(args, { log, cwd: join(programs, "../.."), timeoutMs });
  const tests = existsSync(results) ? readFileSync(results, "utf8").trim().split("\n").map(parse) : [];
  const ofState = (state) => tests.filter((test) => test.state === state);
  const problems = ofState("fail").map(({ file, name, errors }) => {
    const lines = errors.join("\n").split("\n").slice(0, linesShownMax);
    return [`${file} > ${name}`, ...lines].join("\n    ");
  });
  if (ending.code !== 0) problems.push(`the process ended with ${ending.code ?? ending.signal}: see ${log}`);
  // Otherwise a list of exceptions outlives its reasons.
  for (const { test } of exceptions)
    if (files.some((file) => test.startsWith(file)) && !ofState("excepted").some((each) => isMeant(each, test)))
      problems.push(`an exception names no test: ${test}`);
  if (ofState("pass").length === 0) problems.push("no test has passed");
  return {
    figures: `${ofState("pass").length} passed, ${ofState("skip").length} skipped, ${ofState("excepted").length} excepted`,
    problems,
  };
}

function isMeant({ file, name }, test) {
  return `${file} > ${name}`.includes(test);
}

/** A process that is killed can tear its last line. */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return { state: "fail", file: "", name: "a torn line", errors: [line] };
  }
}
