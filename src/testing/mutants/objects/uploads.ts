// Known-wrong variants of the completion of an upload.
import { putStaged } from "../../../objects/version/put-version.ts";
import { completeUpload } from "../../../objects/multipart/complete-upload.ts";
import { noSuchUpload } from "../../../objects/multipart/upload-files.ts";
import { stageFile } from "../../../objects/version/stage-body.ts";
import { uploadScenarios, type CollectUpload, type Complete, type PutPart } from "../../scenarios/objects/uploads.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Puts the version and does not look whether another completer has put it. */
const unaskedComplete: Complete = async (files, _named, preconditions, announce) => {
  const { bucket, id } = files;
  const file = `uploads/${id}/body`;
  const end = {
    kind: "complete",
    id: bucket.place.newId(),
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

/** Takes files that are gone for a version that was deleted before. */
const doubtingComplete: Complete = async (files, ...rest) => {
  const version = await completeUpload(files, ...rest);
  if (!(await files.isThere())) throw noSuchUpload(files.id);
  return version;
};

/** Does not look whether the upload has ended meanwhile. */
const unaskedPut: PutPart = async (files, { partNumber, key, body }, declared) => {
  const file = files.newBodyFile();
  const staged = await stageFile(files.bucket, key, body, declared, file);
  const part = { partNumber, ...staged, file, atMs: 0 };
  await files.setPart(part);
  return part;
};

/** Removes what was aborted while the process that aborts it is at it. */
const hastyCollect: CollectUpload = async (_bucket, files) => {
  if ((await files.findEnd())?.kind !== "abort") return 0;
  await files.remove();
  return 1;
};

export const uploadMutants: readonly Mutant[] = [
  {
    name: "upload that each completer puts",
    about: "A caller that asks again gets a second version.",
    scenario: scenarioNamed(uploadScenarios({ complete: unaskedComplete }), "upload: two complete it"),
    breaks: /has become 2 versions/,
  },
  {
    name: "upload whose completer goes by its files alone",
    about: "A put takes the place of the version, the files go, and the completer is told that there is no upload.",
    scenario: scenarioNamed(
      uploadScenarios({ complete: doubtingComplete }),
      "upload: completed where no versions are kept, and replaced at once",
    ),
    breaks: /was told NO_SUCH_UPLOAD/,
  },
  {
    name: "upload that takes parts after its end",
    about: "A part is acknowledged that no version will ever have.",
    scenario: scenarioNamed(uploadScenarios({ put: unaskedPut }), "upload: a part is replaced while it is completed"),
    breaks: /after the upload was completed without it/,
  },
  {
    name: "upload that a collection removes under its aborter",
    about: "The process that aborted it is told that there is no upload.",
    scenario: scenarioNamed(uploadScenarios({ collect: hastyCollect }), "upload: aborted beside a collection"),
    breaks: /was told NO_SUCH_UPLOAD/,
  },
];
