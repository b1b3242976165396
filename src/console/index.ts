// The subpath "holdfast/console": a page that shows what is going on in a store, for a browser, and
// the same activity for programs.
//
//   const store = await openStore("/mnt/shop");
//   const { handler, token } = createConsole(store, { path: "/console" });
//
// The console opens the store for itself, only to read. Closing it does not close the store.
export type { ConsoleAction } from "./actions.ts";
export { createConsole, type ConsoleOptions, type StoreConsole } from "./console.ts";
export { startConsole, type ConsoleServerOptions, type RunningConsole } from "./server.ts";
export type { Activity } from "./watch/activity.ts";
export { watchStore, type WatchOptions } from "./watch/watch-store.ts";
