// Known-wrong variants of the completion of an upload.
import { putStaged } from "../../../src/objects/version/put-version.ts";
import { completeUpload } from "../../../src/objects/multipart/complete-upload.ts";
import { noSuchUpload } from "../../../src/objects/multipart/upload-files.ts";
import { stageFile } from "../../../src/objects/version/stage-body.ts";
import { uploadScenarios, type CollectUpload, type Complete, type PutPart } from "../../scenarios/objects/uploads.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Puts the version without checking whether another completer has put it. */
const unaskedComplete: Complete = async (files, _named, preconditions, announce) => {
  const { bucket, id } = files;
  const file = `uploads/${id}/body`;
  const end = {
    kind: "complete",
    id: bucket.storage.newId(),
    behind: { incarnation: "", number: 0 },
    list: "",
    size: 1,
    etag: "",
    parts: [],
  } as const;
  await files.decide(end);
  const facts = { headers: {}, metadata: {}, tags: {} };
  const body = { size: 1, etag: "", parts: [{ file, size: 1, sha256: "" }] };
  return await putStaged(bucket, { key: "k", facts, preconditions }, body, announce);
};

/** Takes missing files as proof that the version was deleted. */
const doubtingComplete: Complete = async (files, ...rest) => {
  const version = await completeUpload(files, ...rest);
  if (!(await files.isThere())) throw noSuchUpload(files.id);
  return version;
};

/** Does not check whether the upload has ended meanwhile. */
const unaskedPut: PutPart = async (files, { partNumber, key, body }, declared) => {
  const file = files.newBodyFile();
  const staged = await stageFile(files.bucket, key, body, declared, file);
  const part = { partNumber, ...staged, file, atMs: 0 };
  await files.setPart(part);
  return part;
};

/** Removes an aborted upload while the process that aborted it still removes its files. */
const hastyCollect: CollectUpload = async (_bucket, files) => {
  if ((await files.findEnd())?.kind !== "abort") return 0;
  await files.remove();
  return 1;
};

export const uploadMutants: readonly Mutant[] = [
  {
    name: "upload that each completer puts",
    about: "A caller that repeats the completion gets a second version.",
    scenario: scenarioNamed(uploadScenarios({ complete: unaskedComplete }), "upload: two complete it"),
    breaks: /has become 2 versions/,
  },
  {
    name: "upload whose completer goes by its files alone",
    about: "A put replaces the version and its files are removed; the completer then reports that there is no upload.",
    scenario: scenarioNamed(
      uploadScenarios({ complete: doubtingComplete }),
      "upload: completed where no versions are kept, and replaced at once",
    ),
    breaks: /was told NO_SUCH_UPLOAD/,
  },
  {
    name: "upload that takes parts after its end",
    about: "A part is acknowledged although no version will ever contain it.",
    scenario: scenarioNamed(uploadScenarios({ put: unaskedPut }), "upload: a part is replaced while it is completed"),
    breaks: /after the upload was completed without it/,
  },
  {
    name: "upload that a collection removes under its aborter",
    about: "The process that aborts the upload gets NO_SUCH_UPLOAD.",
    scenario: scenarioNamed(uploadScenarios({ collect: hastyCollect }), "upload: aborted beside a collection"),
    breaks: /was told NO_SUCH_UPLOAD/,
  },
];
