// The routes of the overview and of the locks.
import { listSemaphores } from "../../locks/index.ts";
import { version } from "../../index.ts";
import type { Route } from "./route.ts";

export const overview: Route = async (_query, { watched, sampler, checks }) => {
  const sample = await sampler.recent();
  const { capabilities } = await watched.store();
  const buckets = (await (await watched.findObjects())?.listBuckets())?.length;
  const { verification, examination } = checks;
  return {
    location: watched.location,
    id: watched.id,
    version,
    capabilities,
    buckets,
    sample,
    verification,
    examination,
  };
};

export const locks: Route = async (_query, { watched, sampler }) => {
  const { locks: held } = await sampler.recent();
  return { locks: held, semaphores: await listSemaphores(`${watched.location}/files`) };
};
