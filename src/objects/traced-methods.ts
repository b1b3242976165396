// The methods of an object store, a bucket and an upload that are traced operations, in every engine.
import type { OperationDetails } from "../telemetry/operation.ts";
import type { TracedMethods } from "../telemetry/trace.ts";
import type { Bucket, Upload } from "./model/bucket.ts";
import type { ObjectStore } from "./model/object-store.ts";

export const tracedObjectStoreMethods: TracedMethods<ObjectStore> = {
  part: "objects",
  location: ({ directory }) => directory,
  methods: {
    createBucket: { about: ([bucket]) => ({ bucket }) },
    bucket: { about: ([bucket]) => ({ bucket }) },
    findBucket: { about: ([bucket]) => ({ bucket }) },
    listBuckets: {},
    deleteBucket: { about: ([bucket]) => ({ bucket }) },
    collect: {},
    verify: {},
    close: {},
  },
};

type Located = { readonly directory: string };
type NamedBucket = Bucket & Located & { readonly name: string };

const ofBucket = {
  about: (_given: readonly unknown[], { name }: NamedBucket): OperationDetails => ({ bucket: name }),
};
const ofKey = {
  about: ([key]: readonly [key: string, ...unknown[]], { name }: NamedBucket): OperationDetails => ({ bucket: name, key }),
}; // prettier-ignore

export const tracedBucketMethods: TracedMethods<NamedBucket> = {
  part: "objects",
  location: ({ directory }) => directory,
  methods: {
    put: ofKey,
    get: ofKey,
    head: ofKey,
    delete: ofKey,
    deleteMany: { about: ([items], { name }) => ({ bucket: name, count: items.length }) },
    copy: { about: ([from, to], { name }) => ({ bucket: name, key: from.key, to }) },
    update: ofKey,
    list: ofBucket,
    listVersions: ofBucket,
    objects: { ...ofBucket, iterates: true },
    versions: { ...ofBucket, iterates: true },
    tags: ofKey,
    parts: ofKey,
    setTags: ofKey,
    setRetention: ofKey,
    setLegalHold: ofKey,
    setAcl: ofKey,
    setConfig: ofBucket,
    setDocument: ofBucket,
    versioning: "untraced",
    setVersioning: "untraced",
    config: "untraced",
    knownConfig: "untraced",
    createUpload: ofKey,
    upload: ofKey,
    listUploads: ofBucket,
  },
};

type NamedUpload = Upload & Located & { readonly bucketName: string };

const ofUpload = {
  about: (_given: readonly unknown[], { bucketName: bucket, key, id }: NamedUpload): OperationDetails => ({ bucket, key, id }),
}; // prettier-ignore

export const tracedUploadMethods: TracedMethods<NamedUpload> = {
  part: "upload",
  location: ({ directory }) => directory,
  methods: { put: ofUpload, copy: ofUpload, parts: ofUpload, complete: ofUpload, abort: ofUpload },
};
