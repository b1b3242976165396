// Lets the event loop turn between blocking calls.
//
// A program that awaits one blocking call after another continues in microtasks: no timer would
// run, no signal could abort anything, and the heart would stop, because the loop seems stuck.

/** How long a process may continue without a turn. */
const blockedMsMax = 10;

let turnedAtMs = -Infinity;
let turn: Promise<void> | undefined;

/** Await the result after a call; undefined unless the last turn is too long ago. */
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
