// The Python client of clients/python: its types, and the programs of its README. Its own tests: python-client.deep.ts.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openHandoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { client, pythonIsMissing, pythonSuite } from "./python.ts";

describe.skipIf(pythonIsMissing)(pythonSuite("the Python client"), () => {
  test("is written for Python 3.9, with all types", () => {
    const check = `
import ast, inspect, typing
source = open("holdfast/__init__.py", encoding="utf-8").read()
tree = ast.parse(source, feature_version=(3, 9))
bare = []
for each in ast.walk(tree):
    if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
        rest = [a for a in (each.args.vararg, each.args.kwarg) if a]
        arguments = each.args.posonlyargs + each.args.args + each.args.kwonlyargs + rest
        untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
        if untyped or (each.returns is None and each.name != "__init__"):
            bare.append((each.name, untyped))
import holdfast
for name in holdfast.__all__:
    value = getattr(holdfast, name)
    assert value.__doc__, name
    for member in [value, *vars(value).values()] if inspect.isclass(value) else [value]:
        if inspect.isfunction(member):
            typing.get_type_hints(member)
            assert member.__doc__ or member.__name__.startswith("_"), member
print(bare)`;
    expect(execFileSync("python3", ["-c", check], { cwd: client, encoding: "utf8" })).toBe("[]\n");
  });

  test("runs the programs of its README, also as a copied file", async () => {
    const scratch = makeScratch();
    await (await openHandoff(join(scratch, "invoices"))).close();
    writeFileSync(join(scratch, "holdfast.py"), readFileSync(join(client, "holdfast/__init__.py")));
    expect(runSamples(join(client, "README.md"), scratch)).toEqual([
      "working alone\n",
      "published invoice/R-7\n",
      "booking invoice/R-7 <total>119.00</total> {'customer': 'ada'}\n",
      "done in attempt 1\n",
    ]);
  });

  test("runs the programs of its guide, with a ticket of Node", async () => {
    const scratch = makeScratch();
    await using orders = await openHandoff(join(scratch, "shared/orders"));
    const published = await orders.publish({ "order.json": '{"total": 119}' }, { key: "order/7" });
    expect(runSamples(join(client, "../../docs/python.md"), scratch)).toEqual([
      "order/7 has a total of 119\n",
      "working alone\n",
    ]);
    expect(await orders.findByKey("order/7")).toMatchObject({ id: published.id, state: "archive" });
    const report = await orders.take();
    expect([report?.key, await report?.text("report.csv")]).toEqual(["report/7", "order/7;119"]);
  });
});

function runSamples(page: string, cwd: string): string[] {
  const samples = [...readFileSync(page, "utf8").matchAll(/^```python\n([^]*?)^```$/gm)];
  const env = { ...process.env, PYTHONPATH: client };
  return samples.map(([, program = ""]) =>
    execFileSync("python3", ["-W", "error", "-c", program], { cwd, env, encoding: "utf8" }),
  );
}
