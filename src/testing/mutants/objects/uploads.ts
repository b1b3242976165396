// Known-wrong variants of the completion of an upload.
import { putStaged } from "../../../objects/version/put-version.ts";
import { uploadScenarios, type Complete } from "../../scenarios/objects/uploads.ts";
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

export const uploadMutants: readonly Mutant[] = [
  {
    name: "upload that each completer puts",
    about: "A caller that asks again gets a second version.",
    scenario: scenarioNamed(uploadScenarios(unaskedComplete), "upload: two complete it"),
    breaks: /has become 2 versions/,
  },
];
