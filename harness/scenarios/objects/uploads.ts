// Scenarios of uploads in parts: completers and an abort race, and are killed.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { ObjectsStorage } from "../../../src/objects/bucket/objects-storage.ts";
import { versionsOf } from "../../../src/objects/listing/list-page.ts";
import { deleteObject } from "../../../src/objects/version/delete-version.ts";
import { collectUpload } from "../../../src/objects/collect/collect-uploads.ts";
import type { Versioning } from "../../../src/objects/model/object.ts";
import { completeUpload } from "../../../src/objects/multipart/complete-upload.ts";
import { putPart } from "../../../src/objects/multipart/put-part.ts";
import { UploadFiles } from "../../../src/objects/multipart/upload-files.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";
import { putText } from "./object-world.ts";

const directory = "/objects";
const uploadId = "upload";
const parts = [{ partNumber: 1, etag: "00" }];

/** How an upload is completed and collected, and how a part is put: the real ways, or known-wrong ones. */
export type Complete = typeof completeUpload;
export type PutPart = typeof putPart;
export type CollectUpload = typeof collectUpload;

export interface UploadWays {
  readonly complete?: Complete;
  readonly put?: PutPart;
  readonly collect?: CollectUpload;
}

async function openFiles(ports: Ports): Promise<UploadFiles> {
  const storage = new ObjectsStorage(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), directory);
  return new UploadFiles(await new Buckets(storage).get("photos"), uploadId);
}

async function orTold({ note }: ActorContext, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    // INVALID_PART: the part was replaced. IO_ERROR: nothing was done, because the disk failed.
    if (!isHoldfastError(error, "NO_SUCH_UPLOAD", "INVALID_PART", "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
    note("told", error.code);
  }
}

function completer(complete: Complete): Actor {
  return actor({
    prepare: async ({ ports }) => await openFiles(ports),
    run: (context, files) =>
      orTold(context, async () => {
        const { versionId } = await complete(files, { parts }, {}, async () => undefined);
        context.note("completed", versionId);
      }),
  });
}

function aborter(): Actor {
  return actor({
    prepare: async ({ ports }) => await openFiles(ports),
    run: (context, files) =>
      orTold(context, async () => {
        if ((await files.find()) === undefined) return context.note("told", "NO_SUCH_UPLOAD");
        const { ground } = files.bucket.storage;
        const holder = (await ground.session()).holder.id;
        if ((await files.decide({ kind: "abort", id: files.bucket.storage.newId(), holder })).kind !== "abort") return;
        context.note("aborted");
        await files.remove();
      }),
  });
}

/** Puts part 1 again, with another body. */
function partPutter(put: PutPart): Actor {
  return actor({
    prepare: async ({ ports }) => await openFiles(ports),
    run: (context, files) =>
      orTold(context, async () => {
        await put(files, { partNumber: 1, key: "k", body: "y" }, {});
        context.note("part put");
      }),
  });
}

/** Puts an object under the key of the upload. */
function rival(): Actor {
  return actor({
    prepare: async ({ ports }) => await openFiles(ports),
    run: async (_context, { bucket }) => void (await putText(bucket, "rival")),
  });
}

function uploadCollector(collect: CollectUpload): Actor {
  return actor({
    prepare: async ({ ports }) => await openFiles(ports),
    run: async (_context, files) => void (await collect(files.bucket, files, true)),
  });
}

function mustBeTold(facts: readonly Fact[], fact: "completed" | "aborted"): void {
  const told = valuesOf<string>(facts, "told");
  mustHold(valuesOf(facts, fact).length === 1, `the only one that ended the upload was told ${told.join()}`);
}

/** A completed upload has one version with all its parts, and an aborted one has none. */
async function audit(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const files = await openFiles(ports);
  const versions = (await versionsOf(files.bucket, "k")).map(({ versionId }) => versionId);
  mustHold(versions.length <= 1, `one upload has become ${versions.length} versions`);
  const completed = valuesOf<string>(facts, "completed");
  for (const id of completed) mustHold(versions.includes(id), `${id} was completed and is lost`);
  const isAborted = valuesOf(facts, "aborted").length > 0;
  mustHold(!(isAborted && versions.length > 0), "an upload was both aborted and completed");
  if (versions.length > 0)
    mustHold(await ports.disk.canOpen(`${files.directory}/body`), "a version has lost its only part");
}

type UploadScenario = Partial<Scenario> &
  Pick<Scenario, "name" | "about" | "actors"> & {
    /** Default "enabled". */
    readonly versioning?: Versioning;
  };

function uploadScenario({ versioning = "enabled", ...scenario }: UploadScenario): Scenario {
  return {
    setup: async (ports) => {
      for (const path of ["/ground", directory]) await ports.disk.mkdir(path);
      const storage = new ObjectsStorage(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), directory);
      const buckets = new Buckets(storage);
      await buckets.create("photos", { versioning, objectLock: false });
      const files = new UploadFiles(await buckets.get("photos"), uploadId);
      const facts = { headers: {}, metadata: {}, tags: {} };
      await files.create({ id: uploadId, key: "k", startedAtMs: 0, facts });
      await ports.disk.createFile(`${files.directory}/body`, Buffer.from("x"), { sync: true });
      const file = `uploads/${uploadId}/body`;
      await files.setPart({ partNumber: 1, etag: "00", size: 1, sha256: "", file, atMs: 0 });
      await ports.disk.mkdir(parentOf(files.bucket.layout.key("k")));
    },
    audit,
    ...scenario,
  };
}

