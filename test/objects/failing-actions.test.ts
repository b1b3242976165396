// Some actions on an object store while the disk is full at every step, and some whose process is
// killed there. All of them, with other failures and on shares, are in failing-actions.deep.ts.
import { expect, it } from "vitest";
import { actions, checkFaults, checkKills, type Action } from "./failing-actions.ts";

function named(...names: readonly string[]): [string, Action][] {
  const found = actions.filter(({ name }) => names.includes(name));
  expect(found).toHaveLength(names.length);
  return found.map((action) => [action.name, action]);
}

it.each(named("the deletion of a bucket"))(
  "%s on a disk that fills up at any call has the outcome that its caller is told",
  async (_name, action) => await checkFaults(action, { label: "ENOSPC", lasting: true }, false),
);

it.each(named("a put to a new key"))(
  "%s whose process is killed at any call happens or not, and its leftovers are collected",
  async (_name, action) => await checkKills(action, false),
);
