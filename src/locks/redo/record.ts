// A committed redo as the lock table records it: what to do to the tree, in order, whichever
// process does it.
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
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
  /** Also the id of the append that committed it, and the name of its directory. */
  readonly id: string;
  /** The request under which it was committed. */
  readonly request: string;
  /** What that request held. A process that needs any of it completes the redo first. */
  readonly claims: readonly Claim[];
  readonly steps: readonly RedoStep[];
}

export function redoOf(value: unknown): Redo {
  const { id, request, claims, steps } = objectOf(value);
  return { id: nameOf(id), request: nameOf(request), claims: listOf(claims, claimOf), steps: listOf(steps, stepOf) };
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

/** A record that was edited by hand must not lead out of the tree. */
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
 * Name of a request or redo: its holder's id and a random part. It becomes a path, and a record
 * that was edited by hand must not lead out of the ground.
 */
export function nameOf(value: unknown): string {
  const name = textOf(value);
  const [holder = "", random = "", ...more] = name.split(".");
  if (!isId(holder) || !/^[0-9a-z]+$/.test(random) || more.length > 0)
    throw new TypeError("not the name of a request or a redo");
  return name;
}