/** The facts are in order: no part may be acknowledged after a completion that lacks it. */
async function auditReplaced(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const files = await openFiles(ports);
  const [completed] = valuesOf<string>(facts, "completed");
  if (completed === undefined) return;
  const noted = facts.map(({ what }) => what).filter((what) => what === "completed" || what === "part put");
  mustHold(noted.at(-1) === "completed", "a part was acknowledged after the upload was completed without it");
  const again = await completeUpload(files, { parts }, {}, async () => undefined);
  mustHold(again.versionId === completed, `the same list gave ${completed}, and now ${again.versionId}`);
}

export function uploadScenarios(ways: UploadWays = {}): Scenario[] {
  const { complete = completeUpload, put = putPart, collect = collectUpload } = ways;
  return [
    uploadScenario({
      name: "upload: two complete it",
      about: "A caller that got no answer asks again. The calls make one version.",
      size: "medium",
      actors: { ada: completer(complete), bob: completer(complete) },
    }),
    uploadScenario({
      name: "upload: one completes it, one aborts it",
      about: "One of the two wins.",
      actors: { ada: completer(complete), bob: aborter() },
    }),
    uploadScenario({
      name: "upload: a completer that slept while its version was deleted",
      about: "The upload was completed, and its version is deleted. Nothing comes back.",
      actors: { ada: completer(complete) },
      meanwhile: async (ports) => {
        const files = await openFiles(ports);
        const { versionId } = await completeUpload(files, { parts }, {}, async () => undefined);
        await deleteObject(files.bucket, "k", { versionId }, async () => undefined);
      },
      audit: async (ports, facts) => {
        mustHold(valuesOf(facts, "completed").length === 0, "an upload was completed whose version is deleted");
        mustHold((await versionsOf((await openFiles(ports)).bucket, "k")).length === 0, "a deleted version came back");
      },
    }),
    uploadScenario({
      name: "upload: two machines complete it, with lost replies",
      about: "A reply may be lost, or may answer a repeated request. The calls make one version.",
      size: "large",
      volume: share,
      profile: "share",
      troubles: { lostReply: 1, retransmit: 1 },
      actors: { ada: { ...completer(complete), machine: "m1" }, bob: { ...completer(complete), machine: "m2" } },
    }),
    uploadScenario({
      name: "upload: a completion, power cuts",
      about: "An acknowledged version and its part survive each power cut.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: completer(complete) },
    }),
    uploadScenario({
      name: "upload: completed where no versions are kept, and replaced at once",
      about:
        "The upload's files are removed with the version that a put has replaced. The completer gets its version's id.",
      size: "medium",
      versioning: "off",
      actors: { ada: completer(complete), bob: rival() },
      audit: async (ports, facts) => {
        mustBeTold(facts, "completed");
        const texts = (await versionsOf((await openFiles(ports)).bucket, "k")).map(({ size }) => size);
        mustHold(texts.length === 1, `there are ${texts.length} objects`);
      },
    }),
    uploadScenario({
      name: "upload: a part is replaced while it is completed",
      about: "A part that comes too late is not acknowledged, and the same list gives the same version again.",
      actors: { ada: completer(complete), bob: partPutter(put) },
      audit: auditReplaced,
    }),
    uploadScenario({
      name: "upload: a part is replaced on another machine while it is completed",
      about: "The same, with the cached answers of clients of a share.",
      volume: share,
      profile: "share",
      actors: { ada: { ...completer(complete), machine: "m1" }, bob: { ...partPutter(put), machine: "m2" } },
      audit: auditReplaced,
    }),
    uploadScenario({
      name: "upload: aborted beside a collection",
      about: "The process that aborts the upload gets its answer, and the collection continues.",
      actors: { ada: aborter(), col: uploadCollector(collect) },
      audit: async (_ports, facts) => mustBeTold(facts, "aborted"),
    }),
    uploadScenario({
      name: "upload: the process that aborts it is killed, and a collection",
      about: "Wherever the aborting process died, the upload makes no version, and the collection continues.",
      actors: { ada: aborter(), col: uploadCollector(collect) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    uploadScenario({
      name: "upload: a completer is killed, and another one completes it",
      about: "Wherever the first completer died, the upload makes one version.",
      size: "large",
      actors: { ada: completer(complete), bob: completer(complete) },
      killsMax: 1,
      mortal: ["ada"],
    }),
  ];
}
