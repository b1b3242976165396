// The Python client of clients/python: its own tests, and its samples.
import { execFileSync, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";

const client = resolve(import.meta.dirname, "../../clients/python");
const missing = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status !== 0;

describe.skipIf(missing)(
  missing ? "the Python client is not run: no python3 of 3.9 or later" : "the Python client",
  () => {
    test("passes its own tests", () => {
      const { status, stderr } = spawnSync("python3", ["-W", "error", "-m", "unittest"], {
        cwd: client,
        encoding: "utf8",
      });
      expect({ status, stderr }).toMatchObject({
        status: 0,
        stderr: expect.stringMatching(/\nRan \d\d+ tests[^]*\nOK/),
      });
    });

    test("is written for Python 3.9, with all types", () => {
      const check = `
import ast, inspect, typing
source = open("holdfast/__init__.py", encoding="utf-8").read()
tree = ast.parse(source, feature_version=(3, 9))
bare = []
for each in ast.walk(tree):
    if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = each.args.posonlyargs + each.args.args + each.args.kwonlyargs + [a for a in (each.args.vararg, each.args.kwarg) if a]
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
print(bare)`;
      expect(execFileSync("python3", ["-c", check], { cwd: client, encoding: "utf8" })).toBe("[]\n");
    });
  },
);
