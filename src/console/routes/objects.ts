// The routes of the objects: buckets, keys by prefix, versions of a key, uploads, settings.
import type { ObjectVersion } from "../../objects/index.ts";
import type { DownloadRoute, Route } from "./route.ts";

/** Of a bucket with thousands of uploads, only the first are shown. */
const uploadsMax = 100;

export const buckets: Route = async (_query, { watched }) => ({
  buckets: ((await (await watched.findObjects())?.listBuckets()) ?? []).map(({ damaged, ...bucket }) => ({
    ...bucket,
    ...(damaged === undefined ? {} : { problem: damaged.message }),
  })),
});

export const bucket: Route = async (query, { watched }) => {
  const found = await watched.bucket(query.get("bucket"));
  const { versioning, objectLock, defaultRetention, lifecycle, tags } = await found.config();
  const { uploads, nextKeyMarker } = await found.listUploads({ limit: uploadsMax });
  return {
    settings: { versioning, objectLock, defaultRetention, lifecycle, tags },
    uploads: uploads.map(({ id, key, startedAt, initiator, damaged }) => ({
      id,
      key,
      startedAt,
      initiator,
      problem: damaged?.message,
    })),
    hasMoreUploads: nextKeyMarker !== undefined,
  };
};

export const keys: Route = async (query, { watched }) => {
  const found = await watched.bucket(query.get("bucket"));
  const { objects, prefixes, damaged, next } = await found.list({
    prefix: query.find("prefix"),
    delimiter: query.find("deep") === undefined ? "/" : undefined,
    after: query.find("after"),
    limit: query.limit(100),
  });
  return {
    prefixes,
    objects: objects.map(summaryOf),
    damaged: damaged?.map(({ key, error }) => ({ key, problem: error.message })),
    next,
  };
};

export const versions: Route = async (query, { watched }) => {
  const found = await watched.bucket(query.get("bucket"));
  const key = query.get("key");
  const page = await found.listVersions({
    prefix: key,
    keyMarker: query.find("version") === undefined ? undefined : key,
    versionMarker: query.find("version"),
    limit: query.limit(100),
  });
  const own = page.versions.filter((version) => version.key === key);
  return {
    versions: own,
    damaged: page.damaged
      ?.filter((each) => each.key === key)
      .map(({ versionId, error }) => ({ versionId, problem: error.message })),
    // The listing continues with other keys that begin with this one.
    next: page.nextKeyMarker === key ? page.nextVersionMarker : undefined,
  };
};

export const objectContent: DownloadRoute = async (query, { watched }) => {
  const found = await watched.bucket(query.get("bucket"));
  const key = query.get("key");
  const object = await found.get(key, { versionId: query.find("version") });
  return { name: key.slice(key.lastIndexOf("/") + 1), size: object.size, body: object.stream() };
};

function summaryOf({ key, size, etag, lastModified, versionId, contentType }: ObjectVersion): object {
  return { key, size, etag, lastModified, versionId, contentType };
}
