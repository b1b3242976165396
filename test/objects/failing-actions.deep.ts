// Every action on an object store of which any call fails, or at which its process is killed, on a
// local disk and on a share.
import { describe, it } from "vitest";
import { lostReplies } from "../sites/world.ts";
import { actions, checkFaults, checkKills } from "./failing-actions.ts";

const timeout = 300_000;
const faults = [
  { where: "a local disk", label: "EIO", lasting: false },
  { where: "a local disk", label: "ENOSPC", lasting: true },
  ...lostReplies.map((label) => ({ where: "a network mount", label, lasting: false })),
];

describe.each(actions.map((action) => [action.name, action] as const))("%s", (_name, action) => {
  it.each(faults)("on $where has the outcome that its caller is told ($label)", { timeout }, async (fault) => {
    const { where, label, lasting } = fault;
    await checkFaults(action, { label, lasting }, where === "a network mount");
  });

  it.each([
    ["a local disk", false],
    ["a network mount", true],
  ])("on %s, killed at any call, is done or not, and leaves nothing", { timeout }, async (_where, isShare) => {
    await checkKills(action, isShare);
  });
});
