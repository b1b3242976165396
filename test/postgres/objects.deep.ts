// The whole contract of an object store on PostgreSQL, histories of one key, and pages against a model.
import { describeObjects } from "../objects/contract.ts";
import { describeLifecycle } from "../objects/contract/lifecycle.ts";
import { describeSettings } from "../objects/contract/settings.ts";
import { describeLinearizable } from "../objects/contract/linearizable.ts";
import { describePaging } from "../objects/contract/paging.ts";
import { bucketOn } from "../objects/object-sites.ts";
import { makeAgingPgObjects, makePgObjects } from "./stores.ts";

describeObjects("PostgreSQL", makePgObjects);
describeSettings("PostgreSQL", makePgObjects);
describeLifecycle("PostgreSQL", makeAgingPgObjects);
describeLinearizable("PostgreSQL", makePgObjects);
describePaging("PostgreSQL", async (versioning) => {
  const bucket = await bucketOn(makePgObjects, versioning === "off" ? "off" : "enabled");
  if (versioning === "suspended") await bucket.setVersioning("suspended");
  return bucket;
});
