// The interface of the hand-off as programs use it. docs.test.ts compiles this file against the built package, as a
// program of a user: a changed type fails there.
import type {
  AdoptRule,
  AttemptNote,
  Body,
  ConsumeOptions,
  Consumer,
  Delivery,
  ExportRule,
  Files,
  Handoff,
  HandoffOptions,
  HandoffStats,
  Manifest,
  ManifestFile,
  openHandoff,
  Published,
  PublishOptions,
  Running,
  TicketInfo,
  TicketState,
} from "holdfast/handoff";
import type { Store } from "holdfast";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Extends<A, B> = [A] extends [B] ? true : false;
type Opened = Awaited<ReturnType<typeof openHandoff>>;

/** Each line compiles only if the type is `true`, or `false` where a type must be refused. */
export const checks: readonly [
  // An open box has the methods of the interface.
  Extends<Opened, Handoff>,
  Extends<Awaited<ReturnType<Store["handoff"]>>, Handoff>,
  // A program publishes named files; options accept an explicit undefined.
  Same<Files, Readonly<Record<string, Body>>>,
  Extends<{ key: undefined; group: string; priority: 3; meta: { a: 1 } }, PublishOptions>,
  Same<Parameters<Handoff["publish"]>, [files: Files, options?: PublishOptions | undefined]>,
  Same<Published, { readonly id: string; readonly key: string; readonly duplicate: boolean }>,
  Extends<{ limits: { tickets: 1; bytes: 2; inFlight: 3 }; create: false }, HandoffOptions>,
  Extends<{ retention: { archiveMs: 1; errorMs: 2; ledgerMs: undefined } }, HandoffOptions>,
  // A delivery is a manifest with its files, and can be sent to any hand-off.
  Extends<Delivery, Manifest & AsyncDisposable>,
  Same<Manifest["files"], readonly ManifestFile[]>,
  Extends<Handoff, Parameters<Delivery["send"]>[0]>,
  Same<Delivery["bytes"], (name: string) => Promise<Uint8Array>>,
  Same<Delivery["ack"], (result?: unknown) => Promise<void>>,
  Same<Consumer, Running>,
  Extends<ConsumeOptions, NonNullable<Parameters<Handoff["consume"]>[1]>>,
  // A receipt reports the state, the history and the result.
  Same<TicketState, "incoming" | "delayed" | "processing" | "archive" | "error">,
  Same<ReturnType<Handoff["waitFor"]>, Promise<TicketInfo>>,
  Same<TicketInfo["history"], readonly AttemptNote[]>,
  Same<AttemptNote["outcome"], "retry" | "fail" | "lost" | "expired" | "mismatch">,
  Same<HandoffStats["oldestIncomingMs"], number | undefined>,
  // A rule for foreign files states how they are complete.
  Extends<{ by: "done-file"; done: "{name}.done" }, AdoptRule>,
  Extends<{ by: "rename"; ignore: string[]; include: ["*.csv"]; key: "content" }, AdoptRule>,
  Extends<{ done: null; content: "sha256sum" }, ExportRule>,
] = [
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
];

/** No rule: nothing says how the files are complete. */
export const refused: readonly [Extends<{ by: "done-file" }, AdoptRule>, Extends<{ by: "guess" }, AdoptRule>] = [
  false,
  false,
];

export const options: ConsumeOptions = {
  concurrency: 2,
  backoffMs: { min: 1, max: 2 },
  onError: (error, delivery) => (error === delivery.id ? "fail" : "retry"),
};
