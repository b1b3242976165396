// A committed redo as the lock table records it: the changes of the tree, in order, for whichever
// process applies them.
import { flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import { claimOf, type Claim } from "../table/claim.ts";

/**
 * One change of the tree. `in`: the staged file or directory becomes the target. `out`: the target
 * is removed. `move`: the source becomes the target. Paths are relative to the root of the locks,
 * spelled as on the disk.
 */
export type RedoStep =
  | { readonly kind: "in"; readonly target: string }
  | { readonly kind: "out"; readonly target: string }
  | { readonly kind: "move"; readonly source: string; readonly target: string };

export interface Redo {
  /** Id of the redo, of the append that committed it, and of its directory. */
  readonly id: string;
  /** The request under which it was committed. */
  readonly request: string;
  /**
   * The claims of that request. A process that needs any of these paths completes the redo first.
   */
  readonly claims: readonly Claim[];
  readonly steps: readonly RedoStep[];
  /**
   * The redo has one step, and `redo/<id>` itself is the content of an `in`, or the directory of an
   * `out` or a `move`. When `redo/<id>` is gone, the redo is done.
   */
  readonly flat?: boolean;
}

export function redoOf(value: unknown): Redo {
  const { id, request, claims, steps, flat } = objectOf(value);
  const names = { id: nameOf(id), request: nameOf(request) };
  const redo = { ...names, claims: listOf(claims, claimOf), steps: listOf(steps, stepOf) };
  if (flat === undefined) return redo;
  if (redo.steps.length !== 1) throw new TypeError("a flat redo has one step");
  return { ...redo, flat: flagOf(flat) };
}

function stepOf(value: unknown): RedoStep {
  const { kind, source, target } = objectOf(value);
  switch (kind) {
    case "in":
    case "out":
      return { kind, target: pathOf(target) };
    case "move":
      return { kind, source: pathOf(source), target: pathOf(target) };
    default:
      throw new TypeError("not a step");
  }
}

/** Checks the path: a record that was edited by hand must not lead out of the tree. */
function pathOf(value: unknown): string {
  const path = textOf(value);
  if (
    path === "" ||
    path.includes("\0") ||
    path.split("/").some((name) => name === "" || name === "." || name === "..")
  )
    throw new TypeError("not a path below the root");
  return path;
}

/**
 * Checks the name of a request or redo: its holder's id and a random part. It becomes a path, and a
 * record that was edited by hand must not lead out of the ground.
 */
export function nameOf(value: unknown): string {
  const name = textOf(value);
  const [holder = "", random = "", ...more] = name.split(".");
  if (!isId(holder) || !/^[0-9a-z]+$/.test(random) || more.length > 0)
    throw new TypeError("not the name of a request or a redo");
  return name;
}
