// Lets the event loop turn between calls that block.
//
// A program that awaits one blocking call after the other goes on in microtasks: no timer of its
// process would run, no signal abort anything, and its heart would stop, because the loop seems to
// be stuck.

/** For so long a process may go on without a turn. */
const blockedMsMax = 10;

let turnedAtMs = -Infinity;
let turn: Promise<void> | undefined;

/** To be awaited after a call: undefined unless the last turn is too long ago. */
export function findDueTurn(): Promise<void> | undefined {
  if (performance.now() - turnedAtMs < blockedMsMax) return undefined;
  return (turn ??= new Promise((resolve) =>
    setImmediate(() => {
      turnedAtMs = performance.now();
      turn = undefined;
      resolve();
    }),
  ));
}
