// The interface of the hand-off as programs write against it: every name, and what each takes and gives.
import { describe, expectTypeOf, it } from "vitest";
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
} from "../../src/handoff/index.ts";
import type { Store } from "../../src/index.ts";

describe("the types of a hand-off", () => {
  it("an open box has the methods of the interface", () => {
    expectTypeOf<Awaited<ReturnType<typeof openHandoff>>>().toExtend<Handoff>();
    expectTypeOf<Awaited<ReturnType<Store["handoff"]>>>().toExtend<Handoff>();
  });

  it("what is published is named files, with options that accept an explicit undefined", () => {
    expectTypeOf<Files>().toEqualTypeOf<Readonly<Record<string, Body>>>();
    expectTypeOf<{ key: undefined; group: string; priority: 3; meta: { a: 1 } }>().toExtend<PublishOptions>();
    expectTypeOf<Parameters<Handoff["publish"]>>().toEqualTypeOf<
      [files: Files, options?: PublishOptions | undefined]
    >();
    expectTypeOf<Published>().toEqualTypeOf<{
      readonly id: string;
      readonly key: string;
      readonly duplicate: boolean;
    }>();
    expectTypeOf<{ limits: { tickets: 1; bytes: 2; inFlight: 3 }; create: false }>().toExtend<HandoffOptions>();
    expectTypeOf<{ retention: { archiveMs: 1; errorMs: 2; ledgerMs: undefined } }>().toExtend<HandoffOptions>();
  });

  it("a delivery is a manifest with its files, and is sent on to any hand-off", () => {
    expectTypeOf<Delivery>().toExtend<Manifest & AsyncDisposable>();
    expectTypeOf<Manifest["files"]>().toEqualTypeOf<readonly ManifestFile[]>();
    expectTypeOf<Handoff>().toExtend<Parameters<Delivery["send"]>[0]>();
    expectTypeOf<Delivery["bytes"]>().toEqualTypeOf<(name: string) => Promise<Uint8Array>>();
    expectTypeOf<Delivery["ack"]>().toEqualTypeOf<(result?: unknown) => Promise<void>>();
    expectTypeOf<Consumer>().toEqualTypeOf<Running>();
    const options: ConsumeOptions = {
      concurrency: 2,
      backoffMs: { min: 1, max: 2 },
      onError: (error, delivery) => (error === delivery.id ? "fail" : "retry"),
    };
    expectTypeOf(options).toExtend<Parameters<Handoff["consume"]>[1]>();
  });

  it("a receipt tells the state, the history and the result", () => {
    expectTypeOf<TicketState>().toEqualTypeOf<"incoming" | "delayed" | "processing" | "archive" | "error">();
    expectTypeOf<ReturnType<Handoff["waitFor"]>>().toEqualTypeOf<Promise<TicketInfo>>();
    expectTypeOf<TicketInfo["history"]>().toEqualTypeOf<readonly AttemptNote[]>();
    expectTypeOf<AttemptNote["outcome"]>().toEqualTypeOf<"retry" | "fail" | "lost" | "expired" | "mismatch">();
    expectTypeOf<HandoffStats["oldestIncomingMs"]>().toEqualTypeOf<number | undefined>();
  });

  it("a rule for foreign files says how they are complete, and nothing else compiles", () => {
    expectTypeOf<{ by: "done-file"; done: "{name}.done" }>().toExtend<AdoptRule>();
    expectTypeOf<{ by: "rename"; ignore: string[]; include: ["*.csv"]; key: "content" }>().toExtend<AdoptRule>();
    expectTypeOf<{ by: "done-file" }>().not.toExtend<AdoptRule>();
    expectTypeOf<{ by: "guess" }>().not.toExtend<AdoptRule>();
    expectTypeOf<{ done: null; content: "sha256sum" }>().toExtend<ExportRule>();
  });
});
